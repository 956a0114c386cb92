"""The cursor: contiguous, durable, never back."""

from __future__ import annotations

import random

from tests.scenarios.world import World


def test_the_cursor_stops_at_a_gap() -> None:
    world = World(entries=4)
    world.poll()

    world.ack(1, 3, 4)

    assert world.cursor == 1


def test_closing_the_gap_jumps_over_all_that_is_acked() -> None:
    world = World(entries=5)
    world.poll()
    world.ack(2, 3, 5)

    world.ack(1)

    assert world.cursor == 3
    world.ack(4)
    assert world.cursor == 5


def test_an_out_of_order_ack_is_not_redelivered_when_lower_claims_lapse() -> None:
    world = World(entries=3)
    world.poll()
    world.ack(2)

    world.lapse()

    assert world.poll() == [1, 3]


def test_a_restart_resumes_at_the_cursor_and_redelivers_only_what_was_not_acked() -> (
    None
):
    world = World(entries=6)
    world.poll(count=5)
    world.ack(1, 2, 4)

    world.crash()

    assert world.cursor == 2
    assert world.poll() == [3, 5, 6]


def test_a_duplicate_ack_moves_nothing() -> None:
    world = World(entries=3)
    world.poll()
    assert world.ack(1, 1) == 1
    before = world.group.cursor

    assert world.ack(1) == 0
    assert world.group.cursor == before


def test_an_ack_below_the_cursor_is_inert() -> None:
    world = World(entries=3)
    world.poll()
    world.ack(1, 2)
    world.changes()

    assert world.ack(1) == 0
    assert world.changes() == []


def test_acks_in_any_order_never_move_the_cursor_back() -> None:
    chance = random.Random(3)
    world = World(entries=200)
    world.poll()
    numbers = list(range(1, 201))
    chance.shuffle(numbers)
    cursors = []

    for number in numbers:
        world.ack(number)
        cursors.append(world.cursor)

    assert cursors == sorted(cursors)
    assert cursors[-1] == 200


def test_an_ack_lost_with_its_commit_was_never_answered_and_the_entry_returns() -> None:
    world = World(entries=1)
    world.poll()
    world.changes()
    world.ack(1)
    (change,) = world.changes()

    assert change.MUST_WAIT  # so no reply has left
    world.crash(batches=1)
    assert world.poll() == [1]


def test_an_answered_noack_read_is_not_repeated_after_a_crash() -> None:
    world = World(entries=2)
    world.poll(count=1, no_ack=True)
    world.changes()
    world.poll(count=1, no_ack=True)

    (change,) = world.changes()
    assert change.MUST_WAIT  # so the answer did
    world.crash()
    assert world.cursor == 2
    assert world.poll(no_ack=True) == []
