"""A stream against a plain list of nodes, with nodes leaving memory at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from felixresp.config import Settings
from felixresp.engine.errors import IDsExhausted, IDTooSmall, NotResident
from felixresp.engine.ids import MAX_ID, SEQ_MAX, make_id
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node, Slice, encode_entry
from felixresp.engine.stream import Stream

T = TypeVar("T")
ENTRIES_MAX = 4  # of a node
IDS = st.integers(0, 60)


def new_stream(**values: int) -> Stream:
    return Keyspace(Settings(**values)).create_stream(0, b"s")


class StreamMachine(RuleBasedStateMachine):
    """The model: a list of nodes, each a dict of live entries and a count of all."""

    @initialize()
    def start(self) -> None:
        self.stream = new_stream(stream_node_max_entries=ENTRIES_MAX)
        self.keyspace = self.stream.keyspace
        self.payloads: dict[Node, tuple[bytes, bytes]] = {}
        self.nodes: list[tuple[dict[int, bytes], list[int]]] = []
        self.last = self.added = self.deleted = 0

    @rule(step=st.integers(1, 3), size=st.integers(0, 5))
    def append(self, step: int, size: int) -> None:
        id_ = self.last = self.last + step
        fields = [b"f", b"v" * size]
        if not self.nodes or len(self.nodes[-1][1]) == ENTRIES_MAX or self.tail_gone:
            self.nodes.append(({}, []))
        self.nodes[-1][0][id_] = encode_entry(id_, fields)
        self.nodes[-1][1].append(id_)
        self.tail_gone = False
        self.added += 1

        self.stream.append(id_, fields)

    @rule(number=st.integers(3, 9))
    def append_many(self, number: int) -> None:
        for _ in range(number):
            self.append(1, 1)

    @rule()
    def delete_the_tail(self) -> None:
        if self.nodes:
            self.delete(list(self.nodes[-1][0]))

    tail_gone = False

    @rule(ids=st.lists(IDS, min_size=1, max_size=6))
    def delete(self, ids: list[int]) -> None:
        there = set(ids) & self.entries.keys()

        assert self._run(lambda: self.stream.delete(ids)) == len(there)

        self._forget(there)
        self.deleted = max(self.deleted, *there, 0)

    @rule(length=st.integers(0, 30), whole=st.booleans(), limit=st.integers(0, 12))
    def trim_to_length(self, length: int, whole: bool, limit: int) -> None:
        surplus = len(self.entries) - length
        if whole:
            going = self._whole_nodes(lambda gone, _: gone <= surplus, limit)
        else:
            going = sorted(self.entries)[: max(surplus, 0)]

        gone = self._run(
            lambda: self.stream.trim_to_length(length, whole=whole, limit=limit)
        )

        assert gone == len(going)
        self._forget(going)

    @rule(id_=IDS, whole=st.booleans(), limit=st.integers(0, 12))
    def trim_to_id(self, id_: int, whole: bool, limit: int) -> None:
        if whole:
            going = self._whole_nodes(lambda _, last: last < id_, limit)
        else:
            going = [i for i in self.entries if i < id_]

        gone = self._run(lambda: self.stream.trim_to_id(id_, whole=whole, limit=limit))

        assert gone == len(going)
        self._forget(going)

    @rule(last=st.integers(0, 3), added=IDS, deleted=IDS)
    def set_id(self, last: int, added: int, deleted: int) -> None:
        self.last, self.added, self.deleted = self.last + last, added, deleted

        self.stream.set_id(self.last, added, deleted)

    @rule()
    def evict(self) -> None:
        sealed = [node for node in self.stream.nodes if node.payload is not None]
        for node in sealed:
            assert node.payload is not None
            assert node.index is not None
            self.payloads[node] = node.payload, node.index
        self.keyspace.cache.stored(sealed)
        self.keyspace.cache.shrink(0)
        assert self.keyspace.cache.bytes == 0

    @rule()
    def reopen_the_tail(self) -> None:
        """As after a restart."""
        self._run(self.stream.open_tail)
        self.tail_gone = False

    @rule(start=IDS, end=IDS, count=st.one_of(st.none(), IDS), reverse=st.booleans())
    def read(self, start: int, end: int, count: int | None, reverse: bool) -> None:
        ids = [i for i in sorted(self.entries, reverse=reverse) if start <= i <= end]
        ids = ids[:count]

        total, parts = self._run(
            lambda: self.stream.range(start, end, count, reverse=reverse)
        )

        assert total == len(ids)
        raw = b"".join(self._resolve(part) for part in parts)
        assert raw == b"".join(self.entries[i] for i in ids)

    @rule(after=IDS, count=st.integers(1, 20), bytes_max=st.integers(1, 400))
    def read_after(self, after: int, count: int, bytes_max: int) -> None:
        wanted: list[int] = []
        for id_ in sorted(i for i in self.entries if i > after):
            size = sum(len(self.entries[i]) for i in wanted)
            if len(wanted) == count or size >= bytes_max:
                break
            wanted.append(id_)

        ids, entries = self._run(
            lambda: self.stream.read_after(after, count, bytes_max)
        )

        assert ids == wanted
        assert entries == [self.entries[i] for i in wanted]

    @rule(id_=IDS)
    def look_up(self, id_: int) -> None:
        entries, stream = self.entries, self.stream

        assert self._run(lambda: stream.entry(id_)) == entries.get(id_)
        assert self._run(lambda: stream.contains(id_)) == (id_ in entries)
        below = sum(i <= id_ for i in entries)
        assert self._run(lambda: stream.count_until(id_)) == below
        assert self._run(stream.first_id) == min(entries, default=0)
        assert self._run(stream.top_id) == max(entries, default=0)

    @invariant()
    def counts_are_right(self) -> None:
        stream = self.stream
        assert (stream.length, stream.last_id) == (len(self.entries), self.last)
        assert stream.entries_added == self.added
        assert stream.max_deleted_id == self.deleted
        assert [n.live for n in stream.nodes] == [len(live) for live, _ in self.nodes]
        kept = sum(node.kept_bytes for node in stream.nodes)
        assert self.keyspace.cache.bytes == kept

    @property
    def entries(self) -> dict[int, bytes]:
        return {id_: entry for live, _ in self.nodes for id_, entry in live.items()}

    def _whole_nodes(self, fits: Callable[[int, int], bool], limit: int) -> list[int]:
        going: list[int] = []
        for live, all_ids in self.nodes:
            gone = len(going) + len(live)
            if not fits(gone, all_ids[-1]) or 0 < limit < gone:
                break
            going += live
        return going

    def _forget(self, ids: set[int] | list[int]) -> None:
        for live, _ in self.nodes:
            for id_ in ids:
                live.pop(id_, None)
        if self.nodes and not self.nodes[-1][0]:
            self.tail_gone = True
        self.nodes = [node for node in self.nodes if node[0]]

    def _resolve(self, part: bytes | Slice) -> bytes:
        if isinstance(part, bytes):
            return part
        self._load(part.node)
        raw = part.bytes()
        part.release()
        return raw

    def _load(self, node: Node) -> None:
        if not node.resident:
            self.keyspace.cache.load(node, *self.payloads[node])

    def _run(self, verb: Callable[[], T]) -> T:
        while True:
            before = self._looks()
            try:
                return verb()
            except NotResident as missing:
                assert self._looks() == before
                for node in missing.nodes:
                    assert not node.resident
                    self._load(node)

    def _looks(self) -> object:
        stream = self.stream
        nodes = [
            (n.first, n.last, n.count, n.live, n.dead, n.pins) for n in stream.nodes
        ]
        return nodes, stream.length, stream.max_deleted_id, len(self.keyspace.changes)


StreamMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=40, deadline=None
)
TestStreamMachine = StreamMachine.TestCase


def test_a_tail_that_left_memory_is_opened_once_it_is_back() -> None:
    stream = new_stream(stream_node_max_entries=2)
    for number in range(1, 4):
        stream.append(number, [b"f", b"v"])
    stream.delete([3])
    tail = stream.nodes[-1]
    payload, index = tail.payload, tail.index
    assert payload is not None
    assert index is not None
    stream.keyspace.cache.stored([tail])
    stream.keyspace.cache.shrink(0)

    with pytest.raises(NotResident):
        stream.open_tail()
    stream.keyspace.cache.load(tail, payload, index)
    stream.open_tail()
    stream.open_tail()

    assert tail.entries is not None
    assert stream.keyspace.cache.bytes == 0
    assert stream.count_until(2) == 2


def test_a_range_of_a_few_looks_at_no_more_nodes_than_it_needs() -> None:
    stream = new_stream(stream_node_max_entries=2)
    for number in range(1, 10):
        stream.append(number, [b"f", b"v"])

    assert stream.range(0, MAX_ID, 2, reverse=False)[0] == 2
    assert stream.range(0, MAX_ID, 0, reverse=False) == (0, [])


def test_entries_are_counted_up_to_the_end_of_a_node() -> None:
    stream = new_stream(stream_node_max_entries=2)
    for number in (1, 2, 5, 6, 7):
        stream.append(number, [b"f", b"v"])

    counts = [stream.count_until(id_) for id_ in range(9)]

    assert counts == [0, 1, 2, 2, 2, 3, 4, 5, 5]


def test_the_top_is_the_last_entry_that_is_left() -> None:
    stream = new_stream()
    for number in range(1, 6):
        stream.append(number, [b"f", b"v"])

    assert stream.top_id() == 5
    stream.delete([4, 5])
    assert (stream.first_id(), stream.top_id()) == (1, 3)
    stream.delete([1, 2, 3])
    assert (stream.first_id(), stream.top_id()) == (0, 0)


def test_the_next_id_follows_the_clock_and_never_goes_back() -> None:
    stream = new_stream()

    assert stream.next_id(5) == make_id(5, 0)
    stream.append(make_id(5, 0), [b"f", b"v"])
    assert stream.next_id(5) == stream.next_id(4) == make_id(5, 1)
    assert stream.next_id(6) == make_id(6, 0)


def test_an_id_with_a_sequence_to_choose_takes_the_next_one() -> None:
    stream = new_stream()
    stream.append(make_id(5, 7), [b"f", b"v"])

    assert stream.next_id_at(5) == make_id(5, 8)
    assert stream.next_id_at(6) == make_id(6, 0)
    with pytest.raises(IDTooSmall):
        stream.next_id_at(4)
    stream.append(make_id(5, SEQ_MAX), [b"f", b"v"])
    with pytest.raises(IDTooSmall):
        stream.next_id_at(5)
    assert stream.next_id(5) == make_id(6, 0)


def test_an_id_at_or_below_the_last_is_refused_and_nothing_changes() -> None:
    stream = new_stream()
    stream.append(5, [b"f", b"v"])
    stream.delete([5])
    stream.keyspace.take()

    for id_ in (4, 5):
        with pytest.raises(IDTooSmall):
            stream.append(id_, [b"f", b"v"])
    assert stream.keyspace.take() == []
    assert stream.length == 0


def test_after_the_last_possible_id_there_is_no_other() -> None:
    stream = new_stream()
    stream.append(MAX_ID, [b"f", b"v"])

    with pytest.raises(IDsExhausted):
        stream.next_id(10)


def test_a_long_range_is_read_while_the_socket_drains() -> None:
    stream = new_stream()
    for number in range(1, 600):
        stream.append(number, [b"f", b"x" * 1000])

    total, parts = stream.range(0, MAX_ID, None, reverse=False)
    slices = [part for part in parts if isinstance(part, Slice)]

    assert total == 599
    assert slices
    assert {part.node.pins for part in slices} == {1}
    raw = b"".join(p.bytes() if isinstance(p, Slice) else p for p in parts)
    assert raw.count(b"*2\r\n") == 2 * 599


def test_a_slice_keeps_its_entries_though_they_are_deleted_and_their_node_drops() -> (
    None
):
    stream = new_stream(stream_node_max_entries=2)
    for number in range(1, 600):
        stream.append(number, [b"f", b"x" * 1000])
    _, parts = stream.range(0, MAX_ID, None, reverse=False)
    last = parts[-2]
    assert isinstance(last, Slice)
    before = last.bytes()

    stream.trim_to_length(0, whole=False, limit=0)
    stream.keyspace.cache.shrink(0)

    assert last.bytes() == before
    last.release()
    assert stream.keyspace.cache.bytes == 0


@pytest.mark.parametrize(
    ("entries_max", "bytes_max", "nodes"), [(3, 0, 34), (0, 0, 1), (0, 25, 100)]
)
def test_a_node_closes_at_either_limit_and_never_when_both_are_off(
    entries_max: int, bytes_max: int, nodes: int
) -> None:
    stream = new_stream(
        stream_node_max_entries=entries_max, stream_node_max_bytes=bytes_max
    )

    for number in range(1, 101):
        stream.append(number, [b"f", b"value"])

    assert len(stream.nodes) == nodes
