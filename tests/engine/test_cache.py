"""Which nodes may leave memory, and when."""

from __future__ import annotations

from felixresp.engine.cache import NodeCache
from felixresp.engine.nodes import Node, encode_entry


def sealed(first: int = 1, size: int = 100) -> Node:
    node = Node(first)
    node.append(first, encode_entry(first, [b"f", b"x" * size]), 10)
    node.seal()
    return node


def cache_of(*nodes: Node, stored: bool = True) -> NodeCache:
    cache = NodeCache()
    for node in nodes:
        cache.sealed(node)
    if stored:
        cache.stored(nodes)
    return cache


def test_only_a_stored_node_leaves() -> None:
    node = sealed()
    cache = cache_of(node, stored=False)

    cache.shrink(0)
    assert node.resident
    cache.stored([node])
    cache.shrink(0)

    assert not node.resident
    assert cache.bytes == 0


def test_the_oldest_leaves_first_and_no_more_than_needed() -> None:
    nodes = [sealed(1), sealed(2), sealed(3)]
    cache = cache_of(*nodes)

    cache.shrink(nodes[0].kept_bytes * 2)

    assert [node.resident for node in nodes] == [False, True, True]
    assert cache.bytes == sum(node.kept_bytes for node in nodes)


def test_a_pinned_node_stays_until_it_is_released() -> None:
    node = sealed()
    cache = cache_of(node)
    node.pins = 1

    cache.shrink(0)
    assert node.resident
    node.pins = 0
    cache.shrink(0)

    assert not node.resident
    assert cache.bytes == 0


def test_an_evicted_node_comes_back_once() -> None:
    node = sealed()
    payload, index = node.payload, node.index
    assert payload is not None
    assert index is not None
    cache = cache_of(node)
    cache.shrink(0)

    cache.load(node, payload, index)
    cache.load(node, payload, index)

    assert (node.payload, node.index) == (payload, index)
    assert cache.bytes == node.kept_bytes
    cache.shrink(0)
    assert cache.bytes == 0


def test_a_node_evicted_before_the_store_says_so_is_not_counted_twice() -> None:
    node = sealed()
    cache = cache_of(node)
    cache.shrink(0)

    cache.stored([node])
    cache.shrink(-1)

    assert cache.bytes == 0


def test_a_pinned_node_that_left_its_stream_keeps_its_payload_uncounted() -> None:
    node = sealed()
    cache = cache_of(node)
    node.pins = 1

    cache.forget(node)
    assert cache.bytes == 0
    assert node.resident
    node.pins = 0
    cache.shrink(0)

    assert cache.bytes == 0


def test_a_node_that_left_its_stream_can_be_loaded_for_a_reply_on_its_way() -> None:
    node = sealed()
    payload, index = node.payload, node.index
    assert payload is not None
    assert index is not None
    cache = cache_of(node)
    cache.shrink(0)
    node.pins = 1
    cache.forget(node)

    cache.load(node, payload, index)

    assert node.resident
    assert cache.bytes == 0


def test_an_opened_node_is_not_evicted() -> None:
    node = sealed()
    cache = cache_of(node)

    cache.unseal(node)
    cache.shrink(-1)

    assert cache.bytes == 0
    assert node.entries is not None
