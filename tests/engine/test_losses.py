"""A node that cannot be read goes, and takes nothing else with it."""

from __future__ import annotations

import pytest

from felixresp.engine.losses import lose
from tests.scenarios.world import World


def world_of_nodes() -> World:
    """Nodes of three: 1 to 3, 4 to 6, 7 to 9, and an open one of 10."""
    return World(entries=10, stream_node_max_entries=3)


def test_the_entries_of_a_lost_node_are_gone_and_the_others_are_not() -> None:
    world = world_of_nodes()

    assert lose(world.stream, world.stream.nodes[1])

    assert world.stream.length == 7
    assert world.stream.max_deleted_id == 6 << 64
    assert world.poll() == [1, 2, 3, 7, 8, 9, 10]


@pytest.mark.parametrize("polled", range(11))
def test_wherever_a_group_stands_its_lag_is_right_after_a_loss(polled: int) -> None:
    world = world_of_nodes()
    if polled:
        world.poll(count=polled)

    lose(world.stream, world.stream.nodes[1])

    assert world.group.lag == sum(n > polled for n in (1, 2, 3, 7, 8, 9, 10))
    world.poll()
    assert world.group.lag == 0


def test_pending_entries_of_a_lost_node_are_skipped_and_counted() -> None:
    world = world_of_nodes()
    world.poll(count=5)
    lose(world.stream, world.stream.nodes[1])

    world.lapse()

    assert world.group.skipped == 2
    assert world.poll() == [1, 2, 3, 7, 8, 9, 10]


def test_a_node_is_lost_once() -> None:
    world = world_of_nodes()
    node = world.stream.nodes[1]
    lose(world.stream, node)

    assert not lose(world.stream, node)
    assert world.stream.length == 7


def test_a_node_that_was_trimmed_is_not_lost_as_well() -> None:
    world = world_of_nodes()
    first, last = world.stream.nodes[0], world.stream.nodes[-2]
    world.stream.trim_to_length(1, whole=False, limit=0)
    world.changes()

    assert not lose(world.stream, first)
    assert not lose(world.stream, last)
    assert not world.changes()


def test_a_loss_is_the_same_after_a_crash() -> None:
    world = world_of_nodes()
    world.poll(count=5)
    lose(world.stream, world.stream.nodes[1])
    world.changes()
    before = (world.stream.length, world.group.passed)

    world.crash()

    assert (world.stream.length, world.group.passed) == before
    assert world.poll() == [1, 2, 3, 7, 8, 9, 10]
