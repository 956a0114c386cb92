"""Rules: polls, history reads, claims, connections and lost replies."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from felixresp.engine import claims, takeover
from tests.simulation import model_polls, model_settles
from tests.simulation.machine import USERS, WAITED, EngineAndModel
from tests.simulation.promises import Promise, same
from tests.simulation.stream_rules import COUNTS, ID_LISTS, IDS
from tests.simulation.words import GROUPS

NAMES = st.sampled_from([b"alice", b"bob"])
GROUP_NAMES = st.sampled_from([GROUPS[0], GROUPS[0], GROUPS[1]])
SLOTS = st.integers(0, len(USERS) - 1)
IDLES = st.sampled_from([0, 0, 30, 100, 150])
BYTES_MAX = st.sampled_from([2**63, 2**63, 1, 60, 120])
RARELY = st.sampled_from([False, False, False, True])


class PollRules(EngineAndModel):
    @rule(
        name=GROUP_NAMES,
        slot=SLOTS,
        consumer=NAMES,
        count=COUNTS,
        bytes_max=BYTES_MAX,
        no_ack=RARELY,
        lost=RARELY,
    )
    def xreadgroup(  # noqa: PLR0913, PLR0917 - the arguments of XREADGROUP
        self,
        name: bytes,
        slot: int,
        consumer: bytes,
        count: int,
        bytes_max: int,
        no_ack: bool,
        lost: bool,
    ) -> None:
        ask = self.ask(slot, consumer)
        ask.count, ask.bytes_max, ask.no_ack = count, bytes_max, no_ack

        self.poll(name, ask, lost=lost)

    @rule(
        name=GROUP_NAMES,
        slot=SLOTS,
        consumer=NAMES,
        count=COUNTS,
        bytes_max=BYTES_MAX,
        visibility_ms=st.sampled_from([None, None, 20, 250, 10_000]),
        reclaim=st.booleans(),
        lost=RARELY,
    )
    def xpoll(  # noqa: PLR0913, PLR0917 - the arguments of XPOLL
        self,
        name: bytes,
        slot: int,
        consumer: bytes,
        count: int,
        bytes_max: int,
        visibility_ms: int | None,
        reclaim: bool,
        lost: bool,
    ) -> None:
        if not self.model.groups[name].leases:
            return
        ask = self.ask(slot, consumer)
        ask.count, ask.bytes_max, ask.receipts = count, bytes_max, True
        ask.visibility_ms, ask.reclaim = visibility_ms, reclaim

        self.poll(name, ask, lost=lost)

    @rule(name=GROUP_NAMES, slot=SLOTS, consumer=NAMES, ms=st.sampled_from([0, 50]))
    def worker_restarts(self, name: bytes, slot: int, consumer: bytes, ms: int) -> None:
        """It dies with what it got, and comes back for it, one by one."""
        self.xpoll(name, slot, consumer, 3, 2**63, None, True, False)
        self.reconnect(slot)
        self.now += ms
        self.xpoll(name, slot, consumer, 1, 2**63, None, True, False)

    @precondition(lambda self: not self.waiting)
    @rule(slot=SLOTS, drain=st.booleans())
    def wait(self, slot: int, drain: bool) -> None:
        """A poll that blocks when there is nothing for it."""
        if drain:
            self.xreadgroup(WAITED, slot, b"alice", 1000, 2**63, False, False)
        self.waiting = not self.poll(WAITED, self.waiter())

    @rule(
        name=GROUP_NAMES,
        slot=SLOTS,
        consumer=NAMES,
        count=COUNTS,
        after=st.one_of(st.just(0), IDS),
        bytes_max=BYTES_MAX,
    )
    def read_history(
        self,
        name: bytes,
        slot: int,
        consumer: bytes,
        count: int,
        after: int,
        bytes_max: int,
    ) -> None:
        ask = self.ask(slot, consumer)
        ask.count, ask.bytes_max = count, bytes_max

        read = self.run(
            lambda: takeover.history(
                self.group(name),
                self.member(name, ask),
                after,
                self.now,
                count=count,
                client_id=ask.client,
                bytes_max=bytes_max,
            )
        )

        wanted = model_polls.history(self.model.groups[name], ask, after)
        same(Promise.SAME_REPLY, read, wanted)

    @rule(
        name=GROUP_NAMES,
        slot=SLOTS,
        consumer=NAMES,
        ids=ID_LISTS,
        min_idle=IDLES,
        idle=IDLES,
        retry_count=st.sampled_from([None, None, None, 0, 1, 2, 9]),
        flags=st.integers(0, 3),
        last_id=st.one_of(st.just(0), st.just(0), st.just(0), st.just(0), IDS),
        lost=RARELY,
    )
    def xclaim(  # noqa: PLR0913, PLR0917 - the arguments of XCLAIM
        self,
        name: bytes,
        slot: int,
        consumer: bytes,
        ids: list[int],
        min_idle: int,
        idle: int,
        retry_count: int | None,
        flags: int,
        last_id: int,
        lost: bool,
    ) -> None:
        ask = self.ask(slot, consumer)
        ask.min_idle_ms, ask.idle_ms, ask.retry_count = min_idle, idle, retry_count
        ask.force, ask.just_id, ask.last_id = bool(flags & 1), bool(flags & 2), last_id
        options = takeover.ClaimOptions(
            min_idle, self.now - idle, retry_count, ask.force, ask.just_id, last_id
        )

        polled = self.run(
            lambda: takeover.claim(
                self.group(name),
                self.member(name, ask),
                ids,
                options,
                self.now,
                ask.client,
            )
        )

        wanted = model_polls.claim(self.model.groups[name], ask, ids)
        same(Promise.SAME_REPLY, list(polled.ids), wanted)
        self.answer(name, polled, lost=lost)

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(data=st.data(), slot=SLOTS, consumer=NAMES, flags=st.sampled_from([0, 0, 2]))
    def claim_pending(
        self, data: st.DataObject, slot: int, consumer: bytes, flags: int
    ) -> None:
        """A heartbeat, or a takeover."""
        name, ids = self.some_pending(data)
        self.xclaim(name, slot, consumer, ids, 0, 0, None, flags, 0, False)

    @rule(
        name=GROUP_NAMES,
        slot=SLOTS,
        consumer=NAMES,
        start=st.one_of(st.just(0), IDS),
        min_idle=IDLES,
        count=COUNTS,
        just_id=st.booleans(),
        lost=RARELY,
    )
    def xautoclaim(  # noqa: PLR0913, PLR0917 - the arguments of XAUTOCLAIM
        self,
        name: bytes,
        slot: int,
        consumer: bytes,
        start: int,
        min_idle: int,
        count: int,
        just_id: bool,
        lost: bool,
    ) -> None:
        ask = self.ask(slot, consumer)
        ask.count, ask.min_idle_ms, ask.just_id = count, min_idle, just_id

        def learn() -> None:  # what it learned stays, also if more must be read
            self.member(name, ask)
            claims.learn(self.group(name), min_idle, self.now)

        def verb() -> takeover.AutoClaimed:
            return takeover.autoclaim(
                self.group(name),
                self.member(name, ask),
                start,
                self.now,
                min_idle_ms=min_idle,
                count=count,
                just_id=just_id,
                client_id=ask.client,
            )

        self.run(learn)
        answer = self.run(verb)

        given = answer.next_id, list(answer.polled.ids), list(answer.deleted)
        wanted = model_polls.autoclaim(self.model.groups[name], ask, start)
        same(Promise.SAME_REPLY, given, wanted)
        self.answer(name, answer.polled, lost=lost)

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def lose_a_reply(self, data: st.DataObject) -> None:
        """A connection dies with a reply, or the end of one, still in it."""
        at = data.draw(st.integers(0, len(self.replies) - 1))
        name, handouts, numbers = self.replies.pop(at)

        self.keyspace.return_claims(handouts, self.now)

        model_settles.give_back(self.model.groups[name], numbers)

    @rule(slot=SLOTS)
    def reconnect(self, slot: int) -> None:
        """A connection is closed, and the user opens another."""
        gone, self.clients[slot] = self.clients[slot], self.next_client()

        self.keyspace.detach(gone, self.now)

        for model in self.model.groups.values():
            model_polls.detach(model, gone, self.now)

    # ---

    def some_pending(self, data: st.DataObject) -> tuple[bytes, list[int]]:
        names = [n for n in GROUPS if self.model.groups[n].pending]
        name = data.draw(st.sampled_from(names))
        ids = st.sampled_from(sorted(self.model.groups[name].pending))
        return name, data.draw(st.lists(ids, min_size=1, max_size=4))
