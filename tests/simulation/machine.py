"""The engine and the naive model side by side: what the simulation's rules stand on.

Every verb goes through ``_run``: nodes that left memory are brought back when the
engine asks for them, and until then nothing may have changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from felixresp.config import Settings
from felixresp.engine import claims, poll
from felixresp.engine.changes import Change
from felixresp.engine.errors import NotResident
from felixresp.engine.group import Group
from felixresp.engine.handouts import Consumer, HandOut
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node, Slice
from felixresp.engine.stream import Stream
from felixresp.storage.codec import Decoder, encode_changes
from tests.simulation.model import Model
from tests.simulation.words import Ask, Caps
from tests.state import describe_group

T = TypeVar("T")


class EngineAndModel(RuleBasedStateMachine):
    caps: Caps
    settings: Settings
    keyspace: Keyspace
    stream: Stream
    model: Model
    now: int
    last_id: int
    waiting: bool  # a poll is parked
    woken: bool  # by the changes of the last step
    written: list[bytes]  # the journal
    lazy: list[Change]  # not in it yet
    durable: tuple[Model, int]  # as it was when the journal was last written
    payloads: dict[Node, tuple[bytes, bytes]]  # of nodes that left memory
    replies: list[tuple[list[HandOut], dict[int, int]]]  # that may still be lost

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
        model.adopt_cursor(group.cursor)
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
        assert self._run(lambda: group.lag) == len(model.new()) + len(model.owed())
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
            self._note()
        elif (self.model.next_deadline() or self.now + 1) > self.now:
            assert not copy.deepcopy(self.model).poll(self._waiting())

    # --- how the rules do it

    def _group(self) -> Group:
        return self.stream.groups[b"workers"]

    @property
    def grouped(self) -> bool:
        return b"workers" in self.stream.groups

    def _recover(self) -> None:
        """Make the keyspace from what is written."""
        self.keyspace = Keyspace(self.settings)
        decoder = Decoder(self.keyspace)
        for data in self.written:
            for change in decoder.changes(data):
                self.keyspace.apply(change)
        self.keyspace.recover(crashed=True)

    def _commit(self) -> None:
        """Write down what is not yet."""
        self.written.append(encode_changes(self.lazy))
        self.lazy = []
        self.durable = copy.deepcopy(self.model), self.last_id

    def _open(self) -> None:
        self.keyspace = Keyspace(self.settings)

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
        self._answer(polled, lost=lost)
        return given

    def _answer(self, polled: claims.Polled, *, lost: bool) -> None:
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
                    self._load(node)
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
        nonce = self.model.handouts  # replies of the group before are still out
        self.model = Model(self.caps, self.model.entries, head, head, handouts=nonce)

    def _note(self) -> None:
        """Write the step's changes down; what must wait is durable with the rest."""
        changes = self.keyspace.take()
        self.woken = any(change.WAKES for change in changes)
        self.lazy += [change for change in changes if change.DURABLE]
        if any(change.MUST_WAIT for change in changes):
            self._commit()

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
