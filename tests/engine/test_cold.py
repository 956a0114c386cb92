"""A verb over many nodes that left memory is run again once, not once a node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from felixresp.engine import cold
from felixresp.engine.errors import NotResident
from felixresp.engine.nodes import Node
from felixresp.engine.settle import FATAL
from tests.scenarios.world import VISIBILITY_MS, World

NODES = 50
ALL = range(1, NODES + 1)


def evict(world: World) -> dict[Node, tuple[bytes, bytes]]:
    """Every sealed node leaves memory; returns what the store would have."""
    store = {}
    for node in world.stream.nodes:
        if node.payload is not None and node.index is not None:
            store[node] = node.payload, node.index
    world.keyspace.cache.stored(store)
    world.keyspace.cache.shrink(0)
    return store


def runs(world: World, verb: Callable[[], object]) -> int:
    """How often the verb is run until it has all it needs."""
    store = evict(world)
    for number in range(1, 2 * NODES):
        try:
            verb()
        except NotResident as missing:
            for node in missing.nodes:
                world.keyspace.cache.load(node, *store[node])
        else:
            return number
    msg = "always something missing"
    raise AssertionError(msg)


def _poll_new(world: World) -> Callable[[], object]:
    return world.poll


def _poll_owed(world: World) -> Callable[[], object]:
    world.poll()
    world.lapse()
    return world.poll


def _claim(world: World) -> Callable[[], object]:
    world.poll()
    return lambda: world.claim(b"bob", *ALL)


def _autoclaim(world: World) -> Callable[[], object]:
    world.poll()
    return lambda: world.autoclaim(b"bob")


def _read_history(world: World) -> Callable[[], object]:
    world.poll()
    return lambda: world.history(b"alice")


def _lapse(world: World) -> Callable[[], object]:
    world.poll()
    world.stream.delete([(NODES - 1) << 64])
    world.at(VISIBILITY_MS)
    return world.fire_timer


def _count_unread(world: World) -> Callable[[], object]:
    world.poll()
    world.set_id(0)
    return lambda: world.group.lag


def _ack_lost_deliveries(world: World) -> Callable[[], object]:
    world.group.recovered_tail = world.stream.last_id
    return lambda: world.ack(*ALL)


def _nack(world: World) -> Callable[[], object]:
    world.poll()
    world.delete(NODES - 1)
    return lambda: world.nack(*ALL)


def _force(world: World) -> Callable[[], object]:
    return lambda: world.nack(*ALL, force=True)


def _redrive(world: World) -> Callable[[], object]:
    world.poll()
    world.nack(*ALL, mode=FATAL)
    return lambda: world.redrive(*ALL)


VERBS = [
    _poll_new,
    _poll_owed,
    _claim,
    _autoclaim,
    _read_history,
    _lapse,
    _count_unread,
    _ack_lost_deliveries,
    _nack,
    _force,
    _redrive,
]


@pytest.mark.parametrize("prepare", VERBS)
def test_a_verb_names_at_once_all_the_nodes_it_needs(
    prepare: Callable[[World], Callable[[], object]],
) -> None:
    world = World(entries=NODES, stream_node_max_entries=1)
    verb = prepare(world)

    assert runs(world, verb) == 2


@pytest.mark.parametrize("prepare", VERBS)
def test_it_names_no_more_than_are_worth_one_read(
    prepare: Callable[[World], Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(entries=NODES, stream_node_max_entries=1)
    verb = prepare(world)
    monkeypatch.setattr(cold, "_READ_BYTES_MAX", 10 * cold._NODE_BYTES)

    assert NODES // 10 < runs(world, verb) < NODES // 3


def test_a_short_poll_needs_no_more_nodes_than_its_entries() -> None:
    world = World(entries=NODES, stream_node_max_entries=5)
    evict(world)

    with pytest.raises(NotResident) as missing:
        world.poll(count=7)

    assert len(missing.value.nodes) == 2


def test_a_poll_cut_by_bytes_needs_only_the_nodes_before_the_cut() -> None:
    world = World(stream_node_max_entries=1)
    world.append(*ALL, size=1000)
    evict(world)

    with pytest.raises(NotResident) as missing:
        world.poll(bytes_max=3000)

    assert 2 <= len(missing.value.nodes) <= 4
