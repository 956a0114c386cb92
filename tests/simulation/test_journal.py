"""The same machine on the journal store: checkpoints, eviction, crashes, restarts.

A crash is a copy of the directory as it is at that moment, opened anew; a clean
restart closes the store first. Lazy changes not committed yet are lost.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from threading import Lock

from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule
from hypothesis.strategies import booleans, integers

from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node
from felixresp.storage.base import Batch
from felixresp.storage.disk import Disk
from felixresp.storage.journal import JournalStore
from tests.simulation.test_machine import GroupMachine
from tests.state import describe

RUNS = int(os.environ.get("FELIXRESP_SIMULATION_RUNS", "200")) // 10


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
    def _open(self) -> None:
        self._root = Path(tempfile.mkdtemp())
        self._starts = 0
        self._clock_ms = 0
        self.settings.journal_segment_bytes = 1024 * 1024
        self.settings.checkpoint_seconds = 1
        self._start(self._root / "0")

    def _start(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self.keyspace = Keyspace(self.settings)
        self._disk = StillDisk()
        self.store = JournalStore(directory, self.settings, self._disk)
        self.store.open(self.keyspace)
        self._epoch = self.store.acquire(0)

    def _commit(self) -> None:
        if self.lazy:
            self.store.submit([Batch(0, self._epoch, self.lazy)])
        super()._commit()
        self.written.clear()

    def _recover(self) -> None:
        self._starts += 1
        copied = self._root / str(self._starts)
        self._let_the_thread_finish()
        with self._disk.moving:
            shutil.copytree(self._directory, copied)
        self.store.close()
        shutil.rmtree(self._directory)
        self._start(copied)
        self.keyspace.recover(crashed=True)
        stream = self.keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self._load_all()

    def _let_the_thread_finish(self) -> None:
        checkpoint = self.store._checkpoint
        if checkpoint is not None and checkpoint.running:
            checkpoint.finish()

    @rule(ticks=integers(1, 6))
    def checkpoint(self, ticks: int) -> None:
        """Some of it; the rest comes later, or never."""
        self._note()
        self._commit()
        for _ in range(ticks):
            self._clock_ms += 600
            self.store.tick(self._clock_ms, settled=True)

    @rule()
    def evict(self) -> None:
        self.keyspace.cache.shrink(0)

    @rule(again=booleans())
    def restart(self, again: bool) -> None:
        """An orderly stop: nothing is lost, and no late ack is taken after it."""
        if not again:
            return
        self._note()
        self._commit()
        self._load_all()
        before = describe(self.keyspace)
        self.store.close()
        self._start(self._directory)
        stream = self.keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self._load_all()
        assert describe(self.keyspace) == before
        self.replies.clear()
        self.waiting = False
        self.model.crash(0)

    def _load(self, node: Node) -> None:
        if not node.resident:
            self.store.read(self.stream, [node])

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if hasattr(self, "keyspace"):
                self.store.close()
                shutil.rmtree(self._root)


JournalMachine.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TestJournalMachine = JournalMachine.TestCase
