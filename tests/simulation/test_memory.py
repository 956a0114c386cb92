"""The same machine on the memory store, whose commits finish late or not at all.

A crash, a fence or a doubt costs a suffix of what was submitted: the model goes
back to where it was at the newest commit that the store has.
"""

from __future__ import annotations

import copy
from collections import deque

from hypothesis.stateful import rule
from hypothesis.strategies import integers, sampled_from

from felixresp.storage.base import Batch, Failure
from felixresp.storage.memory import Deferred, MemoryStore
from tests.simulation.model import Model
from tests.simulation.test_machine import RUNS as ALL_RUNS
from tests.simulation.test_machine import GroupMachine, run_settings

RUNS = ALL_RUNS // 4
ALL = 1_000_000  # batches: every one that waits


class MemoryMachine(GroupMachine):
    """Commits finish at once."""

    deferred: Deferred | None = None

    def open(self) -> None:
        self.store = MemoryStore(self.settings, deferred=self.deferred)
        self.store.on_durable = self._on_durable
        self.failures: list[Failure] = []
        self.store.on_failure = self.failures.append
        # as it was at each commit that has not finished
        self.submitted: deque[tuple[int, Model]] = deque()
        self._seq = 0
        self._start()

    def _start(self) -> None:
        self.keyspace = self.new_keyspace()
        self.store.open(self.keyspace)
        self._epoch = self.store.acquire(0)

    def commit(self) -> None:
        self.submitted.append((self._seq + 1, copy.deepcopy(self.model)))
        self._seq = self.store.submit([Batch(0, self._epoch, self.lazy)])
        self.lazy = []
        if self._seq == 1:  # the stream and its groups: they outlive every crash
            self.store.finish(ALL)

    def _on_durable(self, seq: int) -> None:
        while self.submitted and self.submitted[0][0] <= seq:
            _, self.durable = self.submitted.popleft()

    def recover(self, *, whole: bool) -> None:
        if whole:
            self.store.finish(ALL)
        self.submitted.clear()
        self._start()

    @rule(how=sampled_from(["fenced", "lost", "kept"]))
    def fail(self, how: str) -> None:
        """The server drops its memory: the same as a crash of it."""
        if how == "fenced":
            self.store.fence(0)
        elif not self.submitted:
            return
        else:
            self.store.make_unknown(0, kept=how == "kept")
            if how == "kept":
                _, self.durable = self.submitted[0]
            self.store.finish()
        assert self.failures.pop().unknown == (how != "fenced")
        self.crash(lazy_too=False)


class DeferredMachine(MemoryMachine):
    """Commits finish when a rule says so."""

    deferred = Deferred()

    @rule(count=integers(1, 4))
    def finish(self, count: int) -> None:
        self.store.finish(count)


MemoryMachine.TestCase.settings = run_settings(RUNS, 40)
DeferredMachine.TestCase.settings = run_settings(RUNS, 40)
TestMemoryMachine = MemoryMachine.TestCase
TestDeferredMachine = DeferredMachine.TestCase
