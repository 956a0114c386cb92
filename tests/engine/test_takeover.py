"""XCLAIM, XAUTOCLAIM and history reads, beyond what the scenarios tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from felixresp.engine import takeover
from felixresp.engine.changes import COUNT_MAX
from tests.scenarios.world import VISIBILITY_MS, World


def autoclaim(
    world: World, count: int, min_idle_ms: int = 0, start: int = 0
) -> tuple[int, list[int], list[int]]:
    answer = takeover.autoclaim(
        world.group,
        world.member(b"bob"),
        start << 64,
        world.now_ms,
        min_idle_ms=min_idle_ms,
        count=count,
    )
    ids = [id_ >> 64 for id_ in answer.polled.ids]
    return answer.next_id >> 64, ids, [id_ >> 64 for id_ in answer.deleted]


def test_autoclaim_stops_at_count_and_says_where_to_go_on() -> None:
    world = World(entries=5)
    world.poll()

    assert autoclaim(world, 2) == (3, [1, 2], [])
    assert autoclaim(world, 10, start=3) == (0, [3, 4, 5], [])


def test_autoclaim_looks_at_ten_times_count_entries() -> None:
    world = World(entries=30)
    world.poll()

    assert autoclaim(world, 2, min_idle_ms=1) == (21, [], [])


def test_autoclaim_takes_the_idle_and_the_owed() -> None:
    world = World(entries=3)
    world.poll(count=1)
    world.lapse()  # 1 is owed
    world.poll(b"carol", count=1)
    world.lapse()
    world.poll(b"dave", count=2)
    world.at(world.now_ms + 10)
    world.poll(b"erin", count=1)

    assert autoclaim(world, 10, min_idle_ms=10) == (0, [1, 2], [])


def test_autoclaim_counts_the_deleted_and_buries_the_spent_without_counting() -> None:
    world = World(entries=4, group_max_attempts=1)
    world.poll()
    world.stream.delete([2 << 64])

    assert autoclaim(world, 1) == (3, [], [2])
    assert world.dead == [1]


def test_autoclaim_of_ids_only_costs_no_attempt_and_is_not_given_back() -> None:
    world = World(entries=1)
    world.poll()
    world.keyspace.handed.clear()

    takeover.autoclaim(
        world.group,
        world.member(b"bob"),
        0,
        0,
        min_idle_ms=0,
        count=10,
        just_id=True,
    )
    world.lose_reply()

    assert (world.attempts(1), world.deliveries(1)) == (1, 1)
    assert world.owed == []


def test_claim_leaves_what_is_not_idle_enough_or_not_pending() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.at(10)

    assert world.claim(b"bob", 1, 2, 9, min_idle_ms=11) == []
    assert world.claim(b"bob", 9, force=True) == []
    assert world.claim(b"bob", 1, min_idle_ms=10) == [1]


def test_claim_finishes_what_is_gone() -> None:
    world = World(entries=1)
    world.poll()
    world.stream.delete([1 << 64])

    assert world.claim(b"bob", 1) == []
    assert (world.group.skipped, world.cursor) == (1, 1)


def test_a_retry_count_sets_both_counters_also_of_a_spent_entry() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll()
    options = takeover.ClaimOptions(0, 0, retry_count=7)
    bob = world.member(b"bob")

    polled = takeover.claim(world.group, bob, [1 << 64], options, 0)

    assert list(polled.ids) == [1 << 64]
    assert (world.attempts(1), world.deliveries(1)) == (7, 7)


def test_a_forced_claim_puts_a_dead_letter_back_in_play() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()

    assert world.claim(b"bob", 1, force=True) == [1]
    assert world.dead == []
    assert world.attempts(1) == 1
    world.lapse()
    assert world.dead == [1]
    assert world.group.dead_letters.listed[1 << 64].redriven == 1


def test_a_forced_claim_above_the_head_is_pending_out_of_turn() -> None:
    world = World(entries=3)

    assert world.claim(b"bob", 2, force=True) == [2]

    assert world.poll() == [1, 3]
    assert world.group.in_flight == 3


def test_a_member_keeps_what_it_claims_for_itself_at_no_cost() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")
    world.at(VISIBILITY_MS - 1)

    assert world.claim(b"alice", 1) == [1]
    assert world.attempts(1) == 1
    assert world.group.next_deadline() == 2 * VISIBILITY_MS - 1


def test_a_member_pays_for_what_it_lost_by_a_lapse() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.lapse()

    assert world.claim(b"alice", 1) == [1]
    assert world.attempts(1) == 2


def test_history_is_read_page_by_page_and_cut_by_bytes() -> None:
    world = World(entries=5)
    world.poll(b"alice", count=4)
    world.poll(b"bob")
    alice = world.member(b"alice")

    def page(after: int, **limits: int) -> list[int]:
        read = takeover.history(
            world.group, alice, after << 64, 0, **{"count": 10} | limits
        )
        return [id_ >> 64 for id_, _ in read]

    assert page(0, count=2) == [1, 2]
    assert page(2, count=2) == [3, 4]
    assert page(4) == []
    assert page(0, bytes_max=1) == [1]


def test_history_shows_deleted_entries_as_such_and_lapsed_ones_not_at_all() -> None:
    world = World(entries=2)
    world.poll(b"alice", count=1)
    world.at(10)
    world.poll(b"alice", count=1)
    world.stream.delete([2 << 64])
    world.at(VISIBILITY_MS)
    alice = world.member(b"alice")

    read = takeover.history(world.group, alice, 0, world.now_ms, count=10)

    assert read == [(2 << 64, None)]


def test_history_rearms_the_deadline() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(900)

    world.history(b"alice")

    assert world.group.next_deadline() == 900 + VISIBILITY_MS


def test_a_heartbeat_from_another_connection_makes_no_reread_cost() -> None:
    world = World(entries=1, group_max_attempts=2)
    world.poll(client=1)

    for _ in range(5):
        world.claim(b"alice", 1, just_id=True, client=2)
        assert world.history(b"alice", client=1) == [1]

    assert world.attempts(1) == 1


def test_a_restarted_worker_is_charged_once_however_often_it_beats() -> None:
    world = World(entries=1, group_max_attempts=3)
    world.poll(client=1)

    for client in (2, 3, 4):
        assert world.history(b"alice", client=client) == [1]
        world.claim(b"alice", 1, client=client)

    assert world.attempts(1) == 2


@pytest.mark.parametrize(
    "again",
    [
        lambda world: world.lapse() or world.poll(),
        lambda world: world.claim(b"bob", 1),
        lambda world: world.claim(b"alice", 1),
        lambda world: world.autoclaim(b"bob"),
        lambda world: world.history(b"alice", client=7),
    ],
)
def test_counts_as_high_as_a_reply_can_say_stay_there(
    again: Callable[[World], list[int]],
) -> None:
    world = World(entries=1, group_max_attempts=0)
    world.poll()
    world.claim(b"alice", 1, retry_count=COUNT_MAX)

    assert again(world) == [1]

    assert (world.attempts(1), world.deliveries(1)) == (COUNT_MAX, COUNT_MAX)
