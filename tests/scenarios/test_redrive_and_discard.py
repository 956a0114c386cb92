"""Dead letters put back in play, or dropped for good."""

from __future__ import annotations

from tests.scenarios.world import World


def poisoned(entries: int = 1, bound: int = 2) -> World:
    """A world whose every entry is dead."""
    world = World(entries, group_max_attempts=bound)
    world.kill()
    assert world.dead == list(range(1, entries + 1))
    return world


def test_a_redriven_entry_goes_out_with_attempts_from_one_and_the_cursor_unmoved() -> (
    None
):
    world = poisoned()
    assert world.cursor == 1

    assert world.redrive(1) == 1

    assert world.cursor == 1
    assert world.dead == []
    assert world.poll() == [1]
    assert world.attempts(1) == 1


def test_finishing_a_redriven_entry_leaves_the_cursor() -> None:
    world = poisoned(entries=3)
    world.redrive(2)
    world.poll()

    assert world.ack(2) == 1
    assert world.cursor == 3
    assert world.group.dead_letters.redriven == {}


def test_what_is_in_play_or_never_delivered_cannot_be_redriven() -> None:
    world = World(entries=3)
    world.poll(count=2)
    world.ack(1)
    world.changes()

    assert world.redrive(1, 2, 3, 4) == 0
    assert world.changes() == []


def test_a_dead_letter_whose_entry_is_gone_cannot_be_redriven() -> None:
    world = poisoned()
    world.stream.delete([1 << 64])

    assert world.redrive(1) == 0
    assert world.dead == [1]


def test_a_dead_letter_above_a_gap_can_be_redriven_and_the_cursor_waits_for_it() -> (
    None
):
    world = World(entries=2, group_max_attempts=1)
    world.poll(b"alice", count=1)
    world.at(10)
    world.poll(b"bob", count=1)
    world.claim(b"alice", 1, just_id=True)
    world.claim(b"carol", 2)  # spent: it dies while 1 is pending
    assert (world.dead, world.cursor) == ([2], 0)

    world.redrive(2)
    world.ack(1)

    assert world.cursor == 1
    assert world.poll() == [2]
    world.ack(2)
    assert world.cursor == 2


def test_a_redriven_entry_is_still_owed_after_a_restart_and_unlisted() -> None:
    world = poisoned()
    world.redrive(1)

    world.crash()

    assert world.dead == []
    assert world.owed == [1]


def test_a_finished_redrive_does_not_return_after_a_restart() -> None:
    world = poisoned()
    world.redrive(1)
    world.poll()
    world.ack(1)

    world.crash()

    assert world.dead == world.owed == world.poll() == []


def test_failing_again_lists_it_once_more_and_counts_the_redrive() -> None:
    world = poisoned()
    world.redrive(1)
    world.kill()

    assert world.dead == [1]
    assert world.group.dead_letters.listed[1 << 64].redriven == 1
    assert world.group.dead_letters.redriven == {}


def test_double_redrive_and_discard_of_a_redriven_entry_are_refused() -> None:
    world = poisoned()

    assert world.redrive(1, 1) == 1
    assert world.redrive(1) == 0
    assert world.discard(1) == 0
    assert world.owed == [1]


def test_a_discarded_letter_is_gone_and_its_entry_stays_finished() -> None:
    world = poisoned()

    assert world.discard(1, 1) == 1
    assert world.discard(1) == world.redrive(1) == 0
    assert world.poll() == []
    world.crash()
    assert world.dead == []


def test_a_letter_acked_or_discarded_after_the_head_went_back_is_not_new_again() -> (
    None
):
    world = poisoned(entries=3)
    world.set_id(0)
    assert world.poll() == []

    world.set_id(0)
    assert world.ack(1) == 1
    assert world.discard(2) == 1

    assert world.poll() == []
    assert world.group.lag == 0
    world.crash()
    assert world.poll() == []


def test_a_nack_of_a_redriven_entry_owes_it_at_once() -> None:
    world = poisoned()
    world.configure(backoff="fixed 500")
    world.redrive(1)
    world.poll()

    assert world.nack(1, delay_ms=500) == 1
    assert world.owed == [1]
    world.poll()
    assert world.nack(1) == 1
    assert world.dead == [1]  # two attempts are its bound
