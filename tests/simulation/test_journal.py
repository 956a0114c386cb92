"""The same machine on the journal store: checkpoints, eviction, crashes, restarts.

A crash is a copy of the directory as it is at that moment, opened anew; a clean
restart closes the store first. Lazy changes not committed yet are lost.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from threading import Lock

from hypothesis.stateful import rule
from hypothesis.strategies import integers

from felixresp.engine.nodes import Node
from felixresp.storage.base import Batch
from felixresp.storage.disk import Disk
from felixresp.storage.journal import JournalStore
from tests.simulation.promises import Promise, same
from tests.simulation.test_machine import RUNS as ALL_RUNS
from tests.simulation.test_machine import GroupMachine, run_settings

RUNS = ALL_RUNS // 10


class StillDisk(Disk):
    """Syncs nothing, and makes no file come or go while ``moving`` is held."""

    def __init__(self) -> None:
        self.moving = Lock()

    def sync(self, file: int) -> None:
        """The copy sees what was written."""

    def rename(self, old: Path, new: Path) -> None:
        with self.moving:
            super().rename(old, new)

    def remove(self, path: Path) -> None:
        with self.moving:
            super().remove(path)


class JournalMachine(GroupMachine):
    def open(self) -> None:
        self._root = Path(tempfile.mkdtemp())
        self._starts = 0
        self._clock_ms = 0
        self.settings.journal_segment_bytes = 1024 * 1024
        self.settings.checkpoint_seconds = 1
        self._start(self._root / "0", clean=True)

    def _start(self, directory: Path, *, clean: bool) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self.keyspace = self.new_keyspace()
        self._disk = StillDisk()
        self.store = JournalStore(directory, self.settings, self._disk)
        found = self.store.open(self.keyspace)
        same(Promise.CLAIMS_KEPT, found.clean, clean)
        self._epoch = self.store.acquire(0)

    def commit(self) -> None:
        if self.lazy:
            self.store.submit([Batch(0, self._epoch, self.lazy)])
        super().commit()
        self.written.clear()

    def recover(self, *, whole: bool) -> None:  # noqa: ARG002 - all is synchronous
        self._starts += 1
        copied = self._root / str(self._starts)
        self._let_the_thread_finish()
        with self._disk.moving:
            shutil.copytree(self._directory, copied)
        self.store.close()
        shutil.rmtree(self._directory)
        self._start(copied, clean=False)

    def reopen(self) -> None:
        self.store.close()
        self._start(self._directory, clean=True)

    def _let_the_thread_finish(self) -> None:
        checkpoint = self.store._checkpoint
        if checkpoint is not None and checkpoint.running:
            checkpoint.finish()

    @rule(ticks=integers(1, 6))
    def checkpoint(self, ticks: int) -> None:
        """Some of it; the rest comes later, or never."""
        self.note()
        self.commit()
        for _ in range(ticks):
            self._clock_ms += 600
            self.store.tick(self._clock_ms, settled=True)

    @rule()
    def evict(self) -> None:
        self.keyspace.cache.shrink(0)

    def load(self, node: Node) -> None:
        if not node.resident:
            self.store.read(self.stream, [node])

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if hasattr(self, "keyspace"):
                self.store.close()
                shutil.rmtree(self._root)


JournalMachine.TestCase.settings = run_settings(RUNS, 40)
TestJournalMachine = JournalMachine.TestCase
