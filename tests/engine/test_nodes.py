"""Entries as raw RESP, and nodes that hold them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from felixresp.config import Settings
from felixresp.engine.ids import MAX_ID, make_id
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import (
    Node,
    Slice,
    View,
    decode_fields,
    encode_entry,
    following_size,
    opening_size,
)

PAIRS = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40)), min_size=1)


def node_of(*numbers: int, sealed: bool = True) -> Node:
    node = Node(numbers[0] << 64)
    for number in numbers:
        entry = encode_entry(number << 64, [b"f", b"v%d" % number])
        node.append(number << 64, entry, 10)
    if sealed:
        node.seal()
    return node


@given(PAIRS, st.integers(0, MAX_ID))
def test_fields_come_back_from_a_raw_entry(
    pairs: list[tuple[bytes, bytes]], id_: int
) -> None:
    fields = [text for pair in pairs for text in pair]

    assert decode_fields(encode_entry(id_, fields)) == fields


def test_an_entry_is_the_resp_that_is_sent() -> None:
    entry = encode_entry(make_id(7, 1), [b"a", b"bc", b"", b"d"])

    assert entry == (
        b"*2\r\n$3\r\n7-1\r\n*4\r\n$1\r\na\r\n$2\r\nbc\r\n$0\r\n\r\n$1\r\nd\r\n"
    )


@pytest.mark.parametrize("sealed", [False, True])
def test_a_view_reads_an_open_and_a_sealed_node_alike(sealed: bool) -> None:
    node = node_of(1, 2, 4, sealed=sealed)
    node.dead = 0b010
    view = View(node)
    entries = [encode_entry(n << 64, [b"f", b"v%d" % n]) for n in (1, 2, 4)]

    assert view.ids == [1 << 64, 2 << 64, 4 << 64]
    assert [view.entry(at) for at in range(3)] == entries
    assert [view.is_live(at) for at in range(3)] == [True, False, True]
    assert view.position(3 << 64) == 2


def test_sealing_and_opening_again_changes_nothing_that_is_read() -> None:
    node = node_of(1, 2, 3, sealed=False)
    ids, entries = node.ids, node.entries

    node.seal()
    assert node.resident
    assert node.kept_bytes > 0
    node.unseal()

    assert (node.ids, node.entries) == (ids, entries)
    assert node.kept_bytes == 0


def test_a_slice_gives_the_entries_that_lived_when_it_was_made() -> None:
    keyspace = Keyspace(Settings())
    stream = keyspace.create_stream(0, b"s")
    node = node_of(1, 2, 3)
    node.dead = 0b001

    part = Slice(stream, node, range(3))
    node.dead = 0b111

    assert node.pins == 1
    assert part.bytes() == encode_entry(2 << 64, [b"f", b"v2"]) + encode_entry(
        3 << 64, [b"f", b"v3"]
    )
    part.release()
    assert node.pins == 0


def test_the_sizes_are_those_of_a_listpack() -> None:
    """A real server closes its nodes by these: test_node_boundaries.py."""
    assert opening_size([b"f", b"v"]) == 22
    node = node_of(1, sealed=False)

    assert following_size(node, 2 << 64, [b"f", b"v"]) == 11
    assert following_size(node, 2 << 64, [b"g", b"v"]) == 16
    assert following_size(node, 1 << 64 | 500, [b"f", b"v"]) == 12


def test_numbers_are_small_in_a_listpack_and_other_text_is_not() -> None:
    node = node_of(1, sealed=False)
    sizes = {
        text: following_size(node, 2 << 64, [b"f", text]) - 8
        for text in (
            b"0", b"127", b"128", b"-1", b"4095", b"-4096", b"4096", b"-32768",
            b"32768", b"8388607", b"8388608", b"2147483647", b"2147483648",
            b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
            b"01", b"-0", b"-", b"", b"1.5", b"x" * 63, b"x" * 64, b"x" * 4095,
            b"x" * 4096, b"x" * 20_000, b"x" * 3_000_000,
        )
    }  # fmt: skip

    assert list(sizes.values()) == [
        2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 10, 10, 10, 21,
        4, 4, 3, 2, 5, 65, 67, 4099, 4103, 20_008, 3_000_009,
    ]  # fmt: skip
