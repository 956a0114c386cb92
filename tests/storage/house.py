"""A keyspace over a store, with the verbs that tests run, and crashes.

What is opened is what was stored, claims too, until a test calls ``resume``.

A crash of a journal is a copy of its directory, opened: what a killed process
leaves behind. The memory store is its own copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from felixresp.config import Settings, Value
from felixresp.engine import (
    admin,
    claims,
    dead_letters,
    losses,
    members,
    poll,
    settle,
    takeover,
)
from felixresp.engine.errors import NotResident
from felixresp.engine.group import Group
from felixresp.engine.handouts import DEFAULT_USER, Member
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.settle import FAIL, Nack
from felixresp.engine.stream import Stream
from felixresp.storage.base import Batch, Recovered
from felixresp.storage.disk import Disk
from felixresp.storage.journal import JournalStore
from felixresp.storage.memory import Deferred, MemoryStore
from tests.state import describe

T = TypeVar("T")


def small(**settings: Value) -> Settings:
    """Three entries a node, nothing kept in memory, checkpoints all the time."""
    defaults: dict[str, Value] = {
        "stream_node_max_entries": 3,
        "journal_segment_bytes": 64 * 1024,
        "checkpoint_bytes": 8 * 1024,
        "cache_max_bytes": 0,
        "group_visibility_timeout_ms": 1000,
        "group_max_attempts": 2,
    }
    return Settings(**(defaults | settings))


def copy_directory(old: Path, new: Path) -> None:
    """What a process killed now would leave; segments may be made meanwhile."""
    while True:
        try:
            shutil.copytree(old, new)
        except shutil.Error:  # one was renamed under the copy
            shutil.rmtree(new)
        else:
            return


class House:
    """Subclasses say which store, and what a crash of it is."""

    store: JournalStore | MemoryStore
    keyspace: Keyspace

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now_ms = self.committed_ms = 0
        self.durable: list[int] = []
        self.failures: list[tuple[list[int], bool]] = []

    def open(self) -> Recovered:
        self.keyspace = Keyspace(self.settings)
        self.store.on_durable = self.durable.append
        self.store.on_failure = lambda failure: self.failures.append(
            (list(failure.partitions), failure.unknown)
        )
        self.found = self.store.open(self.keyspace)
        self.epoch = self.store.acquire(0)
        return self.found

    def resume(self) -> None:
        """What a server does next; its changes wait for the next commit."""
        self.keyspace.resume(self.now_ms, crashed=not self.found.clean)

    def crash(self) -> Recovered:
        raise NotImplementedError

    def stop(self) -> Recovered:
        """A clean stop, and a start."""
        raise NotImplementedError

    def settle(self) -> None:
        """What was submitted becomes durable."""

    def commit(self) -> int:
        seq = self.store.submit([Batch(0, self.epoch, self.keyspace.take())])
        self.keyspace.handed.clear()
        self.committed_ms = self.now_ms
        return seq

    def tick(self, passed_ms: int = 1) -> int | None:
        self.now_ms += passed_ms
        return self.store.tick(self.now_ms, settled=not self.keyspace.changes)

    def checkpoint(self) -> None:
        """Commit, and tick until a checkpoint is written."""
        self.commit()
        before = self.store.statistics.checkpoints
        while self.store.statistics.checkpoints == before:
            self.tick(1000)

    def describe(self) -> dict[str, Any]:
        for database in self.keyspace.databases:
            for value in database.values():
                if isinstance(value, Stream):
                    cold = [node for node in value.nodes if not node.resident]
                    self.store.read(value, cold)
        return describe(self.keyspace, self.committed_ms)

    # --- verbs

    def run(self, verb: Callable[[], T]) -> T:
        while True:
            try:
                return verb()
            except NotResident as missing:
                self.store.read_groups(missing.groups)
                self.store.read(missing.stream, missing.nodes)

    def stream(self, key: bytes = b"jobs") -> Stream:
        return self.keyspace.stream(0, key) or self.keyspace.create_stream(0, key)

    def group(self, name: bytes = b"workers", key: bytes = b"jobs") -> Group:
        stream = self.stream(key)
        found = stream.groups.get(name)
        return found or self.run(
            lambda: self.keyspace.create_group(stream, name, 0, None)
        )

    def append(self, count: int = 1, key: bytes = b"jobs", size: int = 20) -> None:
        stream = self.stream(key)
        for _ in range(count):
            id_ = stream.next_id(self.now_ms)
            stream.append(id_, [b"field", b"%d;" % stream.entries_added + b"v" * size])

    def delete(self, *ids: int, key: bytes = b"jobs") -> None:
        self.run(lambda: self.stream(key).delete(ids))

    def trim(self, length: int, key: bytes = b"jobs", *, whole: bool = False) -> None:
        stream = self.stream(key)
        self.run(lambda: stream.trim_to_length(length, whole=whole, limit=0))

    def member(
        self,
        consumer: bytes,
        group: Group | None = None,
        user: bytes = DEFAULT_USER,
        client_id: int = 0,
    ) -> Member:
        group = group or self.group()
        return members.member_named(group, consumer, self.now_ms, client_id, user)

    def disconnect(self, client_id: int) -> None:
        self.keyspace.detach(client_id, self.now_ms)

    def poll(
        self,
        count: int = 1,
        consumer: bytes = b"alice",
        group: Group | None = None,
        *,
        user: bytes = DEFAULT_USER,
        receipts: bool = False,
        client_id: int = 0,
    ) -> list[int]:
        group = group or self.group()
        member = self.member(consumer, group, user, client_id)
        polled = self.run(
            lambda: poll.poll(
                group,
                member,
                self.now_ms,
                count=count,
                client_id=client_id,
                with_receipts=receipts,
            )
        )
        return list(polled.ids)

    def ack(self, *ids: int, group: Group | None = None) -> None:
        group = group or self.group()
        self.run(lambda: settle.ack(group, ids))

    def claim(
        self,
        *ids: int,
        consumer: bytes = b"bob",
        force: bool = False,
        just_id: bool = False,
    ) -> None:
        group, member = self.group(), self.member(consumer)
        options = takeover.ClaimOptions(
            0, self.now_ms, None, force=force, just_id=just_id
        )
        self.run(lambda: takeover.claim(group, member, ids, options, self.now_ms))

    def read_again(self, consumer: bytes = b"alice") -> None:
        group, member = self.group(), self.member(consumer)
        self.run(
            lambda: takeover.history(
                group, member, 0, self.now_ms, count=9, client_id=7
            )
        )

    def nack(self, *ids: int, mode: bytes = FAIL, delay_ms: int | None = None) -> None:
        wish = Nack(mode, delay_ms=delay_ms, reason=b"no " + mode)
        self.run(lambda: settle.nack(self.group(), ids, wish, self.now_ms))

    def extend(self, *ids: int, ms: int = 5000) -> None:
        group = self.group()
        for id_ in ids:
            if id_ in group.pending and group.is_claimed(id_) and group.mode.leases:
                settle.extend(group, id_, ms, self.now_ms)

    def seek(self, head: int, group: Group | None = None) -> None:
        group = group or self.group()
        if group.mode.leases:
            self.run(lambda: admin.seek(group, head, self.now_ms))

    def configure(self, own: dict[str, str], group: Group | None = None) -> None:
        self.run(lambda: admin.configure(group or self.group(), own, self.now_ms))

    def pause(self, *, paused: bool) -> None:
        admin.pause(self.group(), self.now_ms, paused=paused)

    def learn(self, min_idle_ms: int) -> None:
        self.run(lambda: claims.learn(self.group(), min_idle_ms, self.now_ms))

    def lapse(self) -> None:
        """Every claim's time is over."""
        self.now_ms += 10_000
        while (due := self.keyspace.next_deadline()) and due <= self.now_ms:
            self.run(lambda: self.keyspace.expire_claims(self.now_ms))

    def redrive(self, *ids: int) -> None:
        self.run(lambda: dead_letters.redrive(self.group(), ids))

    def discard(self, *ids: int) -> None:
        dead_letters.discard(self.group(), ids)

    def move(self, head: int) -> None:
        self.run(lambda: claims.move(self.group(), head, None))

    def remove_consumer(self, name: bytes) -> None:
        group = self.group()
        if (consumer := group.consumers.get(name)) is not None:
            self.run(
                lambda: members.remove_consumer(group, consumer, None, self.now_ms)
            )

    def everything(self) -> None:
        """Every durable change at least once, in a few batches."""
        self.append(10)
        self.poll(6, receipts=True)
        self.commit()
        ids = self.run(lambda: self.stream().read_after(0, 100, 2**30))[0]
        self.ack(ids[0], ids[2])
        self.claim(ids[1], ids[3])
        self.claim(ids[9], force=True)
        self.lapse()
        self.poll(3, b"carol", user=b"ann")
        self.nack(*self.poll(1, b"carol"), delay_ms=90_000)
        self.lapse()
        self.poll(3)
        self.lapse()
        self.commit()
        dead = self.group().dead_letters.ids()
        self.redrive(*dead[:1])
        self.discard(*dead[1:2])
        self.remove_consumer(b"bob")
        self.delete(ids[4], ids[7])
        self.trim(7)
        losses.lose(self.stream(), self.stream().nodes[0])
        other = self.run(
            lambda: self.keyspace.create_group(self.stream(), b"other", ids[5], 6)
        )
        self.poll(2, group=other)
        self._manage()
        gone = self.run(
            lambda: self.keyspace.create_group(self.stream(), b"gone", 0, None)
        )
        self.keyspace.destroy_group(gone)
        self.move(ids[8])
        self.stream().set_id(self.stream().last_id + 5, 30, ids[7])
        self.keyspace.set_string(1, b"text", b"some")
        self.keyspace.set_string(1, b"gone", b"x")
        self._rename_and_drop()
        self.commit()

    def _manage(self) -> None:
        """A group that is managed, left with claims, one of them extended."""
        group = self.group()
        self.learn(2000)
        self.pause(paused=not group.paused)
        self.configure({"backoff": "fixed 50", "durable-claims": "yes"})
        managed = self.group(b"managed")
        self.configure({"mode": "redis"}, managed)
        self.poll(3, b"dave", managed)
        self.configure({"mode": "lease"}, managed)
        self.seek(self.stream().first_id(), managed)
        held = self.poll(2, b"dave", managed, receipts=True)
        for id_ in held[:1]:
            settle.extend(managed, id_, 7000, self.now_ms)

    def _rename_and_drop(self) -> None:
        self.append(2, b"first")
        self.append(2, b"second")
        keyspace = self.keyspace
        keyspace.rename(self.stream(b"first"), 0, b"second")  # drops what was there
        keyspace.set_expiry(self.stream(b"second"), 10**12)
        gone = keyspace.get(1, b"gone")
        assert gone is not None
        keyspace.drop(gone)
        self.append(4, b"dropped")
        keyspace.drop(self.stream(b"dropped"))


class JournalHouse(House):
    def __init__(
        self, directory: Path, settings: Settings, disk: Disk | None = None
    ) -> None:
        super().__init__(settings)
        self._directory = directory
        self._lives = 0
        self._disk = disk
        self.store: JournalStore = JournalStore(self.directory, settings, disk)

    @property
    def directory(self) -> Path:
        return self._directory / f"life-{self._lives}"

    def crash(self) -> Recovered:
        old, directory = self.store, self.directory
        self._lives += 1
        copy_directory(directory, self.directory)
        old.close()
        shutil.rmtree(directory)
        return self._start()

    def stop(self) -> Recovered:
        self.store.close()
        return self._start()

    def _start(self) -> Recovered:
        self.durable.clear()
        self.store = JournalStore(self.directory, self.settings, self._disk)
        return self.open()


class MemoryHouse(House):
    def __init__(self, settings: Settings, deferred: Deferred | None = None) -> None:
        super().__init__(settings)
        self.store: MemoryStore = MemoryStore(settings, deferred=deferred)

    def settle(self) -> None:
        self.store.finish(1000)

    def crash(self) -> Recovered:
        self.durable.clear()
        return self.open()

    def stop(self) -> Recovered:
        self.store.close()
        return self.crash()
