"""The engine and the naive model side by side: what the simulation's rules stand on.

Every verb goes through ``run``: nodes that left memory are brought back when the
engine asks for them, and until then nothing may have changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from felixresp.config import Settings
from felixresp.engine import members, poll
from felixresp.engine.changes import Change
from felixresp.engine.claims import Polled
from felixresp.engine.errors import NotResident
from felixresp.engine.group import Group
from felixresp.engine.handouts import HandOut, Member
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node, Slice
from felixresp.engine.stream import Stream
from felixresp.storage.codec import Decoder, encode_changes
from tests.simulation import invariants, model_polls, model_settles
from tests.simulation import model as naive
from tests.simulation.promises import Promise, require, same
from tests.simulation.words import DEFAULT, GROUPS, OPS, OWED, Ask
from tests.state import describe_group

T = TypeVar("T")
USERS = (DEFAULT, DEFAULT, OPS)  # of the connections that are open at a time
WAITER = 1  # the connection of the poll that waits
WAITED = GROUPS[0]


class EngineAndModel(RuleBasedStateMachine):
    settings: Settings
    keyspace: Keyspace
    stream: Stream
    model: naive.Model
    now: int
    clients: list[int]  # the open connections
    last_client: int
    waiting: bool  # a poll is parked
    woken: bool  # by the changes of the last step
    written: list[bytes]  # the journal
    lazy: list[Change]  # not in it yet
    durable: naive.Model  # as it was when the journal was last written
    payloads: dict[Node, tuple[bytes, bytes]]  # of nodes that left memory
    # that may still be lost: of which group, in the engine, and in the model
    replies: list[tuple[bytes, list[HandOut], set[int]]]
    receipts: list[tuple[bytes, int, int]]  # ever given: group, id, nonce

    def setup(self, settings: Settings, server: dict[str, int | str]) -> None:
        self.settings = settings
        self.random64 = count(1).__next__
        self.now = 1000
        self.last_client = WAITER
        self.clients = [self.next_client() for _ in USERS]
        self.written, self.lazy = [], []
        self.payloads, self.replies, self.receipts = {}, [], []
        self.waiting = self.woken = False
        self.model = naive.Model(server)
        self.open()
        self.create_stream()
        self.note()

    # --- what must hold after every step

    @invariant()
    def both_tell_the_same(self) -> None:
        self.note()
        same(Promise.SAME_STREAM, self.stream.length, len(self.model.entries))
        same(Promise.SAME_STREAM, self.stream.last_id, self.model.last_id)
        for name, model in self.model.groups.items():
            self._check_waiter(name)
            group = self.group(name)
            invariants.check_group(group, model)
            self._check_lag(group, model)
            self._check_timer(model)
        self.woken = False

    def _check_lag(self, group: Group, model: naive.Group) -> None:
        if model.leases:
            lag = len(model.new()) + len(model.having(OWED))
            same(Promise.LAG, self.run(lambda: group.lag), lag)

    def _check_timer(self, model: naive.Group) -> None:
        due, armed = model.next_deadline(), self.keyspace.next_deadline()
        if due is not None:
            require(Promise.ARMED, armed is not None and armed <= due, (armed, due))

    def _check_waiter(self, name: bytes) -> None:
        """Who waits is served when it is woken, and is woken whenever it must be."""
        if not self.waiting or name != WAITED:
            return
        if self.woken:
            self.waiting = not self.poll(WAITED, self.waiter())
            self.note()
            return
        model = self.model.groups[name]
        due = model.next_deadline()
        if due is None or due > self.now:
            missed = model_polls.poll(copy.deepcopy(model), self.waiter())
            require(Promise.WAITER_WOKEN, not missed, missed)

    def seen(self) -> Iterator[str]:
        """What this step had to do with, for the counts of a long run."""
        for model in self.model.groups.values():
            yield from {item.state for item in model.pending.values()}
            yield model.mode
            facts = {
                "reserved": any(item.reserved_for for item in model.pending.values()),
                "left": any(item.returns_ms for item in model.pending.values()),
                "dead": model.dead,
                "redriven": model.redriven,
                "acked ahead": model.ahead,
                "paused": model.paused,
            }
            yield from (fact for fact, is_so in facts.items() if is_so)
        if self.waiting:
            yield "waiting"

    # --- how the rules do it

    def group(self, name: bytes) -> Group:
        return self.stream.groups[name]

    def new_keyspace(self) -> Keyspace:
        return Keyspace(self.settings, self.random64)

    def open(self) -> None:
        self.keyspace = self.new_keyspace()

    def recover(self, *, whole: bool) -> None:  # noqa: ARG002 - of other stores
        """Make the keyspace from what is written; ``whole``: that is everything."""
        self.keyspace = self.new_keyspace()
        decoder = Decoder(self.keyspace)
        for data in self.written:
            for change in decoder.changes(data):
                self.keyspace.apply(change)

    def commit(self) -> None:
        """Write down what is not yet."""
        self.written.append(encode_changes(self.lazy))
        self.lazy = []
        self.durable = copy.deepcopy(self.model)

    def note(self) -> None:
        """Write the step's changes down; what must wait is durable with the rest."""
        changes = self.keyspace.take()
        self.woken = self.woken or any(change.WAKES for change in changes)
        self.lazy += [change for change in changes if change.DURABLE]
        if any(change.MUST_WAIT for change in changes):
            self.commit()

    def next_client(self) -> int:
        self.last_client += 1
        return self.last_client

    def user(self, slot: int) -> bytes:
        return USERS[slot]

    def ask(self, slot: int, consumer: bytes) -> Ask:
        return Ask(consumer, self.now, USERS[slot], self.clients[slot])

    def waiter(self) -> Ask:
        return Ask(b"waiter", self.now, client=WAITER, count=2)

    def member(self, name: bytes, ask: Ask) -> Member:
        who = ask.consumer, ask.now_ms, ask.client, ask.user
        return members.member_named(self.group(name), *who)

    def poll(self, name: bytes, ask: Ask, *, lost: bool = False) -> list[int]:
        polled = self.run(lambda: self._poll_engine(name, ask))
        model, ids = self.model.groups[name], list(polled.ids)
        before = copy.deepcopy(model)
        model_polls.attach(before, ask)
        if ask.reclaim:
            model_polls.reclaim(before, ask)
        before.expire(ask.now_ms)
        invariants.check_polled(before, ask, ids)
        nonce = self._nonce(name, ids) if ask.receipts else 0
        same(Promise.SAME_REPLY, ids, model_polls.poll(model, ask, nonce))
        self.answer(name, polled, lost=lost)
        return ids

    def _poll_engine(self, name: bytes, ask: Ask) -> Polled:
        member = self.member(name, ask)
        if ask.reclaim:
            members.reclaim(self.group(name), member, ask.client)
        return poll.poll(
            self.group(name),
            member,
            ask.now_ms,
            count=ask.count,
            client_id=ask.client,
            bytes_max=ask.bytes_max,
            no_ack=ask.no_ack,
            visibility_ms=ask.visibility_ms,
            with_receipts=ask.receipts,
        )

    def _nonce(self, name: bytes, ids: list[int]) -> int:
        """Of the receipts in the reply."""
        nonces = {self.group(name).pending[id_].nonce for id_ in ids}
        require(Promise.SAME_REPLY, len(nonces) <= 1 and 0 not in nonces, nonces)
        nonce = nonces.pop() if nonces else 0
        self.receipts += [(name, id_, nonce) for id_ in ids]
        return nonce

    def answer(self, name: bytes, polled: Polled, *, lost: bool) -> None:
        """The reply leaves, or it does not."""
        model = self.model.groups[name]
        entries = [self.model.entries[id_] for id_ in polled.ids]
        same(Promise.PAYLOAD, list(polled.entries), entries)
        handouts, self.keyspace.handed = self.keyspace.handed, []
        handed = [id_ for handout in handouts for id_ in handout.ids]
        numbers = {model.pending[i].handout for i in handed if i in model.pending}
        if lost:
            self.keyspace.return_claims(handouts, self.now)
            model_settles.give_back(model, numbers)
        elif handouts:
            self.replies.append((name, handouts, numbers))

    def fire_timer(self) -> None:
        while (due := self.keyspace.next_deadline()) is not None and due <= self.now:
            self.run(lambda: self.keyspace.expire_claims(self.now))
        for model in self.model.groups.values():
            model.expire(self.now)

    def run(self, verb: Callable[[], T]) -> T:
        """Call it again until what it needs is in memory."""
        dues = [model.next_deadline() for model in self.model.groups.values()]
        due = min((at for at in dues if at is not None), default=self.now + 1)
        for _ in range(1000):
            before = self._looks()
            try:
                return verb()
            except NotResident as missing:
                if due > self.now:
                    same(Promise.NOTHING_CHANGED, self._looks(), before)
                for node in missing.nodes:
                    self.load(node)
        msg = "always something missing"
        raise AssertionError(msg)

    def _looks(self) -> tuple[object, ...]:
        """What a verb could have changed, as far as it needs no payload."""
        if all(node.resident for node in self.stream.nodes):
            return ()  # nothing can be missing
        groups = [describe_group(group) for group in self.stream.groups.values()]
        written = [
            c for c in self.keyspace.changes if type(c).__name__ != "ConsumerCreated"
        ]
        for group in groups:
            del group["consumers"], group["next consumer"]
        return len(written), groups, self.stream.length, len(self.stream.nodes)

    def resolve(self, part: bytes | Slice) -> bytes:
        if isinstance(part, bytes):
            return part
        self.load(part.node)
        raw = part.bytes()
        part.release()
        return raw

    def load(self, node: Node) -> None:
        if not node.resident:
            self.keyspace.cache.load(node, *self.payloads[node])

    def load_all(self) -> None:
        for node in self.stream.nodes:
            self.load(node)

    def create_stream(self) -> None:
        self.stream = self.keyspace.create_stream(0, b"jobs")
        handouts = [g.handouts for g in self.model.groups.values()]
        self.model = naive.Model(self.model.server)
        for name in GROUPS:
            self.create_group(name, 0)
            self.model.groups[name].handouts = max(handouts, default=0)

    def create_group(self, name: bytes, head: int) -> None:
        self.run(lambda: self.keyspace.create_group(self.stream, name, head, None))
        self.model.create(name, head)
