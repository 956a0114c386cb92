"""The engine against the naive model, step by step, and its journal replayed.

After every step the two must tell the same story, and what waits must have been
woken. At a crash the changes written so far make a new keyspace that must equal
the old one; the run goes on with it. FELIXRESP_SIMULATION_RUNS asks for more.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from felixresp.config import Settings
from felixresp.engine import claims, dead_letters, poll, takeover
from felixresp.engine.consumers import Consumer, HandOut
from felixresp.engine.errors import NotResident
from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node, Slice
from felixresp.engine.stream import Stream
from tests.simulation.model import Ask, Caps, Model
from tests.simulation.replay import Replay, Written, write_down
from tests.state import describe, describe_group

RUNS = int(os.environ.get("FELIXRESP_SIMULATION_RUNS", "200"))
T = TypeVar("T")

NAMES = st.sampled_from([b"alice", b"bob", b"carol"])
CLIENTS = st.integers(1, 2)
COUNTS = st.integers(1, 6)
IDS = st.integers(1, 30).map(lambda ms: ms << 64)
ID_LISTS = st.lists(IDS, min_size=1, max_size=6)
IDLES = st.sampled_from([0, 0, 30, 100, 150])
BYTES_MAX = st.sampled_from([2**63, 2**63, 1, 60, 120])
WAITING = Ask(b"waiter", 0, client=9, count=2)


class GroupMachine(RuleBasedStateMachine):
    keyspace: Keyspace
    stream: Stream
    model: Model

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
        self.keyspace = Keyspace(self.settings)
        self.written: list[Written] = []
        self.payloads: dict[Node, tuple[bytes, bytes]] = {}
        self.replies: list[tuple[list[HandOut], dict[int, int]]] = []
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

    def _group(self) -> Group:
        return self.stream.groups[b"workers"]

    @property
    def grouped(self) -> bool:
        return b"workers" in self.stream.groups

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
    def claim(
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
        self._answer(ask, polled, lost=lost)

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
    def autoclaim(
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
        self._answer(ask, answer.polled, lost=lost)

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

        self.keyspace.delete_consumer(group, consumer)

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
        if not lazy_too:
            self.written = self.written[: self.durable[0]]
            self.model = self.durable[1]
            self.last_id = self.durable[2]
        replay = Replay(self.settings)
        replay.apply(self.written)
        if lazy_too:
            self._load_all()
            assert describe(replay.keyspace) == describe(self.keyspace)
        replay.keyspace.recover(crashed=True)
        self.keyspace = replay.keyspace
        stream = self.keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self.payloads.clear()
        self.replies.clear()
        self.waiting = False
        self.model.crash(stream.last_id)

    def teardown(self) -> None:
        if hasattr(self, "keyspace"):
            self.crash(lazy_too=True)

    # --- what must hold after every step

    @invariant()
    def both_tell_the_same(self) -> None:
        self._note()
        assert self.stream.length == len(self.model.entries)
        assert self.stream.last_id == self.last_id
        if not self.grouped:
            return
        group, model = self._group(), self.model
        self.model.adopt_head(group.head)
        assert group.cursor == model.cursor
        assert list(group.pending_from()) == sorted(group.pending)
        assert list(group.owed_from()) == model.owed()
        assert group.in_flight == len(model.claimed())
        for id_ in sorted({*group.pending, *model.pending}):
            assert self._pending_in_engine(id_) == self._pending_in_model(id_)
        assert group.dead_letters.ids() == sorted(model.dead)
        for id_, item in model.dead.items():
            letter = group.dead_letters.listed[id_]
            assert letter.consumer == (item.holder or b"")
            assert letter.attempts == item.attempts
            assert letter.first_delivered_ms == item.first_ms
        assert group.dead_letters.redriven.keys() == model.redriven
        assert group.consumers.keys() == model.consumers
        assert group.lag == len(model.new()) + len(model.owed())
        assert (group.polls_capped, group.skipped) == (model.capped, model.skipped)
        assert claims.next_deadline(group) == model.next_deadline()
        armed = self.keyspace.next_deadline()
        if model.claimed():
            assert armed is not None
            assert armed <= min(model.pending[i].deadline_ms for i in model.claimed())

    @invariant()
    def what_waits_was_woken(self) -> None:
        if not self.waiting:
            return
        if self.woken:
            self.waiting = not self._poll(self._waiting())
        elif (self.model.next_deadline() or self.now + 1) > self.now:
            assert not copy.deepcopy(self.model).poll(self._waiting())

    # --- how the rules do it

    def _poll(self, ask: Ask, *, lost: bool = False) -> list[int]:
        polled = self._run(
            lambda: poll.poll(
                self._group(),
                self._consumer(ask.consumer),
                ask.now_ms,
                count=ask.count,
                client_id=ask.client,
                bytes_max=ask.bytes_max,
                no_ack=ask.no_ack,
            )
        )
        given = self.model.poll(ask)
        assert list(polled.ids) == given
        self._answer(ask, polled, lost=lost)
        return given

    def _answer(self, ask: Ask, polled: claims.Polled, *, lost: bool) -> None:
        assert len(polled.entries) == len(polled.ids)
        for id_, entry in zip(polled.ids, polled.entries, strict=True):
            assert entry == self.model.entries[id_]
        handouts, self.keyspace.handed = self.keyspace.handed, []
        nonces = {
            id_: self.model.pending[id_].nonce
            for id_ in polled.ids
            if id_ in self.model.pending and self.model.pending[id_].paid
        }
        assert sorted(nonces) == sorted(i for h in handouts for i in h.ids)
        if lost:
            self.keyspace.return_claims(handouts)
            self.model.give_back(nonces)
        elif handouts:
            self.replies.append((handouts, nonces))

    def _waiting(self) -> Ask:
        return Ask(b"waiter", self.now, client=9, count=2)

    def _consumer(self, name: bytes) -> Consumer:
        self.model.consumers.add(name)
        return claims.consumer_named(self._group(), name, self.now)

    def _fire_timer(self) -> None:
        while (due := self.keyspace.next_deadline()) is not None and due <= self.now:
            self._run(lambda: self.keyspace.expire_claims(self.now))
        self.model.expire(self.now)

    def _run(self, verb: Callable[[], T]) -> T:
        """Call it again until what it needs is in memory."""
        due = self.model.next_deadline()
        for _ in range(1000):
            before = self._looks()
            try:
                return verb()
            except NotResident as missing:
                if due is None or due > self.now:
                    assert self._looks() == before
                for node in missing.nodes:
                    self.keyspace.cache.load(node, *self.payloads[node])
        msg = "always something missing"
        raise AssertionError(msg)

    def _looks(self) -> tuple[object, ...]:
        """What a verb could have changed, as far as it needs no payload."""
        groups = [describe_group(group) for group in self.stream.groups.values()]
        claimed = [sorted(g.owed) for g in self.stream.groups.values()]
        written = [
            c for c in self.keyspace.changes if type(c).__name__ != "ConsumerCreated"
        ]
        for group in groups:
            del group["consumers"], group["next consumer"]
        return len(written), groups, claimed, self.stream.length, len(self.stream.nodes)

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

    def _load_all(self) -> None:
        for node in self.stream.nodes:
            self._load(node)

    def _drop_oldest(self, number: int) -> None:
        for id_ in sorted(self.model.entries)[:number]:
            del self.model.entries[id_]

    def _create_stream(self) -> None:
        self.stream = self.keyspace.create_stream(0, b"jobs")
        self.model = Model(self.caps)
        self.last_id = 0
        self.replies.clear()

    def _create_group(self, head: int) -> None:
        self._run(
            lambda: self.keyspace.create_group(self.stream, b"workers", head, None)
        )
        self.model = Model(self.caps, self.model.entries, head, head)

    def _note(self) -> None:
        """Write the step's changes down; what must wait is durable with the rest."""
        changes = self.keyspace.take()
        self.woken = any(change.WAKES for change in changes)
        self.written += [write_down(change) for change in changes if change.DURABLE]
        if any(change.MUST_WAIT for change in changes):
            self.durable = len(self.written), copy.deepcopy(self.model), self.last_id

    def _pending_in_engine(self, id_: int) -> dict[str, Any]:
        group = self._group()
        handout = group.pending[id_]
        tally = group.tally(id_)
        owed = id_ in group.owed
        return {
            "holder": handout.consumer.name if handout.consumer else None,
            "owed": owed,
            "handed": handout.handed_ms,
            "deadline": None if owed else handout.deadline_ms,
            "attempts": tally.attempts,
            "deliveries": tally.deliveries,
            "first": tally.first_ms,
        }

    def _pending_in_model(self, id_: int) -> dict[str, Any]:
        item = self.model.pending[id_]
        return {
            "holder": item.holder,
            "owed": item.owed,
            "handed": item.handed_ms,
            "deadline": None if item.owed else item.deadline_ms,
            "attempts": item.attempts,
            "deliveries": item.deliveries,
            "first": item.first_ms,
        }


GroupMachine.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestGroupMachine = GroupMachine.TestCase
