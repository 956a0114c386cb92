"""Nacks, receipts and extensions, beyond what the scenarios tell."""

from __future__ import annotations

import pytest

from felixresp.engine.changes import Died, Extended, HandedBack
from felixresp.engine.settle import FAIL, FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World

MODES = [SILENT, FAIL, FATAL]


@pytest.mark.parametrize("mode", [SILENT, FAIL])
def test_a_nack_of_a_delayed_or_owed_entry_answers_0(mode: bytes) -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.lapse()
    world.poll()
    world.nack(1)
    world.nack(2, delay_ms=500)
    world.changes()

    assert world.nack(1, 2, mode=mode) == 0
    assert world.changes() == []


def test_a_fatal_nack_takes_delayed_and_owed_entries_too() -> None:
    world = World(entries=2)
    world.poll()
    world.nack(1, reason=b"first")
    world.nack(2, delay_ms=500)

    assert world.nack(1, 2, mode=FATAL) == 2

    assert world.dead == [1, 2]
    assert world.letter(1).consumer == b"alice"
    assert world.cursor == 2
    assert world.group.next_deadline() is None


@pytest.mark.parametrize("mode", MODES)
def test_a_nack_of_an_entry_that_is_gone_finishes_it(mode: bytes) -> None:
    world = World(entries=1)
    world.poll()
    world.delete(1)

    assert world.nack(1, mode=mode) == 1

    assert world.dead == []
    assert (world.group.skipped, world.cursor) == (1, 1)


def test_each_entry_is_nacked_once_however_often_it_is_named() -> None:
    world = World(entries=2)
    world.poll()

    assert world.nack(1, 1, world.receipt(1), 2) == 2
    assert world.attempts(1) == 1


def test_a_nack_by_consumer_applies_only_to_what_that_member_holds() -> None:
    world = World(entries=3)
    world.poll(b"alice", count=1)
    world.poll(b"bob", count=1)
    world.poll(b"alice", count=1, user=b"other")

    assert world.nack(1, 2, 3, consumer=b"alice") == 1
    assert world.owed == [1]
    assert world.nack(2, consumer=b"nobody") == 0


def test_a_nack_by_consumer_does_not_apply_to_what_it_lost() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    world.lapse()

    for mode in MODES:
        assert world.nack(1, mode=mode, consumer=b"alice") == 0
        assert world.nack(2, mode=mode, consumer=b"alice", force=True) == 0


def test_a_nack_at_the_deadline_comes_too_late() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(VISIBILITY_MS)

    assert world.nack(1, mode=SILENT) == 0
    assert world.attempts(1) == 1


def test_a_retry_count_sets_both_counters() -> None:
    world = World(entries=2)
    world.poll()

    world.nack(1, retry_count=3)
    world.nack(2, mode=SILENT, retry_count=0)

    assert (world.attempts(1), world.deliveries(1)) == (3, 3)
    assert (world.attempts(2), world.deliveries(2)) == (0, 0)
    world.poll()
    assert (world.attempts(1), world.attempts(2)) == (4, 1)


def test_a_retry_count_at_the_bound_buries_what_fails_but_not_what_is_silent() -> None:
    world = World(entries=2, group_max_attempts=3)
    world.poll()

    world.nack(1, retry_count=3)
    world.nack(2, mode=SILENT, retry_count=3)

    assert world.dead == [1]
    assert world.letter(1).attempts == 3
    assert world.poll() == []  # the next hand-out checks the bound
    assert world.dead == [1, 2]


def test_a_forced_nack_puts_a_finished_entry_back_in_play() -> None:
    world = World(entries=2)
    world.poll()
    world.ack(1, 2)

    assert world.nack(1, force=True) == 1

    assert world.cursor == 2
    assert world.poll() == [1]
    assert world.attempts(1) == 1
    assert world.ack(1) == 1
    assert world.cursor == 2


def test_a_forced_nack_of_a_dead_letter_works_as_a_redrive() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()
    world.configure(backoff="fixed 500")

    assert world.nack(1, force=True) == 1

    assert (world.dead, world.owed) == ([], [1])
    world.kill()
    assert world.letter(1).redriven == 1


def test_a_forced_nack_above_the_head_makes_the_entry_pending_out_of_turn() -> None:
    world = World(entries=3)

    assert world.nack(2, force=True, retry_count=2) == 1

    assert world.poll() == [2, 1, 3]
    assert world.attempts(2) == 3
    assert world.poll() == []
    world.crash()
    assert world.owed == [1, 2, 3]


def test_a_forced_fatal_nack_lists_what_nobody_held() -> None:
    world = World(entries=1)

    assert world.nack(1, mode=FATAL, force=True, reason=b"never") == 1

    assert world.letter(1).reason == b"never"
    assert world.poll() == []
    assert world.group.lag == 0


def test_force_neither_makes_absent_entries_nor_takes_delayed_ones() -> None:
    world = World(entries=1)
    world.poll()
    world.nack(1, delay_ms=500)
    world.changes()

    assert world.nack(1, 9, force=True) == 0
    assert world.changes() == []


def test_the_last_reason_goes_with_the_entry_and_the_dead_letter() -> None:
    world = World(entries=1, group_max_attempts=3)
    world.poll()
    world.nack(1, reason=b"disk full")
    world.poll()
    assert world.group.reason(1 << 64) == b"disk full"
    world.nack(1)
    assert world.group.reason(1 << 64) == b"disk full"
    world.poll()

    world.lapse()

    assert world.letter(1).reason == b"disk full"


def test_reasons_and_delays_outlive_a_crash() -> None:
    world = World(entries=1)
    world.poll()
    world.nack(1, reason=b"disk full", delay_ms=700)
    world.at(100)

    world.crash()

    assert world.state(1) == b"delayed"
    assert world.explain(1).reason == b"disk full"
    world.run_to(699)
    assert world.poll() == []
    world.run_to(700)
    assert world.poll() == [1]


def test_a_death_by_nack_and_the_other_entries_are_one_answer() -> None:
    world = World(entries=2, group_max_attempts=2)
    world.poll(count=1)
    world.lapse()
    world.poll()
    world.changes()

    assert world.nack(1, 2) == 2

    assert [type(change) for change in world.changes()] == [Died, HandedBack]
    assert (world.dead, world.owed) == ([1], [2])


def test_an_extension_of_one_entry_leaves_the_rest_of_its_hand_out() -> None:
    world = World(entries=3)
    world.poll()
    receipts = [world.receipt(number) for number in (1, 2, 3)]

    world.extend(receipts[1], 5000)

    assert world.group.next_deadline() == VISIBILITY_MS
    world.run_to(VISIBILITY_MS)
    assert world.owed == [1, 3]
    assert world.ack(receipts[1]) == 1


def test_idle_counts_from_the_extension() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(900)
    world.extend(world.receipt(1), 5000)
    world.at(1500)

    assert world.claim(b"bob", 1, min_idle_ms=601) == []
    assert world.claim(b"bob", 1, min_idle_ms=600) == [1]


def test_a_heartbeat_never_takes_time_from_a_claim_whose_time_was_asked_for() -> None:
    world = World(entries=2)
    world.poll(b"alice", visibility_ms=5000)
    world.extend(world.receipt(2), 9000)
    world.at(100)

    world.claim(b"alice", 1, 2, just_id=True)
    world.history(b"alice")

    world.run_to(4999)
    assert world.owed == []
    world.run_to(8999)
    assert world.owed == [1]


def test_an_extension_waits_for_its_commit_only_where_claims_are_durable() -> None:
    world = World(entries=1)
    world.poll()
    world.changes()
    world.extend(world.receipt(1), 5000)
    (extended,) = world.changes()
    assert isinstance(extended, Extended)
    assert not extended.MUST_WAIT

    world.configure(durable_claims="yes")
    world.changes()
    world.extend(world.receipt(1), 5000)

    (extended,) = world.changes()
    assert extended.MUST_WAIT
