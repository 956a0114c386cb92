"""Settling: what an ack does, early, late, twice."""

from __future__ import annotations

from tests.scenarios.world import World


def test_a_late_ack_after_redelivery_finishes_the_entry_once() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.lapse()
    assert world.poll(b"bob") == [1]

    assert world.ack(1) == 1  # alice's, late
    assert world.ack(1) == 0  # bob's
    world.lapse()
    assert world.poll(b"carol") == []


def test_an_ack_while_owed_finishes_the_entry() -> None:
    world = World(entries=1)
    world.poll()
    world.lapse()
    assert world.owed == [1]

    assert world.ack(1) == 1
    assert world.poll() == []
    assert world.cursor == 1


def test_an_ack_past_the_tail_changes_nothing_and_the_entry_is_still_delivered() -> (
    None
):
    world = World(entries=1)
    world.poll()
    world.ack(1)
    world.changes()

    assert world.ack(2, 3) == 0
    assert world.changes() == []
    world.append(2)
    assert world.poll() == [2]


def test_an_append_wakes_a_waiter() -> None:
    world = World()
    assert world.poll() == []
    world.changes()

    world.append(1)

    assert world.woken()
    assert world.poll() == [1]


def test_a_settle_of_a_written_but_never_handed_out_entry_changes_nothing() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.changes()

    assert world.ack(2) == 0
    assert world.changes() == []
    assert world.poll() == [2]


def test_after_a_crash_an_ack_up_to_the_tail_found_at_start_is_accepted() -> None:
    world = World(entries=2)
    world.changes()
    world.poll()  # lazy: lost in the crash
    world.crash(batches=1)
    world.append(3)

    assert world.ack(2, 3) == 1
    assert world.poll() == [1, 3]
    world.ack(1, 3)
    assert world.cursor == 3
