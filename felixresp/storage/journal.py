"""The store of one machine: a journal, checkpointed into LMDB.

Invariant: the database holds the state at a position of the journal, and the
journal every frame from there on. A frame is durable before ``submit`` returns.
A checkpoint starts only when every change of the engine was submitted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from struct import Struct

from ..config import Settings
from ..engine.errors import NotResident
from ..engine.group import Group
from ..engine.keyspace import Keyspace
from ..engine.nodes import Node
from ..engine.stream import Stream
from .base import Batch, Corrupt, Failure, Recovered, Statistics, StoreError
from .checkpoint import Checkpoint
from .codec import Decoder, Undecodable, encode_changes
from .database import Database
from .disk import Disk, Lock
from .frames import BLOCK_BYTES, Position, segment_numbers, segment_path
from .records import State
from .segments import READY_MIN, Filler, make_short
from .tail import Found, Tail
from .writer import Writer

_BATCH = Struct("<IQQ")  # partition, epoch, bytes of changes
_RETRY_MS = 1000  # after a checkpoint that failed
_LOOK_MS = 100  # how soon a checkpoint that is due is noticed
_WRITING_MS = 5  # how soon the end of one is noticed


class JournalStore:
    """Implements storage.base.Store."""

    partitions = 1
    atomic = True

    def __init__(
        self, directory: Path, settings: Settings, disk: Disk | None = None
    ) -> None:
        self.on_durable: Callable[[int], None] = lambda _: None
        self.on_failure: Callable[[Failure], None] = lambda _: None
        self.statistics = Statistics()
        self._directory = directory
        self._settings = settings
        self._disk = disk or Disk()
        self._epoch = 0
        self._acquired = False
        self._seq = 0
        self._checkpoint: Checkpoint | None = None
        self._stored_bytes = 0  # of the journal, that a checkpoint holds
        self._cut_bytes = 0  # of the journal, at the start of the running one
        self._due_ms: int | None = None
        self._retry_ms: int | None = None
        self._garbage_left = False
        self._now_ms = 0
        self._failing = ""  # why the last checkpoint could not be written
        self._broken = False
        self._opened = False
        self._base_seq = 0

    # --- opening

    def open(self, keyspace: Keyspace) -> Recovered:
        self._lock = Lock(self._directory)
        database: Database | None = None
        try:
            database = self._database = Database(self._directory)
            # a million objects that stay need no looks at whether they do
            collecting = gc.isenabled()
            gc.disable()
            try:
                return self._recover(keyspace)
            finally:
                if collecting:
                    gc.enable()
        except OSError as exc:
            self._give_up(database)
            msg = f"cannot use {self._directory}: {exc}"
            raise StoreError(msg) from exc
        except StoreError:
            self._give_up(database)
            raise

    def _give_up(self, database: Database | None) -> None:
        if database is not None:
            database.close()
        self._lock.release()

    def _recover(self, keyspace: Keyspace) -> Recovered:
        self._keyspace = keyspace
        state = self._database.read_state()
        numbers = segment_numbers(self._directory)
        tail: Tail | None = None
        replayed = 0
        if state is not None:
            self._database.load(keyspace)
            keyspace.next_number = max(keyspace.next_number, state.next_number)
            self._open_tails()
            tail = Tail(self._directory, state.position)
            replayed = self._replay(tail)
            self._open_tails()
        elif numbers:  # the first start of all was cut short, or the database is gone
            first = Position(1, numbers[0], BLOCK_BYTES)
            for found in Tail(self._directory, first):
                raise _damaged(found, "no checkpoint was found that it belongs to")
        next_seq = tail.next_seq if tail is not None else 1
        old = state or State(Position(1, 0, 0), 1, 0, clean=True)
        torn = tail is not None and tail.torn_bytes
        clean = old.clean and next_seq == old.position.seq and not torn
        self._epoch = old.epoch + 1
        self._start(next_seq, max([old.position.segment, *numbers]) + 1, numbers)
        return self._recovered(replayed, tail, clean=clean)

    def _recovered(self, replayed: int, tail: Tail | None, *, clean: bool) -> Recovered:
        streams = [
            value
            for database in self._keyspace.databases
            for value in database.values()
            if isinstance(value, Stream)
        ]
        return Recovered(
            streams=len(streams),
            groups=sum(len(stream.groups) for stream in streams),
            entries=sum(stream.length for stream in streams),
            changes_replayed=replayed,
            clean=clean,
            torn_bytes=tail.torn_bytes if tail is not None else 0,
        )

    def _start(self, next_seq: int, number: int, old: list[int]) -> None:
        """A new segment and a checkpoint that starts in it; the rest is free."""
        for path in self._directory.glob("filling-*"):
            self._disk.remove(path)
        segment = make_short(self._directory, number, self._disk)
        position = Position(next_seq, number, BLOCK_BYTES)
        checkpoint = Checkpoint(self._keyspace, self._database, self._state(position))
        checkpoint.finish()
        if checkpoint.failure is not None:
            msg = f"{checkpoint.failure}; free some space and start again"
            raise StoreError(msg)
        checkpoint.settle()
        self._garbage_left = checkpoint.garbage_left
        self._base_seq = next_seq - 1
        self._filler = Filler(
            self._directory,
            self._settings.journal_segment_bytes,
            number + 1,
            self._disk,
        )
        for used in old:
            self._filler.recycle(segment_path(self._directory, used))
        self._filler.tick(0)
        self._writer = Writer(
            self._directory,
            self._filler,
            self._disk,
            self.statistics,
            position=position,
            segment=segment,
            synced=self._settings.durability != "none",
        )
        self._keyspace.cache.shrink(self._settings.cache_max_bytes)
        self._opened = True

    def _replay(self, tail: Tail) -> int:
        decoder = Decoder(self._keyspace)
        replayed = 0
        for found in tail:
            try:
                replayed += self._replay_frame(decoder, found.payload)
            except Undecodable as exc:
                raise _damaged(found, str(exc)) from exc
            except (LookupError, ValueError, AttributeError, AssertionError) as exc:
                raise _damaged(found, f"cannot be applied: {exc!r}") from exc
        return replayed

    def _replay_frame(self, decoder: Decoder, payload: bytes) -> int:
        at = replayed = 0
        while at < len(payload):
            _, _, length = _BATCH.unpack_from(payload, at)
            at += _BATCH.size
            for change in decoder.changes(payload[at : at + length]):
                replayed += 1
                while True:
                    try:
                        self._keyspace.apply(change)
                        break
                    except NotResident as missing:
                        self.read(missing.stream, missing.nodes)
            at += length
        return replayed

    def _open_tails(self) -> None:
        for database in self._keyspace.databases:
            for value in database.values():
                if isinstance(value, Stream) and value.nodes:
                    if not value.nodes[-1].resident:
                        self.read(value, value.nodes[-1:])
                    value.open_tail()

    # --- the store's interface

    def acquire(self, partition: int) -> int:  # noqa: ARG002 - there is only one
        if self._acquired:
            self._epoch += 1
            self._finish_checkpoint()
            self._cut()
            self._finish_checkpoint()
        self._acquired = True
        return self._epoch

    def submit(self, batches: Sequence[Batch]) -> int:
        payload: list[bytes] = []
        for partition, epoch, changes in batches:
            if epoch != self._epoch:
                self.on_failure(Failure([partition], unknown=False))
                return self._seq
            data = encode_changes(changes)
            payload += (_BATCH.pack(partition, epoch, len(data)), data)
        try:
            seq = self._writer.append(b"".join(payload))
        except OSError:
            self._broken = True
            raise
        self._seq = seq - self._base_seq
        self.on_durable(self._seq)
        if self._checkpoint is None:
            if self._is_due():
                self._cut()
        elif self._tail_bytes > self._settings.journal_max_bytes and not self._failing:
            self._finish_checkpoint()
        return self._seq

    def read(self, stream: Stream, nodes: Iterable[Node]) -> None:
        self._database.read(stream.number, nodes, self._keyspace.cache)

    def evict_groups(self, now_ms: int) -> None:
        if self._checkpoint is None:  # what did not change since the last is stored
            self._keyspace.evict_idle_groups(now_ms)

    def read_groups(self, groups: Iterable[Group]) -> None:
        self._database.read_groups(groups)

    def writable(self) -> bool:
        if self._filler.failure is not None and self._filler.ready < READY_MIN:
            return False
        return not self._failing

    def trouble(self) -> str:
        if self._failing:
            return self._failing
        return "" if self.writable() else f"no segment: {self._filler.failure}"

    def tick(self, now_ms: int, *, settled: bool = False) -> int | None:
        self._filler.tick(now_ms)
        delay_ms = self._advance(now_ms, settled=settled)
        self._keyspace.cache.shrink(self._settings.cache_max_bytes)
        return delay_ms

    def close(self) -> None:
        if self._opened:
            self._opened = False
            if not self._broken:
                self._finish_checkpoint()
                if self._checkpoint is None:
                    self._cut(clean=True)
                    self._finish_checkpoint()
            self._filler.close()
            self._writer.close()
            self._database.close()
            self._lock.release()

    # --- checkpoints

    @property
    def _tail_bytes(self) -> int:
        """Bytes of the journal that no checkpoint holds."""
        return self._writer.written_bytes - self._stored_bytes

    def _is_due(self) -> bool:
        settings = self._settings
        limit = min(settings.checkpoint_bytes, settings.journal_max_bytes // 2)
        if self._tail_bytes >= limit:
            return True
        return self._due_ms is not None and self._due_ms <= self._now_ms

    def _advance(self, now_ms: int, *, settled: bool) -> int | None:
        self._now_ms = now_ms
        checkpoint = self._checkpoint
        if checkpoint is None:
            return self._wait(now_ms, settled=settled)
        if checkpoint.running:
            return _WRITING_MS
        if not checkpoint.started:
            if not checkpoint.read_slice():
                return 0
        elif self._retry_ms is None:
            self._end_checkpoint()
            if self._checkpoint is not None:
                self._retry_ms = now_ms + _RETRY_MS
            return 0
        elif now_ms < self._retry_ms:
            return self._retry_ms - now_ms
        self._retry_ms = None
        checkpoint.start()
        return _WRITING_MS

    def _wait(self, now_ms: int, *, settled: bool) -> int | None:
        """No checkpoint is running: start one when it is due."""
        if not self._tail_bytes and not self._garbage_left:
            if self._filler.failure is not None:
                return _RETRY_MS
            return None
        if self._due_ms is None:
            wait_ms = 0 if self._garbage_left else self._settings.checkpoint_seconds
            self._due_ms = now_ms + wait_ms * 1000
        if self._filler.failure is not None and self._tail_bytes:
            self._due_ms = now_ms  # it gives back segments
        if settled and self._is_due():
            self._cut()
            return 0
        return _LOOK_MS

    def _cut(self, *, clean: bool = False) -> None:
        """Start a checkpoint: the engine is where the journal ends."""
        state = self._state(self._writer.position, clean=clean)
        self._checkpoint = Checkpoint(self._keyspace, self._database, state)
        self._cut_bytes = self._writer.written_bytes

    def _finish_checkpoint(self) -> None:
        """Wait for the running one."""
        if self._checkpoint is not None:
            self._checkpoint.finish()
            self._end_checkpoint()

    def _end_checkpoint(self) -> None:
        checkpoint = self._checkpoint
        assert checkpoint is not None
        if checkpoint.failure is not None:
            self.statistics.checkpoint_failures += 1
            self._failing = str(checkpoint.failure)
            return
        self._failing = ""
        self._checkpoint = self._due_ms = self._retry_ms = None
        self.statistics.checkpoints += 1
        self._garbage_left = checkpoint.garbage_left
        self._stored_bytes = self._cut_bytes
        checkpoint.settle()
        self._writer.recycle(checkpoint.state.position)

    def _state(self, position: Position, *, clean: bool = False) -> State:
        return State(position, self._keyspace.next_number, self._epoch, clean)


def _damaged(found: Found, what: str) -> Corrupt:
    msg = f"{found.path}: frame at offset {found.offset}: {what}: restore a backup"
    return Corrupt(msg)
