"""Rules: what happens to the stream, and to its nodes."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.simulation.machine import EngineAndModel
from tests.simulation.promises import Promise, same

COUNTS = st.integers(1, 6)
IDS = st.integers(1, 30).map(lambda ms: ms << 64)
ID_LISTS = st.lists(IDS, min_size=1, max_size=6)


class StreamRules(EngineAndModel):
    @rule(number=st.integers(1, 6), step=st.integers(1, 3), size=st.integers(0, 40))
    def append(self, number: int, step: int, size: int) -> None:
        for _ in range(number):
            self._append(self.model.last_id + (step << 64), size)

    def _append(self, id_: int, size: int) -> None:
        self.stream.append(id_, [b"field", b"v" * size])
        self.model.last_id = id_
        entry = self.run(lambda: self.stream.entry(id_))
        assert entry is not None
        self.model.entries[id_] = entry

    @rule(ids=ID_LISTS)
    def delete(self, ids: list[int]) -> None:
        there = set(ids) & self.model.entries.keys()

        gone = self.run(lambda: self.stream.delete(ids))

        same(Promise.SAME_STREAM, gone, len(there))
        self.model.delete(there)

    @rule(length=st.integers(0, 15), whole=st.booleans(), limit=st.integers(0, 5))
    def trim(self, length: int, whole: bool, limit: int) -> None:
        surplus = max(len(self.model.entries) - length, 0)

        gone = self.run(
            lambda: self.stream.trim_to_length(length, whole=whole, limit=limit)
        )

        self._trimmed(gone, surplus, whole)
        id_ = self.model.last_id - (length << 64)
        below = sum(i < id_ for i in self.model.entries)

        gone = self.run(lambda: self.stream.trim_to_id(id_, whole=whole, limit=0))

        self._trimmed(gone, below, whole)

    def _trimmed(self, gone: int, most: int, whole: bool) -> None:
        same(Promise.SAME_STREAM, gone, min(gone, most) if whole else most)
        self.model.delete(sorted(self.model.entries)[:gone])

    @rule()
    def evict(self) -> None:
        """Everything that may leave memory leaves it."""
        sealed = [node for node in self.stream.nodes if node.payload is not None]
        for node in sealed:
            assert node.payload is not None
            assert node.index is not None
            self.payloads[node] = node.payload, node.index
        self.keyspace.cache.stored(sealed)
        self.keyspace.cache.shrink(0)
        assert self.keyspace.cache.bytes == 0

    @rule(start=IDS, end=IDS, count=st.one_of(st.none(), COUNTS), reverse=st.booleans())
    def read(self, start: int, end: int, count: int | None, reverse: bool) -> None:
        wanted = [i for i in sorted(self.model.entries) if start <= i <= end]
        wanted = (wanted[::-1] if reverse else wanted)[:count]

        total, parts = self.run(
            lambda: self.stream.range(start, end, count, reverse=reverse)
        )

        raw = [self.resolve(part) for part in parts]
        same(Promise.SAME_STREAM, total, len(wanted))
        entries = b"".join(self.model.entries[i] for i in wanted)
        same(Promise.SAME_STREAM, b"".join(raw), entries)
