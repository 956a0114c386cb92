"""What holds a claim longer, or gives it up before its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from felixresp.engine.settle import FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World


def test_an_extended_claim_outlives_the_visibility_timeout_then_lapses() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(500)

    assert world.extend(world.receipt(1), 3000) == 3000

    world.run_to(3499)
    assert world.poll(b"bob") == []
    world.run_to(3500)
    assert world.poll(b"bob") == [1]


def test_a_claim_extended_to_less_lapses_at_the_new_time_too() -> None:
    world = World(entries=1)
    world.poll(b"alice")

    assert world.extend(1, 10, consumer=b"alice") == 10

    world.at(10)
    assert world.poll(b"bob") == [1]


@pytest.mark.parametrize(
    "end",
    [
        World.lapse,
        lambda world: world.ack(1),
        lambda world: world.nack(1, delay_ms=50),
        lambda world: world.nack(1, mode=FATAL),
    ],
    ids=["lapsed", "settled", "delayed", "dead"],
)
def test_extend_of_a_lapsed_settled_or_delayed_claim_is_refused(
    end: Callable[[World], object],
) -> None:
    world = World(entries=1)
    world.poll(b"alice")
    receipt = world.receipt(1)
    end(world)
    world.changes()

    assert world.extend(receipt, 5000) == 0
    assert world.extend(1, 5000, consumer=b"alice") == 0
    assert world.changes() == []


def test_extend_by_another_consumer_is_refused() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.poll(b"bob")

    assert world.extend(1, 5000, consumer=b"bob") == 0
    assert world.group.next_deadline() == VISIBILITY_MS


def test_a_delayed_nack_is_not_early_and_holds_a_place_under_the_cap() -> None:
    world = World(entries=2, group_max_in_flight=1)
    world.poll(b"alice")

    assert world.nack(1, delay_ms=500) == 1

    world.run_to(499)
    assert world.poll(b"bob") == []
    assert (world.group.in_flight, world.group.polls_capped) == (1, 1)
    world.run_to(500)
    assert world.poll(b"bob") == [1]


def test_a_delayed_entry_cannot_be_extended_or_reclaimed_and_is_not_history() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=1)
    receipt = world.receipt(1)
    world.nack(1, delay_ms=500)

    assert world.extend(receipt, 5000) == 0
    assert world.poll(b"alice", client=2, reclaim=True) == []
    assert world.history(b"alice", client=1) == []
    assert world.group.next_deadline() == 500


def test_backoff_follows_the_groups_policy_with_its_cap() -> None:
    world = World(entries=1, group_max_attempts=0)
    world.configure(backoff="exponential 100 2 300")
    delays = []

    for _ in range(4):
        assert world.poll() == [1]
        world.nack(1)
        delays.append((world.group.next_deadline() or 0) - world.now_ms)
        world.run_to(world.now_ms + delays[-1])

    assert delays == [100, 200, 300, 300]


def test_a_delay_that_the_nack_asks_for_goes_before_the_groups_policy() -> None:
    world = World(entries=2)
    world.configure(backoff="fixed 100")
    world.poll()

    world.nack(1, delay_ms=0)
    world.nack(2, delay_ms=7)

    assert world.owed == [1]
    assert world.group.next_deadline() == 7


def test_a_silent_nack_is_not_delayed_by_the_groups_policy() -> None:
    world = World(entries=1)
    world.configure(backoff="fixed 100")
    world.poll()

    world.nack(1, mode=SILENT)

    assert world.owed == [1]


def test_autoclaim_and_claim_do_not_take_a_delayed_entry_early() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.nack(1, delay_ms=500)
    world.at(499)

    assert world.autoclaim(b"bob") == []
    assert world.claim(b"bob", 1) == []
    assert world.claim(b"bob", 1, force=True) == [1]


def test_a_consumers_dead_letter_is_listed_with_its_reason_finished_redrivable() -> (
    None
):
    world = World(entries=1)
    world.poll(b"alice")
    world.at(5)

    assert world.nack(1, mode=FATAL, reason=b"no such user") == 1

    letter = world.letter(1)
    assert (letter.cause, letter.reason) == (b"consumer", b"no such user")
    assert (letter.attempts, letter.consumer, letter.dead_ms) == (1, b"alice", 5)
    assert world.cursor == 1
    assert world.redrive(1) == 1
    assert world.poll() == [1]


def test_a_fatal_nack_of_a_finished_entry_is_refused_and_nothing_is_written() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.ack(1)
    world.changes()

    assert world.nack(1, 2, 9, mode=FATAL, reason=b"late") == 0
    assert world.changes() == []


def test_values_over_the_cap_are_capped_and_the_grant_is_reported() -> None:
    world = World(entries=2, group_max_visibility_ms=5000)

    world.poll(count=1, visibility_ms=10**9)
    assert world.group.next_deadline() == 5000
    assert world.extend(world.receipt(1), 10**9) == 5000
    world.nack(1, delay_ms=10**9)
    assert world.group.next_deadline() == 5000


def test_the_cap_is_never_below_the_visibility_timeout() -> None:
    world = World(entries=1, group_max_visibility_ms=1)
    world.poll()

    assert world.extend(world.receipt(1), 10**9) == VISIBILITY_MS


def test_a_members_own_claim_of_what_it_holds_costs_no_attempt() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")
    receipt = world.receipt(1)

    for now_ms in (900, 1800, 2700):
        world.run_to(now_ms)
        assert world.claim(b"alice", 1) == [1]
        assert world.claim(b"alice", 1, just_id=True) == [1]

    assert world.attempts(1) == 1
    assert world.group.next_deadline() == 2700 + VISIBILITY_MS
    assert world.ack(receipt) == 1


def test_a_claim_that_follows_its_connection_outlives_ten_visibility_timeouts() -> None:
    world = World(entries=1, group_claims_follow="connection")
    world.poll(b"alice", client=7)

    world.run_to(10 * VISIBILITY_MS)
    world.detach(7)
    world.run_to(10 * VISIBILITY_MS + 1)
    world.poll(b"alice", client=8)  # it reconnected
    world.run_to(20 * VISIBILITY_MS)

    assert world.poll(b"bob", client=9) == []
    assert world.attempts(1) == 1
    world.detach(8)
    world.run_to(21 * VISIBILITY_MS - 1)
    assert world.poll(b"bob", client=9) == []
    world.run_to(21 * VISIBILITY_MS)
    assert world.poll(b"bob", client=9) == [1]


def test_with_a_disconnect_grace_of_0_a_killed_workers_entries_are_owed_at_once() -> (
    None
):
    world = World(entries=2, group_disconnect_grace_ms=0, group_max_attempts=1)
    world.poll(b"alice", client=7)
    world.changes()

    world.detach(7)
    world.fire_timer()

    assert world.owed == [1, 2]
    assert world.woken()
    assert world.dead == []  # a worker that is gone is not judged


def test_a_clean_restart_keeps_standing_claims_and_receipts() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    receipts = [world.receipt(1), world.receipt(2)]
    world.extend(receipts[1], 5000)
    world.at(VISIBILITY_MS - 1)

    world.restart()

    assert world.poll(b"bob") == []
    assert world.ack(receipts[0]) == 1
    world.at(4999)
    assert world.poll(b"bob") == []
    assert world.ack(receipts[1]) == 1
    assert world.cursor == 2
