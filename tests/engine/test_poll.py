"""Polls, beyond what the scenarios tell."""

from __future__ import annotations

import pytest

from felixresp.engine import claims
from felixresp.engine.errors import NotResident
from tests.engine.test_claims import evict
from tests.scenarios.world import World


def test_nothing_is_handed_out_when_a_counter_needs_a_node_that_is_gone() -> None:
    """Owed entries that are in memory, and a first entry that is not."""
    world = World(entries=6, stream_node_max_entries=4)
    world.poll(count=6)
    claims.move(world.group, 5 << 64, 5)
    world.ack(1, 2, 3, 4, 6)
    world.append(7)
    world.stream.delete([1 << 64])
    world.lapse()
    assert world.owed == [5]
    world.changes()
    store = evict(world)

    with pytest.raises(NotResident) as missing:
        world.poll()
    assert world.changes() == []
    for node in missing.value.nodes:
        world.keyspace.cache.load(node, *store[node])

    assert world.poll() == [5, 7]


def test_the_byte_cut_also_ends_a_poll_among_entries_taken_out_of_turn() -> None:
    world = World()
    world.append(1, 2, 3, 4, size=100)
    world.claim(b"bob", 2, force=True)

    assert world.poll(bytes_max=150) == [1, 3]
    assert world.poll() == [4]


def test_a_poll_over_nothing_but_taken_entries_passes_them() -> None:
    world = World(entries=3)
    world.claim(b"bob", 1, 2, 3, force=True)

    assert world.poll() == []

    assert world.group.head == 3 << 64
    assert world.group.lag == 0


def test_a_noack_poll_of_owed_entries_finishes_them() -> None:
    world = World(entries=2)
    world.poll()
    world.lapse()

    assert world.poll(no_ack=True) == [1, 2]
    assert world.cursor == 2


def test_entries_taken_out_of_turn_may_be_gone_when_the_head_would_reach_them() -> None:
    world = World(entries=3)
    world.claim(b"bob", 3, force=True)
    assert world.poll(count=2) == [1, 2]
    world.stream.delete([3 << 64])

    assert world.poll() == []
    assert world.group.lag == 0


def test_at_the_end_of_the_stream_a_poll_looks_no_further() -> None:
    world = World(entries=2)
    world.stream.delete([1 << 64, 2 << 64])

    assert world.poll() == []
    assert world.group.head == 0


def test_a_poll_that_only_buries_owed_entries_is_empty() -> None:
    world = World(entries=2)
    world.poll()
    world.lapse()
    world.settings.group_max_attempts = 1

    assert world.poll() == []
    assert world.dead == [1, 2]
