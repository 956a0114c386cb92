"""Claim and order: who gets which entry, when."""

from __future__ import annotations

import random
from collections.abc import Callable

from felixresp.engine.settle import FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World


def test_a_new_group_starts_at_its_cursor_and_handing_out_finishes_nothing() -> None:
    world = World(entries=3)
    late = world.keyspace.create_group(world.stream, b"late", 2 << 64, None)

    assert world.poll(group=late) == [3]
    assert (late.cursor, late.head) == (2 << 64, 3 << 64)
    assert list(late.pending) == [3 << 64]


def test_nothing_past_the_tail_goes_out() -> None:
    world = World(entries=2)

    assert world.poll() == [1, 2]
    assert world.poll() == []
    world.append(3)
    assert world.poll() == [3]


def test_two_polls_never_share_an_entry() -> None:
    world = World(entries=10)

    given = [world.poll(name, count=3) for name in (b"alice", b"bob", b"alice", b"bob")]

    assert given == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]]


def test_a_claim_lapses_at_its_deadline_and_not_before() -> None:
    world = World(entries=1)
    world.poll(b"alice")

    world.at(VISIBILITY_MS - 1)
    assert world.poll(b"bob") == []
    world.at(VISIBILITY_MS)
    assert world.poll(b"bob") == [1]


def test_an_acked_entry_never_returns() -> None:
    world = World(entries=2)
    world.poll()
    world.ack(1)

    world.lapse()

    assert world.poll() == [2]


def test_owed_goes_before_new_lowest_id_first() -> None:
    world = World(entries=4)
    world.poll(b"alice", count=3)
    world.lapse()

    assert world.poll(b"bob", count=10) == [1, 2, 3, 4]


def test_a_lapsed_claim_cuts_in_before_entries_that_became_owed_earlier() -> None:
    world = World(entries=2)
    world.poll(b"alice", count=1)
    world.at(10)
    world.claim(b"carol", 1)  # entry 1 lapses after entry 2
    world.at(5)
    world.poll(b"bob", count=1)
    world.at(VISIBILITY_MS + 5)
    world.fire_timer()
    assert world.owed == [2]

    world.at(VISIBILITY_MS + 10)

    assert world.poll(b"dave") == [1, 2]


def test_two_groups_each_see_everything() -> None:
    world = World(entries=3)
    other = world.keyspace.create_group(world.stream, b"others", 0, None)

    assert world.poll() == world.poll(group=other) == [1, 2, 3]
    world.ack(1, 2, 3)
    assert len(other.pending) == 3


def test_an_empty_stream_gives_an_empty_success() -> None:
    world = World()

    assert world.poll() == []
    assert world.group.polls_capped == 0


def test_claims_lapse_by_deadline_not_by_id() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    world.at(500)
    world.claim(b"bob", 1)

    world.at(VISIBILITY_MS)
    world.fire_timer()

    assert world.owed == [2]
    world.at(500 + VISIBILITY_MS)
    world.fire_timer()
    assert world.owed == [1, 2]


def test_every_way_of_ending_a_claim_removes_its_deadline() -> None:
    ends: dict[str, Callable[[World], object]] = {
        "ack": lambda world: world.ack(1),
        "lapse": lambda world: world.lapse(),
        "nack": lambda world: world.nack(1),
        "silent nack": lambda world: world.nack(1, mode=SILENT),
        "fatal nack": lambda world: world.nack(1, mode=FATAL),
        "consumer removed": lambda world: world.remove_consumer(b"alice"),
        "seek": lambda world: world.seek(0),
        "mode redis": lambda world: world.configure(mode="redis"),
        "reply lost": lambda world: world.lose_reply(),
    }
    for how, end in ends.items():
        world = World(entries=1)
        world.poll()
        assert world.group.next_deadline() == VISIBILITY_MS

        end(world)

        assert world.group.next_deadline() is None, how


def test_a_claim_taken_over_leaves_only_the_new_deadline() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(600)

    world.claim(b"bob", 1)

    assert world.group.next_deadline() == 600 + VISIBILITY_MS


def test_a_delayed_nack_leaves_only_the_end_of_the_delay() -> None:
    world = World(entries=1)
    world.poll()

    world.nack(1, delay_ms=7)

    assert world.group.next_deadline() == 7
    world.run_to(7)
    assert world.group.next_deadline() is None


def test_a_polls_own_visibility_overrides_the_default() -> None:
    world = World(entries=3)
    world.poll(count=1, visibility_ms=50)
    world.poll(count=1, visibility_ms=5000)
    world.poll(count=1)

    world.run_to(50)
    assert world.owed == [1]
    world.run_to(VISIBILITY_MS)
    assert world.owed == [1, 3]
    world.run_to(5000)
    assert world.owed == [1, 2, 3]


def test_a_random_mix_of_ack_nack_and_abandon_finishes_every_entry_exactly_once() -> (
    None
):
    chance = random.Random(7)
    world = World(entries=300, group_max_attempts=0)
    finished: list[int] = []

    while len(finished) < 300:
        for consumer in (b"alice", b"bob", b"carol"):
            for number in world.poll(consumer, count=chance.randint(1, 20)):
                luck = chance.random()
                if luck < 0.6 and world.ack(number):
                    finished.append(number)
                elif luck > 0.8:
                    world.nack(number, delay_ms=chance.choice([0, 200]))
            world.at(world.now_ms + chance.randint(0, 300))

    assert sorted(finished) == list(range(1, 301))
    assert world.ack(*range(1, 301)) == 0
    assert world.cursor == 300
    assert not world.group.pending


def test_the_next_deadline_is_the_earliest_one() -> None:
    world = World(entries=3)
    for now_ms in (0, 10, 20):
        world.at(now_ms)
        world.poll(count=1)

    assert world.group.next_deadline() == VISIBILITY_MS
    world.ack(1)
    assert world.group.next_deadline() == VISIBILITY_MS + 10
    assert (world.keyspace.next_deadline() or 0) <= VISIBILITY_MS + 10


def test_a_visibility_changed_later_does_not_move_a_standing_claim() -> None:
    world = World(entries=2)
    world.poll(count=1)

    world.settings.group_visibility_timeout_ms = 50
    world.poll(count=1)

    assert world.group.next_deadline() == 50
    world.at(50)
    assert world.poll(b"bob") == [2]
    world.ack(2)
    assert world.group.next_deadline() == VISIBILITY_MS


def test_a_hundred_entries_of_a_killed_worker_go_to_the_waiter_at_the_deadline() -> (
    None
):
    world = World(entries=100)
    assert world.poll(b"killed", count=100) == list(range(1, 101))
    world.changes()

    world.at(VISIBILITY_MS - 1)
    world.fire_timer()
    assert not world.woken()
    assert world.poll(b"waiter", count=100) == []

    assert world.keyspace.next_deadline() == VISIBILITY_MS
    world.at(VISIBILITY_MS)
    world.fire_timer()
    assert world.woken()
    assert world.poll(b"waiter", count=100) == list(range(1, 101))
    assert {world.attempts(number) for number in range(1, 101)} == {2}
