"""A store without a disk, for tests: it keeps the batches, encoded.

``open`` replays them, so handing the same store a new keyspace is a crash and a
restart. Deferred, a batch finishes when the test says so, or some ticks later,
out of step over partitions; then it may also turn out fenced or unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..config import Settings
from ..engine.group import Group
from ..engine.keyspace import Keyspace
from ..engine.nodes import Node
from ..engine.stream import Stream
from .base import Batch, Failure, Recovered, Statistics
from .codec import Decoder, encode_changes


@dataclass(frozen=True, slots=True)
class Deferred:
    """A batch of partition p finishes ``ticks + p % spread`` ticks later;
    never by itself with ``ticks`` 0."""

    ticks: int = 0
    spread: int = 1


class _Waiting(NamedTuple):
    seq: int
    partition: int
    changes: bytes
    due_tick: int


class MemoryStore:
    """Implements storage.base.Store."""

    def __init__(
        self,
        settings: Settings,
        partitions: int = 1,
        deferred: Deferred | None = None,
    ) -> None:
        self.partitions = partitions
        self.atomic = partitions == 1
        self.on_durable: Callable[[int], None] = lambda _: None
        self.on_failure: Callable[[Failure], None] = lambda _: None
        self.statistics = Statistics()
        self._settings = settings
        self._deferred = deferred
        self._kept: list[tuple[int, bytes]] = []  # partition, changes
        self._epochs = [0] * partitions
        self._waiting: deque[_Waiting] = deque()
        self._unfinished: dict[int, int] = {}  # seq: batches on their way
        self._seq = self._durable = 0
        self._ticks = 0
        self._doubtful: dict[int, bool] = {}  # partition: kept all the same

    def open(self, keyspace: Keyspace) -> Recovered:
        """What was not finished is lost."""
        self._waiting.clear()
        self._unfinished.clear()
        self._doubtful.clear()
        self._durable = self._seq
        replayed = self.replay(keyspace)
        streams = [
            value
            for database in keyspace.databases
            for value in database.values()
            if isinstance(value, Stream)
        ]
        for stream in streams:
            stream.open_tail()
        return Recovered(
            streams=len(streams),
            groups=sum(len(stream.groups) for stream in streams),
            entries=sum(stream.length for stream in streams),
            changes_replayed=replayed,
            clean=False,
        )

    def acquire(self, partition: int) -> int:
        self._epochs[partition] += 1
        return self._epochs[partition]

    def submit(self, batches: Sequence[Batch]) -> int:
        stale = [b.partition for b in batches if b.epoch != self._epochs[b.partition]]
        if stale:
            self.on_failure(Failure(stale, unknown=False))
            return self._seq
        self._seq += 1
        self._unfinished[self._seq] = len(batches)
        for partition, _, changes in batches:
            due_tick = self._due_tick(partition)
            data = encode_changes(changes)
            self._waiting.append(_Waiting(self._seq, partition, data, due_tick))
        if self._deferred is None:
            self.finish(len(batches))
        return self._seq

    def read(self, stream: Stream, nodes: Iterable[Node]) -> None:
        """Nodes never leave memory here."""

    def evict_groups(self, now_ms: int) -> None:
        """Nothing ever leaves memory here."""

    def read_groups(self, groups: Iterable[Group]) -> None:
        assert not list(groups)

    def writable(self) -> bool:
        return True

    def trouble(self) -> str:
        return ""

    def tick(self, now_ms: int, *, settled: bool = False) -> int | None:  # noqa: ARG002
        self._ticks += 1
        if self._deferred is not None and self._deferred.ticks:
            due = [w for w in self._waiting if w.due_tick <= self._ticks]
            self._finish(due)
        return 1 if self._waiting else None

    def close(self) -> None:
        self.finish(len(self._waiting))

    # --- what a test may do

    def replay(self, keyspace: Keyspace) -> int:
        """Apply what is durable by now; how many changes that were."""
        decoder = Decoder(keyspace)
        replayed = 0
        for _, changes in self._kept:
            for change in decoder.changes(changes):
                keyspace.apply(change)
                replayed += 1
        return replayed

    def finish(self, count: int = 1, partition: int | None = None) -> None:
        """The oldest ``count`` batches, of that partition if one is named, are
        durable, or fail as was asked."""
        waiting = [w for w in self._waiting if partition in {None, w.partition}]
        self._finish(waiting[:count])

    def fence(self, partition: int) -> None:
        """Another writer owns the partition: what waits of it is not kept."""
        self._epochs[partition] += 1
        self._fail(partition, kept=False, unknown=False)

    def make_unknown(self, partition: int, *, kept: bool) -> None:
        """The partition's next batch to finish may have been written, or not."""
        self._doubtful[partition] = kept

    # ---

    def _due_tick(self, partition: int) -> int:
        deferred = self._deferred or Deferred()
        return self._ticks + deferred.ticks + partition % deferred.spread

    def _finish(self, waiting: Iterable[_Waiting]) -> None:
        for batch in waiting:
            if batch not in self._waiting:
                continue  # a failure before it took it along
            kept = self._doubtful.pop(batch.partition, None)
            if kept is not None:
                self._fail(batch.partition, kept=kept, unknown=True)
                continue
            self._waiting.remove(batch)
            self._keep(batch)
            self._unfinished[batch.seq] -= 1
        self._report()

    def _fail(self, partition: int, *, kept: bool, unknown: bool) -> None:
        """All that waits of the partition ends here; in doubt, one was kept."""
        mine = [batch for batch in self._waiting if batch.partition == partition]
        for batch in mine:
            self._waiting.remove(batch)
        if kept and mine:
            self._keep(mine[0])
        self.on_failure(Failure([partition], unknown=unknown))

    def _keep(self, batch: _Waiting) -> None:
        self._kept.append((batch.partition, batch.changes))
        self.statistics.commits += 1
        self.statistics.bytes_written += len(batch.changes)

    def _report(self) -> None:
        """Numbers become durable in order."""
        before = self._durable
        while self._unfinished.get(self._durable + 1) == 0:
            del self._unfinished[self._durable + 1]
            self._durable += 1
        if self._durable > before:
            self.on_durable(self._durable)
