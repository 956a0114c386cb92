"""Nodes: runs of consecutive entries, kept as the raw RESP they are sent as.

A stream is a list of nodes. The last one is open: lists of ids and entries
that grow. When the next one opens it is sealed: one immutable ``payload`` of
entries back to back, and an ``index`` of ids and offsets; both may leave
memory once they are stored, and come back when somebody reads them. A deleted
entry is a bit in ``dead``; the payload never changes.

An entry is ``*2 $id *2n $field $value ...`` and is the same in RESP2 and RESP3.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from .ids import SEQ_MAX, EntryID

if TYPE_CHECKING:
    from .stream import Stream

_INDEX = struct.Struct("<QQI")  # ms, seq, end offset of the entry in the payload
INDEX_BYTES = _INDEX.size

_SLICE_BYTES = 128  # what a slice takes itself
_LISTPACK_EMPTY_BYTES = 7  # header and end mark of an empty listpack


# "$n" lines by n, for the lengths that come most often
_ID_LINES = [b"*2\r\n$%d\r\n" % size for size in range(48)]
_SIZE_LINES = [b"\r\n$%d\r\n" % size for size in range(1024)]


def encode_entry(id_: EntryID, fields: Sequence[bytes]) -> bytes:
    """The raw RESP of one entry; ``fields`` are field, value, field, value ..."""
    id_text = b"%d-%d" % (id_ >> 64, id_ & SEQ_MAX)
    head = _ID_LINES[len(id_text)]
    if len(fields) == 2:  # by far the most common shape
        field, value = fields
        name_line, value_line = _size_line(len(field)), _size_line(len(value))
        return b"".join(
            (head, id_text, b"\r\n*2", name_line, field, value_line, value, b"\r\n")
        )
    parts = [head, id_text, b"\r\n*%d" % len(fields)]
    for field in fields:
        parts += (_size_line(len(field)), field)
    parts.append(b"\r\n")
    return b"".join(parts)


def _size_line(size: int) -> bytes:
    return _SIZE_LINES[size] if size < 1024 else b"\r\n$%d\r\n" % size


def decode_fields(entry: bytes) -> list[bytes]:
    """The fields and values of a raw entry, in order."""
    position = entry.index(b"*", 1)
    end = entry.index(b"\r\n", position)
    fields = []
    for _ in range(int(entry[position + 1 : end])):
        start = end + 3  # past \r\n$
        end = entry.index(b"\r\n", start)
        length = int(entry[start:end])
        fields.append(entry[end + 2 : end + 2 + length])
        end += 2 + length
    return fields


class Node:
    """One run of entries. Open while ``ids`` and ``entries`` are lists."""

    __slots__ = (
        "count",
        "dead",
        "entries",
        "field_names",
        "first",
        "first_ms",
        "first_seq",
        "ids",
        "index",
        "last",
        "listpack_bytes",
        "live",
        "payload",
        "pins",
        "stored",
    )

    def __init__(self, first: EntryID) -> None:
        self.first = first
        self.first_ms = first >> 64
        self.first_seq = first & SEQ_MAX
        self.last = first
        self.count = 0  # live and deleted
        self.live = 0
        self.dead = 0  # bit i: entry i is deleted
        self.listpack_bytes = _LISTPACK_EMPTY_BYTES
        self.field_names: Sequence[bytes] | None = (
            None  # of the first entry, once needed
        )
        self.ids: list[EntryID] | None = []
        self.entries: list[bytes] | None = []
        self.payload: bytes | None = None
        self.index: bytes | None = None
        self.pins = 0  # replies on their way out that still need the payload
        self.stored = False  # payload and index are in the store

    @property
    def resident(self) -> bool:
        return self.entries is not None or self.payload is not None

    @property
    def kept_bytes(self) -> int:
        """Bytes that leave memory when the node is evicted."""
        if self.payload is None or self.index is None:
            return 0
        return len(self.payload) + len(self.index)

    def append(self, id_: EntryID, entry: bytes, size: int) -> None:
        assert self.ids is not None and self.entries is not None  # noqa: PT018
        self.ids.append(id_)
        self.entries.append(entry)
        self.last = id_
        self.count += 1
        self.live += 1
        self.listpack_bytes += size

    def seal(self) -> View:
        """Close the node; the view of it that reading would make again."""
        assert self.ids is not None and self.entries is not None  # noqa: PT018
        view = View(self)
        view.ends = list(accumulate(map(len, self.entries)))
        self.payload = b"".join(self.entries)
        self.index = encode_index(self.ids, self.entries)
        self.ids = self.entries = self.field_names = None
        return view

    def unseal(self) -> None:
        """Open the node again: it is the last of its stream after a restart."""
        ids, ends = self.decode()
        payload = self.payload
        assert payload is not None
        starts = [0, *ends[:-1]]
        self.entries = [payload[a:b] for a, b in zip(starts, ends, strict=True)]
        self.ids = ids
        self.payload = self.index = None

    def decode(self) -> tuple[list[EntryID], list[int]]:
        """The ids and end offsets of a resident sealed node."""
        assert self.index is not None
        ids, ends = [], []
        for ms, seq, end in _INDEX.iter_unpack(self.index):
            ids.append(ms << 64 | seq)
            ends.append(end)
        return ids, ends

    def evict(self) -> None:
        self.payload = self.index = None


class View:
    """A resident node opened for reading: ids by position, raw entries."""

    __slots__ = ("ends", "ids", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        if node.ids is not None:
            self.ids: list[EntryID] = node.ids
            self.ends: list[int] | None = None
        else:
            self.ids, self.ends = node.decode()

    def position(self, id_: EntryID) -> int:
        """Where the first entry at or above ``id_`` stands."""
        return bisect_left(self.ids, id_)

    def is_live(self, position: int) -> bool:
        return not self.node.dead >> position & 1

    def entry(self, position: int) -> bytes:
        if self.ends is None:
            assert self.node.entries is not None
            return self.node.entries[position]
        assert self.node.payload is not None
        start = self.ends[position - 1] if position else 0
        return self.node.payload[start : self.ends[position]]

    def entries(self, start: int, stop: int) -> list[bytes]:
        """The raw entries from ``start`` up to ``stop``, deleted ones too."""
        ends = self.ends
        if ends is None:
            assert self.node.entries is not None
            return self.node.entries[start:stop]
        payload = self.node.payload
        assert payload is not None
        entries, begin = [], ends[start - 1] if start else 0
        for end in ends[start:stop]:
            entries.append(payload[begin:end])
            begin = end
        return entries


class Slice:
    """Live entries of one node, read when the socket has room for them.

    Holds the deletions as they were at dispatch, and pins the node: a pinned
    node's payload is not deleted from the store before it was read.
    """

    __slots__ = ("_dead", "_positions", "node", "stream")

    def __init__(self, stream: Stream, node: Node, positions: Sequence[int]) -> None:
        self.stream = stream
        self.node = node
        self._positions = positions
        self._dead = node.dead
        node.pins += 1

    @property
    def kept_bytes(self) -> int:
        """Bytes in memory while it waits; what it reads is not."""
        if isinstance(self._positions, range):
            return _SLICE_BYTES
        return _SLICE_BYTES + 8 * len(self._positions)

    def bytes(self) -> bytes:
        """The raw entries. The node must be resident."""
        view = View(self.node)
        live = [i for i in self._positions if not self._dead >> i & 1]
        return b"".join([view.entry(i) for i in live])

    def release(self) -> None:
        """Call once: the slice was sent or dropped."""
        self.node.pins -= 1


def encode_index(ids: Sequence[EntryID], entries: Sequence[bytes]) -> bytes:
    packed, end = bytearray(), 0
    for id_, entry in zip(ids, entries, strict=True):
        end += len(entry)
        packed += _INDEX.pack(id_ >> 64, id_ & SEQ_MAX, end)
    return bytes(packed)


# --- Redis's node boundaries: what an entry would take in a listpack


def opening_size(fields: Sequence[bytes]) -> int:
    """Bytes as the first entry of a new node.

    Redis closes a node by the size of its listpack, and approximate trimming
    removes whole nodes, so the boundaries can be seen by clients.
    """
    names, values = fields[::2], fields[1::2]
    # the master entry: count, deleted, number of fields, the names, an end mark
    master = 4 + _int_bytes(len(names)) + sum(map(_element_bytes, names)) + 2
    # flags, two zero differences, the values, the number of elements
    return master + 6 + sum(map(_element_bytes, values)) + _int_bytes(len(names) + 3)


def following_size(node: Node, id_: EntryID, fields: Sequence[bytes]) -> int:
    """Bytes as one more entry of an open node."""
    ms_more = (id_ >> 64) - node.first_ms
    seq_more = (id_ & SEQ_MAX) - node.first_seq
    head = 4 if 0 <= ms_more < 128 else 2 + _int_bytes(ms_more)  # flags, ms
    head += 2 if 0 <= seq_more < 128 else _int_bytes(seq_more)
    if node.field_names is None:
        assert node.entries is not None
        node.field_names = decode_fields(node.entries[0])[::2]
    if fields[::2] == node.field_names:
        if len(fields) == 2:
            size = len(fields[1])
            if 20 < size < 64:  # what most values are, without a call
                return head + size + 4
            if 20 < size < 4096:
                return head + size + (5 if size <= 125 else 6)
            return head + _element_bytes(fields[1]) + 2
        values = fields[1::2]
        body = sum(map(_element_bytes, values))
        return head + body + _int_bytes(len(values) + 3)
    body = sum(map(_element_bytes, fields))
    fields_bytes = _int_bytes(len(fields) >> 1)
    return head + fields_bytes + body + _int_bytes(len(fields) + 4)


def _element_bytes(text: bytes) -> int:
    length = len(text)
    if length < 21 and _is_integer(text):
        return _int_bytes(int(text))
    if length < 64:
        return length + 2
    body = length + (2 if length < 4096 else 5)
    return body + _backlen_bytes(body)


def _is_integer(text: bytes) -> bool:
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or (digits[0] == 48 and text != b"0"):
        return False
    return -(2**63) <= int(text) < 2**63


def _int_bytes(value: int) -> int:
    if 0 <= value < 128:
        return 2
    if -4096 <= value < 4096:
        return 3
    for bits, size in ((16, 4), (24, 5), (32, 6)):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return size
    return 10


def _backlen_bytes(body: int) -> int:
    if body <= 127:
        return 1
    return 2 if body < 16383 else 3 if body < 2097151 else 4


def first_zero(mask: int) -> int:
    """The place of the lowest bit that is not set."""
    return (~mask & (mask + 1)).bit_length() - 1


def places_until(entries: Sequence[bytes], bytes_max: int) -> int:
    """How many entries are read until they are ``bytes_max`` or more."""
    totals = enumerate(accumulate(map(len, entries)), 1)
    return next(kept for kept, total in totals if total >= bytes_max)
