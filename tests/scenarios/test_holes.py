"""Entries that are gone: trimmed, deleted, or never there."""

from __future__ import annotations

from tests.scenarios.world import World


def test_trimmed_entries_are_skipped_and_counted_and_the_cursor_moves() -> None:
    world = World(entries=4)
    world.poll()
    world.stream.trim_to_id(3 << 64, whole=False, limit=0)

    world.lapse()

    assert world.group.skipped == 2
    assert world.cursor == 2
    assert world.poll() == [3, 4]


def test_a_deleted_entry_stays_pending_until_it_is_settled() -> None:
    world = World(entries=2)
    world.poll()
    world.stream.delete([1 << 64])

    assert world.history(b"alice") == [1, 2]
    assert world.ack(1) == 1
    assert world.group.skipped == 0


def test_a_deleted_owed_entry_is_finished_by_the_next_poll() -> None:
    world = World(entries=2)
    world.poll()
    world.lapse()
    world.stream.delete([1 << 64])

    assert world.poll() == [2]
    assert world.group.skipped == 1
    assert world.cursor == 1


def test_entries_gone_before_the_group_reached_them_are_passed_over() -> None:
    world = World(entries=5)
    world.stream.delete([1 << 64, 3 << 64])

    assert world.poll() == [2, 4, 5]
    world.ack(2, 4, 5)
    assert world.cursor == 5
    assert world.group.lag == 0


def test_a_cursor_far_below_the_oldest_entry_jumps_once() -> None:
    world = World(entries=5000, stream_node_max_entries=10)
    world.poll(count=10)
    world.ack(*range(1, 10))  # 10 is still held
    world.stream.trim_to_length(3, whole=False, limit=0)
    world.changes()

    world.lapse()

    assert world.cursor == 10
    assert world.poll() == [4998, 4999, 5000]
    world.ack(4998, 4999, 5000)
    assert world.cursor == 5000
    assert len(world.changes()) <= 6


def test_autoclaim_lists_what_is_gone_and_finishes_it() -> None:
    world = World(entries=3)
    world.poll()
    world.stream.delete([2 << 64])

    assert world.autoclaim(b"bob") == [1, 3]
    assert world.group.skipped == 1
    assert world.ack(2) == 0


def test_skipped_before_is_right_across_polls_and_redeliveries() -> None:
    world = World(entries=8)
    world.delete(1, 3, 4, 8)

    assert world.poll(count=1) == [2]
    assert world.poll() == [5, 6, 7]
    for _ in range(2):
        below = [world.skipped_below(number) for number in (2, 5, 6, 7)]
        assert below == [1, 2, 0, 0]
        world.lapse()
        assert world.poll() == [2, 5, 6, 7]


def test_an_entry_that_was_pending_and_is_gone_is_skipped_below_the_next_one() -> None:
    world = World(entries=4)
    world.poll(count=3)
    world.delete(1, 2)

    world.lapse()

    assert world.poll() == [3, 4]
    assert [world.skipped_below(number) for number in (3, 4)] == [2, 0]


def test_a_finished_entry_that_is_gone_was_not_skipped() -> None:
    world = World(entries=3)
    world.poll(count=1)
    world.ack(1)
    world.delete(1, 2)

    assert world.poll() == [3]
    assert world.skipped_below(3) == 1


def test_trimmed_entries_are_skipped_below_the_first_that_is_left() -> None:
    world = World(entries=10, stream_node_max_entries=3)
    world.poll(count=2)
    world.stream.trim_to_length(3, whole=False, limit=0)

    assert world.poll() == [8, 9, 10]
    assert world.skipped_below(8) == 5


def test_what_noack_passed_over_is_not_below_later_entries() -> None:
    world = World(entries=3)
    world.delete(1)
    assert world.poll(no_ack=True, count=1) == [2]

    assert world.poll() == [3]
    assert world.skipped_below(3) == 0
