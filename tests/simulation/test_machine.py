"""The engine against the naive model, step by step, and its journal replayed.

After every step the two must tell the same story, and what waits must have been
woken. At a crash the changes written so far make a new keyspace that must equal
the old one; the run goes on with it. FELIXRESP_SIMULATION_RUNS asks for more.
"""

from __future__ import annotations

import copy
import os
from typing import TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
)

from felixresp.config import Settings
from felixresp.engine import claims, dead_letters, takeover
from felixresp.engine import group as group_module
from felixresp.engine.changes import ConsumerDeleted
from tests.simulation.machine import EngineAndModel
from tests.simulation.words import Ask, Caps
from tests.state import describe


@pytest.fixture(autouse=True)
def _orders_are_rebuilt_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thousand finished entries would bring about, after two."""
    monkeypatch.setattr(group_module, "_SLACK", 2)


RUNS = int(os.environ.get("FELIXRESP_SIMULATION_RUNS", "200"))
T = TypeVar("T")

NAMES = st.sampled_from([b"alice", b"bob", b"carol"])
CLIENTS = st.integers(1, 2)
COUNTS = st.integers(1, 6)
IDS = st.integers(1, 30).map(lambda ms: ms << 64)
ID_LISTS = st.lists(IDS, min_size=1, max_size=6)
IDLES = st.sampled_from([0, 0, 30, 100, 150])
BYTES_MAX = st.sampled_from([2**63, 2**63, 1, 60, 120])


class GroupMachine(EngineAndModel):
    @initialize(
        attempts=st.sampled_from([0, 1, 2, 3]),
        in_flight=st.sampled_from([3, 6, 1000]),
        poll_entries=st.sampled_from([4, 1000]),
        dead=st.sampled_from([2, 1000]),
    )
    def start(
        self, attempts: int, in_flight: int, poll_entries: int, dead: int
    ) -> None:
        self.caps = Caps(100, attempts, in_flight, poll_entries, dead)
        self.settings = Settings(
            stream_node_max_entries=3,
            group_visibility_timeout_ms=self.caps.visibility_ms,
            group_max_attempts=attempts,
            group_max_in_flight=in_flight,
            group_max_poll_entries=poll_entries,
            group_max_dead_letters=dead,
        )
        self.now = 1000
        self.written = []
        self.lazy = []
        self._open()
        self.payloads = {}
        self.replies = []
        self.waiting = False
        self.last_id = 0
        self._create_stream()
        self._create_group(0)
        self._note()

    # --- the stream

    @rule(step=st.integers(1, 3), size=st.integers(0, 40))
    def append(self, step: int, size: int) -> None:
        id_ = self.last_id + (step << 64)
        self.stream.append(id_, [b"field", b"v" * size])
        self.last_id = id_
        entry = self._run(lambda: self.stream.entry(id_))
        assert entry is not None
        self.model.entries[id_] = entry

    @rule(number=st.integers(2, 8))
    def append_many(self, number: int) -> None:
        for _ in range(number):
            self.append(1, 5)

    @rule(ids=ID_LISTS)
    def delete(self, ids: list[int]) -> None:
        there = set(ids) & self.model.entries.keys()

        assert self._run(lambda: self.stream.delete(ids)) == len(there)

        for id_ in there:
            del self.model.entries[id_]

    @rule(length=st.integers(0, 15), whole=st.booleans(), limit=st.integers(0, 5))
    def trim_to_length(self, length: int, whole: bool, limit: int) -> None:
        surplus = max(len(self.model.entries) - length, 0)

        gone = self._run(
            lambda: self.stream.trim_to_length(length, whole=whole, limit=limit)
        )

        assert gone <= surplus if whole else gone == surplus
        self._drop_oldest(gone)

    @rule(id_=IDS, whole=st.booleans())
    def trim_to_id(self, id_: int, whole: bool) -> None:
        below = sum(i < id_ for i in self.model.entries)

        gone = self._run(lambda: self.stream.trim_to_id(id_, whole=whole, limit=0))

        assert gone <= below if whole else gone == below
        self._drop_oldest(gone)

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

        total, parts = self._run(
            lambda: self.stream.range(start, end, count, reverse=reverse)
        )

        raw = [self._resolve(part) for part in parts]
        assert total == len(wanted)
        assert b"".join(raw) == b"".join(self.model.entries[i] for i in wanted)

    # --- polls and claims

    @precondition(lambda self: self.grouped)
    @rule(
        name=NAMES,
        client=CLIENTS,
        count=COUNTS,
        bytes_max=BYTES_MAX,
        no_ack=st.booleans(),
        lost=st.booleans(),
    )
    def poll(
        self,
        name: bytes,
        client: int,
        count: int,
        bytes_max: int,
        no_ack: bool,
        lost: bool,
    ) -> None:
        ask = Ask(name, self.now, client, count, bytes_max, no_ack=no_ack)

        self._poll(ask, lost=lost)

    @precondition(lambda self: self.grouped and not self.waiting)
    @rule()
    def wait(self) -> None:
        """A poll that blocks when there is nothing for it."""
        self.waiting = not self._poll(self._waiting())

    @precondition(lambda self: self.grouped)
    @rule(name=NAMES, client=CLIENTS, count=COUNTS, after=st.one_of(st.just(0), IDS))
    def read_history(self, name: bytes, client: int, count: int, after: int) -> None:
        ask = Ask(name, self.now, client, count)

        read = self._run(
            lambda: takeover.history(
                self._group(),
                self._consumer(name),
                after,
                self.now,
                count=count,
                client_id=client,
            )
        )

        assert read == self.model.history(ask, after)

    @precondition(lambda self: self.grouped)
    @rule(
        name=NAMES,
        client=CLIENTS,
        ids=ID_LISTS,
        min_idle=IDLES,
        idle=IDLES,
        retry_count=st.sampled_from([None, None, 0, 1, 2, 9]),
        flags=st.integers(0, 3),
        last_id=st.one_of(st.just(0), st.just(0), st.just(0), IDS),
        lost=st.booleans(),
    )
    def claim(  # noqa: PLR0913, PLR0917 - the arguments of XCLAIM
        self,
        name: bytes,
        client: int,
        ids: list[int],
        min_idle: int,
        idle: int,
        retry_count: int | None,
        flags: int,
        last_id: int,
        lost: bool,
    ) -> None:
        ask = Ask(
            name,
            self.now,
            client,
            min_idle_ms=min_idle,
            idle_ms=idle,
            retry_count=retry_count,
            force=bool(flags & 1),
            just_id=bool(flags & 2),
            last_id=last_id,
        )
        options = takeover.ClaimOptions(
            min_idle, self.now - idle, retry_count, ask.force, ask.just_id, last_id
        )

        polled = self._run(
            lambda: takeover.claim(
                self._group(), self._consumer(name), ids, options, self.now, client
            )
        )

        assert list(polled.ids) == self.model.claim(ask, ids)
        self._answer(polled, lost=lost)

    @precondition(lambda self: self.grouped)
    @rule(
        name=NAMES,
        client=CLIENTS,
        start=st.one_of(st.just(0), IDS),
        min_idle=IDLES,
        count=COUNTS,
        just_id=st.booleans(),
        lost=st.booleans(),
    )
    def autoclaim(  # noqa: PLR0913, PLR0917 - the arguments of XAUTOCLAIM
        self,
        name: bytes,
        client: int,
        start: int,
        min_idle: int,
        count: int,
        just_id: bool,
        lost: bool,
    ) -> None:
        ask = Ask(name, self.now, client, count, min_idle_ms=min_idle, just_id=just_id)

        answer = self._run(
            lambda: takeover.autoclaim(
                self._group(),
                self._consumer(name),
                start,
                self.now,
                min_idle_ms=min_idle,
                count=count,
                just_id=just_id,
                client_id=client,
            )
        )

        given = answer.next_id, list(answer.polled.ids), list(answer.deleted)
        assert given == self.model.autoclaim(ask, start)
        self._answer(answer.polled, lost=lost)

    @precondition(lambda self: self.grouped and self.replies)
    @rule(data=st.data())
    def lose_a_reply(self, data: st.DataObject) -> None:
        """A connection dies with a reply, or the end of one, still in it."""
        at = data.draw(st.integers(0, len(self.replies) - 1))
        handouts, nonces = self.replies.pop(at)
        self.keyspace.return_claims(handouts)
        self.model.give_back(nonces)

    # --- settling

    @precondition(lambda self: self.grouped)
    @rule(ids=ID_LISTS)
    def ack(self, ids: list[int]) -> None:
        done = self._run(lambda: claims.ack(self._group(), ids))

        assert done == self.model.ack(ids)

    @precondition(lambda self: self.grouped and self.model.pending)
    @rule(data=st.data())
    def ack_pending(self, data: st.DataObject) -> None:
        ids = data.draw(
            st.lists(
                st.sampled_from(sorted(self.model.pending)), min_size=1, max_size=5
            )
        )
        self.ack(ids)

    @precondition(lambda self: self.grouped and self.model.dead)
    @rule(data=st.data(), how=st.sampled_from(["redrive", "redrive", "discard", "ack"]))
    def settle_dead(self, data: st.DataObject, how: str) -> None:
        ids = data.draw(
            st.lists(st.sampled_from(sorted(self.model.dead)), min_size=1, max_size=3)
        )
        {"redrive": self.redrive, "discard": self.discard, "ack": self.ack}[how](ids)

    @precondition(lambda self: self.grouped)
    @rule(ids=ID_LISTS)
    def redrive(self, ids: list[int]) -> None:
        done = self._run(lambda: dead_letters.redrive(self._group(), ids))

        assert done == self.model.redrive(ids)

    @precondition(lambda self: self.grouped)
    @rule(ids=ID_LISTS)
    def discard(self, ids: list[int]) -> None:
        done = self._run(lambda: dead_letters.discard(self._group(), ids))

        assert done == self.model.discard(ids)

    # --- time

    @rule(ms=st.sampled_from([1, 30, 70, 99, 100, 101, 500]), timer=st.booleans())
    def pass_time(self, ms: int, timer: bool) -> None:
        """With or without the server's timer; every verb looks by itself too."""
        self.now += ms
        if timer:
            self._fire_timer()

    @precondition(lambda self: self.grouped)
    @rule(min_idle=st.sampled_from([50, 120, 200]))
    def learn(self, min_idle: int) -> None:
        self._run(lambda: claims.learn(self._group(), min_idle, self.now))

        self.model.learn(min_idle, self.now)

    # --- admin

    @precondition(lambda self: self.grouped)
    @rule(head=st.one_of(st.just(0), IDS))
    def set_id(self, head: int) -> None:
        self._run(lambda: claims.move(self._group(), head, None))

        self.model.set_id(head)

    @precondition(lambda self: self.grouped and self.model.consumers)
    @rule(data=st.data())
    def delete_consumer(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.consumers)))
        group = self._group()
        consumer = group.consumers[name]
        assert consumer.pending == len(group.held_by(consumer))

        group.record(ConsumerDeleted(group, consumer))

        assert consumer.pending == 0
        self.model.delete_consumer(name)

    @precondition(lambda self: self.grouped)
    @rule(head=st.one_of(st.just(0), IDS))
    def recreate_group(self, head: int) -> None:
        self.keyspace.destroy_group(self._group())
        self.waiting = False
        self._create_group(head)

    @rule(odds=st.integers(0, 3))
    def recreate_stream(self, odds: int) -> None:
        if odds:
            return
        self.keyspace.drop(self.stream)
        self.waiting = False
        self._create_stream()
        self._create_group(0)

    @rule(lazy_too=st.booleans())
    def crash(self, lazy_too: bool) -> None:
        """What is recovered is the same, but that every claim is over."""
        if lazy_too:
            self._commit()
            self._load_all()
            before = describe(self.keyspace)
        else:
            self.model, self.last_id = copy.deepcopy(self.durable)
        self.lazy.clear()
        self._recover()
        if lazy_too:
            assert describe(self.keyspace) == before
        stream = self.keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self.payloads.clear()
        self.replies.clear()
        self.waiting = False
        self.model.crash(stream.last_id)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self._note()
            self.crash(lazy_too=True)


GroupMachine.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=50,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TestGroupMachine = GroupMachine.TestCase
