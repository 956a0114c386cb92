"""Batches of changes, and the numbers that replies wait for.

``open_seq`` is the number that the batch being gathered will have. A must-wait
change raises ``watermark`` to it, and schedules the commit; a lazy change only
keeps its place, and rides along. Replies leave when ``durable`` has reached the
watermark they were encoded under. A batch ends on a command boundary.
"""

from __future__ import annotations

import asyncio
from binascii import crc_hqx
from collections import deque
from collections.abc import Callable, Iterable

from ..config import MiB, Settings
from ..engine.changes import Appended, Change, StringSet
from ..engine.group import Group
from ..storage.base import Batch, Store
from .output import Output
from .turn import Turn

_BATCH_BYTES_MAX = MiB
_BATCH_MS_MAX = 5
_LAZY_MS_MAX = 1000
_CHANGE_BYTES = 64  # about what one change takes in the journal beside its data
_UNSYNCED_MS = 100  # durability none: how long a change stays in memory only
_SLOTS = 16384


class Committer:
    """Gathers changes, submits them, and releases what waited for them."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        fatal: Callable[[str], None],
    ) -> None:
        self.durable = 0  # every change up to this number is
        self.watermark = 0  # number of the newest must-wait change
        self.open_seq = 1
        self.lazy_due_ms: int | None = None  # when lazy changes must be on disk
        self._store = store
        self._loop = loop
        self._turn = turn
        self._fatal = fatal
        self._replies_wait = settings.durability == "always"
        self._delay_ms = 0 if self._replies_wait else settings.interval_ms
        if settings.durability == "none":
            self._delay_ms = _UNSYNCED_MS
        self._changes: list[Change] = []
        self._bytes = 0
        self._opened_ms = 0
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None  # durability interval, none
        self._submitting = False
        self._epochs: dict[int, int] = {}
        self._holding: deque[tuple[int, list[Output]]] = deque()
        store.on_durable = self._on_durable

    def add(self, changes: Iterable[Change], now_ms: int) -> None:
        """Take the changes of one command or EXEC."""
        must_wait = False
        gathered = self._changes
        for change in changes:
            if change.DURABLE:
                gathered.append(change)
                if change.MUST_WAIT:
                    must_wait = True
                self._bytes += _CHANGE_BYTES
                if type(change) is Appended:
                    self._bytes += len(change.entry)
                elif type(change) is StringSet:
                    self._bytes += len(change.data)
        if must_wait:
            if self._replies_wait:
                self.watermark = self.open_seq
            if not self._scheduled:
                self._schedule(now_ms)
        elif gathered and not self._scheduled and self.lazy_due_ms is None:
            self.lazy_due_ms = now_ms + _LAZY_MS_MAX
        if self._bytes >= _BATCH_BYTES_MAX or (
            now_ms - self._opened_ms >= _BATCH_MS_MAX
            and self._scheduled
            and self._replies_wait
        ):
            self.commit()

    def hold(self, seq: int, output: Output) -> None:
        """Flush ``output`` when ``seq`` is durable."""
        if not self._holding or self._holding[-1][0] != seq:
            self._holding.append((seq, []))
        self._holding[-1][1].append(output)

    def commit(self) -> None:
        """Submit what was gathered."""
        self._unschedule()
        if not self._changes:
            return
        batches = self._batches(self._changes)
        self._changes, self._bytes = [], 0
        self._submitting = True
        try:
            self.open_seq = self._store.submit(batches) + 1
        except Exception as error:
            self._fatal(
                f"the journal cannot be written: {error!r}; nothing was answered"
            )
            raise
        finally:
            self._submitting = False
        self._release()

    def abandon(self) -> None:
        """Forget what was gathered: the store lost changes before it."""
        self._unschedule()
        self._changes, self._bytes = [], 0
        self._epochs.clear()
        self._holding.clear()
        self.watermark = self.durable

    @property
    def settled(self) -> bool:
        """No change and no reply is on its way."""
        return not self._changes and not self._holding

    def _schedule(self, now_ms: int) -> None:
        self._opened_ms = now_ms
        self._scheduled = True
        if self._delay_ms:
            self._timer = self._loop.call_later(self._delay_ms / 1000, self.commit)
        else:
            self._turn.at_end(self.commit)

    def _unschedule(self) -> None:
        self._scheduled = False
        self.lazy_due_ms = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_durable(self, seq: int) -> None:
        self.durable = max(self.durable, seq)
        if not self._submitting:
            self._release()

    def _release(self) -> None:
        holding = self._holding
        while holding and holding[0][0] <= self.durable:
            for output in holding.popleft()[1]:
                output.flush()

    def _batches(self, changes: list[Change]) -> list[Batch]:
        if self._store.partitions == 1:
            return [Batch(0, self._epoch(0), changes)]
        spread: dict[int, list[Change]] = {}
        for change in changes:
            slot = hash_slot(changed_key(change))
            partition = slot * self._store.partitions // _SLOTS
            spread.setdefault(partition, []).append(change)
        return [Batch(p, self._epoch(p), part) for p, part in spread.items()]

    def _epoch(self, partition: int) -> int:
        epoch = self._epochs.get(partition)
        if epoch is None:
            epoch = self._epochs[partition] = self._store.acquire(partition)
        return epoch


def changed_key(change: Change) -> bytes:
    """The key that the changed value has now."""
    target = change.target
    return target.stream.key if isinstance(target, Group) else target.key


def hash_slot(key: bytes) -> int:
    """Redis's slot: CRC16 of the key, or of what stands in its first braces."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) % _SLOTS
