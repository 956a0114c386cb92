"""How many skipped entries lie directly below the one that is handed out."""

from __future__ import annotations

import random

from tests.scenarios.world import World


def below(world: World, *numbers: int) -> list[int]:
    return [world.skipped_below(number) for number in numbers]


def test_a_skip_below_a_new_entry_is_told_when_it_is_handed_out() -> None:
    world = World(entries=3)
    world.poll(count=1)
    world.delete(1)
    world.lapse()

    assert world.poll(count=1) == [2]
    assert below(world, 2) == [1]


def test_skips_below_a_skipped_entry_go_on_to_the_next() -> None:
    world = World(entries=4)
    world.delete(1)
    world.poll(count=2)
    assert below(world, 2) == [1]
    world.delete(2)

    world.lapse()

    assert world.poll() == [3, 4]
    assert below(world, 3, 4) == [2, 0]


def test_a_hole_at_the_tail_is_below_the_next_that_is_written() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.delete(2)
    world.append(3)

    assert world.poll() == [3]
    assert below(world, 3) == [1]


def test_a_seek_or_setid_starts_to_count_anew() -> None:
    for move in (World.seek, World.set_id):
        world = World(entries=4)
        world.delete(1, 2)
        world.poll()

        move(world, 0)
        world.delete(3)

        assert 4 in (*world.poll(), *(id_ >> 64 for id_ in world.group.pending))
        assert below(world, 4)[0] <= 3


def test_many_holes_are_kept_in_few_places_and_none_is_forgotten() -> None:
    world = World(entries=5000)
    world.delete(*range(1, 5000, 2))
    assert len(world.group.holes) <= 1024

    told = 0
    while given := world.poll(count=1000):
        told += sum(below(world, *given))

    assert told == 2500


def test_the_counts_are_right_whatever_is_deleted_when() -> None:
    for seed in range(30):
        _delete_at_random(random.Random(seed))


def _delete_at_random(chance: random.Random) -> None:
    """Among new entries, in nodes of three; nothing that was handed out."""
    world = World(entries=40, stream_node_max_entries=3)
    left = list(range(1, 41))
    gone: set[int] = set()
    last = 0
    while left:
        victims = chance.sample(left, min(len(left), chance.randint(0, 4)))
        world.delete(*victims)
        gone.update(victims)
        left = [number for number in left if number not in gone]
        given = world.poll(count=chance.randint(1, 3))
        assert given == left[: len(given)]
        for number in given:
            wanted = sum(last < hole < number for hole in gone)
            assert below(world, number) == [wanted]
            last = number
        left = left[len(given) :]
