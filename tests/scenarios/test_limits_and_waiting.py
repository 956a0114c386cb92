"""Caps of a poll and of a group, and what wakes those who wait.

A waiting poll is the same poll made again whenever a change wakes it; here the
test does what the server would.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.world import VISIBILITY_MS, World

MIB = 1024 * 1024


def test_1001_asked_gives_1000_then_the_rest() -> None:
    world = World(entries=1001)

    assert world.poll(count=1001) == list(range(1, 1001))
    assert world.poll(count=1001) == [1001]


def test_a_poll_stops_at_four_mebibytes_and_keeps_the_entry_that_crosses() -> None:
    world = World()
    world.append(1, 2, 3, 4, 5, 6, size=MIB)

    assert world.poll(bytes_max=4 * MIB) == [1, 2, 3, 4]
    assert world.poll(bytes_max=4 * MIB) == [5, 6]


def test_one_larger_entry_still_goes_alone() -> None:
    world = World()
    world.append(1, 2, size=5 * MIB)

    assert world.poll(bytes_max=4 * MIB) == [1]
    assert world.poll(bytes_max=4 * MIB) == [2]


def test_the_byte_cut_counts_owed_and_new_entries_together() -> None:
    world = World()
    world.append(1, 2, 3, size=1000)
    world.poll(count=1)
    world.lapse()

    assert world.poll(bytes_max=1500) == [1, 2]


def test_the_cap_answers_empty_and_counts() -> None:
    world = World(entries=5, group_max_in_flight=3)

    assert world.poll() == [1, 2, 3]
    assert world.poll() == world.poll() == []
    assert world.group.polls_capped == 2


def test_an_ack_frees_the_cap_and_wakes_who_waits() -> None:
    world = World(entries=5, group_max_in_flight=3)
    world.poll()
    world.poll()
    world.changes()

    world.ack(2)

    assert world.woken()
    assert world.poll() == [4]


def test_an_ack_wakes_nobody_where_nobody_was_turned_away() -> None:
    world = World(entries=5, group_max_in_flight=3)
    world.poll()
    world.changes()

    world.ack(2)

    assert not world.woken()


def test_a_nack_frees_the_cap_and_freed_room_goes_to_owed_first() -> None:
    world = World(entries=5, group_max_in_flight=3)
    world.poll()
    assert world.poll() == []
    world.changes()

    world.nack(2)

    assert world.woken()
    assert world.poll() == [2]


def test_a_lapse_frees_the_cap_and_freed_room_goes_to_owed_first() -> None:
    world = World(entries=5, group_max_in_flight=3)
    world.poll()
    assert world.poll() == []

    world.lapse()

    assert world.poll() == [1, 2, 3]


def test_a_death_at_the_cap_frees_room_and_wakes_who_waits() -> None:
    world = World(entries=2, group_max_in_flight=1, group_max_attempts=1)
    world.poll()
    assert world.poll() == []
    world.changes()

    world.claim(b"bob", 1)

    assert world.dead == [1]
    assert world.woken()
    assert world.poll() == [2]


def test_filling_the_cap_exactly_is_not_capped() -> None:
    world = World(entries=3, group_max_in_flight=3)

    assert world.poll(count=3) == [1, 2, 3]
    assert world.group.polls_capped == 0


def test_noack_takes_no_room_and_works_at_the_cap() -> None:
    world = World(entries=4, group_max_in_flight=1)
    world.poll()

    assert world.poll(no_ack=True) == [2, 3, 4]
    assert world.group.in_flight == 1


def test_a_claim_may_pass_the_cap_but_counts() -> None:
    world = World(entries=4, group_max_in_flight=2)
    world.poll(b"alice", count=2)
    world.lapse()
    world.poll(b"bob", count=2)

    assert world.claim(b"carol", 3, 4, force=True) == [3, 4]
    assert world.group.in_flight == 4
    assert world.poll() == []


def test_a_full_dead_letter_list_hands_out_nothing_until_some_are_settled() -> None:
    world = World(entries=4, group_max_attempts=1, group_max_dead_letters=2)
    world.poll(count=2)
    world.lapse()
    assert world.poll() == world.poll(no_ack=True) == []
    world.changes()

    world.discard(1)

    assert world.woken()
    assert world.poll() == [3, 4]


def test_past_the_ranges_limit_only_owed_entries_go_out() -> None:
    world = World(entries=5, group_max_acked_ahead_ranges=2)
    world.poll(count=2)
    world.lapse()

    assert world.poll() == [1, 2]
    assert world.poll() == []
    world.changes()
    world.ack(1)
    assert world.woken()
    assert world.poll() == [3, 4, 5]


def _append(world: World) -> None:
    world.append(99)


def _redrive(world: World) -> None:
    world.redrive(1)


def _remove(world: World) -> None:
    world.remove_consumer(b"alice")


def _nack(world: World) -> None:
    world.nack(2)


def _end_a_delay(world: World) -> None:
    world.nack(2, delay_ms=500)
    world.changes()
    world.run_to(world.now_ms + 500)


def _ack_at_the_cap(world: World) -> None:
    world.settings.group_max_in_flight = 1
    world.append(3)
    assert world.poll(b"waiter") == []
    world.changes()
    world.ack(2)


def _seek(world: World) -> None:
    world.seek(0)


def _resume(world: World) -> None:
    world.pause()
    world.changes()
    world.resume()


def _destroy(world: World) -> None:
    world.keyspace.destroy_group(world.group)


def _drop(world: World) -> None:
    world.keyspace.drop(world.stream)


@pytest.mark.parametrize(
    "event",
    [
        _append,
        _nack,
        _redrive,
        _ack_at_the_cap,
        World.lapse,
        _end_a_delay,
        _remove,
        _seek,
        _resume,
        _destroy,
        _drop,
    ],
)
def test_a_waiter_is_woken(event: Callable[[World], None]) -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()
    world.append(2)
    world.poll(b"alice")
    assert world.poll(b"waiter") == []
    world.changes()
    world.settings.group_max_attempts = 9

    event(world)

    assert world.woken()


def test_an_event_between_read_and_wait_is_in_the_changes_that_wake() -> None:
    world = World()
    assert world.poll(b"waiter") == []  # it is about to wait

    world.append(1)

    assert world.woken()
    assert world.poll(b"waiter") == [1]


def test_a_waiter_woken_for_nothing_waits_on_and_owes_nothing() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    for now_ms in range(0, VISIBILITY_MS, 100):
        world.at(now_ms)
        assert world.poll(b"waiter") == []

    world.at(VISIBILITY_MS)

    assert world.poll(b"waiter") == [1]


def test_n_entries_at_once_serve_n_waiters_a_different_one_each() -> None:
    world = World()
    waiters = [b"w%d" % number for number in range(5)]
    assert not any(world.poll(name, count=1) for name in waiters)

    world.append(1, 2, 3, 4, 5)  # one EXEC

    assert [world.poll(name, count=1) for name in waiters] == [[1], [2], [3], [4], [5]]


def test_a_waiter_whose_client_is_gone_gets_nothing_and_blocks_nobody() -> None:
    world = World(entries=1)
    assert world.poll(b"gone") == [1]
    world.changes()

    world.lose_reply()

    assert world.woken()
    assert world.poll(b"next") == [1]
    assert world.attempts(1) == 1
