"""Streams' groups as semantics.md tells them, in the plainest Python.

Every call scans everything it needs, nothing is indexed, nothing is shared. What
the engine does cleverly must come out the same as what is done here stupidly.
The verbs stand in model_polls.py and model_settles.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulation.words import (
    CLAIMED,
    DELAYED,
    LEASE,
    REDIS,
    Ask,
    Letter,
    Member,
    Pending,
)

# what mode redis knows no limit of
LIFTED: dict[str, int | str] = {
    "max-attempts": 0,
    "max-in-flight": 2**63,
    "max-poll-entries": 2**63,
    "max-dead-letters": 2**63,
    "learn-visibility": "no",
}


@dataclass
class Group:
    """What a group holds, and what happens to one entry of it."""

    entries: dict[int, bytes]  # the stream's: id -> raw entry
    server: dict[str, int | str]  # settings
    head: int = 0
    cursor: int = 0
    settled_cursor: int = 0  # it never moves back from here
    pending: dict[int, Pending] = field(default_factory=dict)
    ahead: set[int] = field(default_factory=set)  # finished above the head
    dead: dict[int, Letter] = field(default_factory=dict)
    redriven: dict[int, Letter] = field(default_factory=dict)  # as it was listed
    consumers: dict[bytes, int] = field(default_factory=dict)  # when it was seen
    unused: dict[bytes, int] = field(default_factory=dict)  # since when, at a look
    own: dict[str, int | str] = field(default_factory=dict)
    # connections of each member: client -> its one RECLAIM is used up
    connections: dict[Member, dict[int, bool]] = field(default_factory=dict)
    once_reserved: dict[int, set[int]] = field(default_factory=dict)  # by client
    paused: bool = False
    learned_ms: int = 0
    recovered_tail: int = 0
    capped: int = 0
    skipped: int = 0
    handouts: int = 0

    # --- what holds at any time

    def number(self, name: str) -> int:
        return int(self.setting(name))

    def setting(self, name: str) -> int | str:
        if self.mode == REDIS and name in LIFTED:
            return LIFTED[name]
        return self.own.get(name, self.server[name])

    @property
    def mode(self) -> str:
        return str(self.own.get("mode", LEASE))

    @property
    def leases(self) -> bool:
        return self.mode == LEASE

    @property
    def durable_claims(self) -> bool:
        return not self.leases or self.setting("durable-claims") == "yes"

    @property
    def visibility_ms(self) -> int:
        return max(self.number("visibility-timeout-ms"), self.learned_ms)

    @property
    def visibility_max_ms(self) -> int:
        return max(self.number("max-visibility-ms"), self.visibility_ms)

    def having(self, *states: str) -> list[int]:
        return sorted(i for i, item in self.pending.items() if item.state in states)

    @property
    def in_flight(self) -> int:
        return len(self.having(CLAIMED, DELAYED))

    def held(self, member: Member) -> list[int]:
        """The member's standing claims."""
        return [i for i in self.having(CLAIMED) if self.pending[i].member == member]

    def new(self) -> list[int]:
        taken = {*self.pending, *self.ahead, *self.dead}
        if not self.leases:  # to Redis what stands above the head is new
            taken = {*self.dead}
        return sorted(i for i in self.entries if i > self.head and i not in taken)

    def spent(self, id_: int) -> bool:
        return 0 < self.number("max-attempts") <= self.pending[id_].attempts

    @property
    def holds_back(self) -> bool:
        return self.paused or self.is_full

    @property
    def is_full(self) -> bool:
        return len(self.dead) >= self.number("max-dead-letters")

    def next_deadline(self) -> int | None:
        times = [item.deadline_ms for item in self.claimed() if item.deadline_ms]
        times += [self.pending[i].until_ms for i in self.having(DELAYED)]
        return min(times, default=None)

    def claimed(self) -> list[Pending]:
        return [self.pending[i] for i in self.having(CLAIMED)]

    def is_waited_for(self, id_: int) -> bool:
        """Whether the cursor waits for the pending entry."""
        return id_ > self.cursor

    # --- what happens to one entry

    def advance(self) -> None:
        """The cursor goes up to the head, or to just below the first gap."""
        self.ahead = {i for i in self.ahead if i > self.head}
        gaps = [i - 1 for i in self.pending if self.is_waited_for(i)]
        self.cursor = max(self.cursor, min([self.head, *gaps]))

    def finish(self, id_: int) -> None:
        self.pending.pop(id_, None)
        self.redriven.pop(id_, None)
        self.ahead.add(id_)  # advance() forgets it where the head is past it
        self.advance()

    def skip(self, id_: int) -> None:
        self.skipped += 1
        self.finish(id_)

    def bury(
        self,
        id_: int,
        now_ms: int,
        how: bytes,
        cause: bytes = b"attempts",
        reason: bytes = b"",
    ) -> None:
        item, before = self.pending[id_], self.redriven.get(id_)
        reason = reason or item.reason
        consumer = item.last_consumer
        item.tell(now_ms, how, reason)
        again = before.redriven + 1 if before else 0
        counts = item.attempts, cause, reason, consumer, item.first_ms, now_ms, again
        self.dead[id_] = Letter(*counts, item.story)
        self.finish(id_)

    def put_back(self, id_: int) -> None:
        letter = self.dead.pop(id_, None)
        if letter is not None:
            self.redriven[id_] = letter
        self.ahead.discard(id_)
        self.pending[id_] = Pending(story=letter.story if letter else [])

    def hand_out(self, id_: int, ask: Ask, nonce: int, how: bytes) -> None:
        """A new attempt."""
        item = self.pending.setdefault(id_, Pending())
        item.tell(ask.now_ms, how)
        item.owe()
        item.state, item.member, item.client = CLAIMED, ask.member, ask.client
        item.handed_ms, item.began_ms = ask.now_ms - ask.idle_ms, ask.now_ms
        item.charged, item.returns_ms = False, 0
        item.chosen, item.nonce = ask.visibility_ms is not None, nonce
        item.handout = self.handouts
        item.first_ms = item.first_ms or ask.now_ms
        self.give_time(item, ask.now_ms, ask.visibility_ms)

    def beat(self, item: Pending, now_ms: int, handed_ms: int) -> None:
        """The same claim goes on, with its full time again."""
        before_ms = item.deadline_ms
        item.handed_ms, item.returns_ms = handed_ms, 0
        self.give_time(item, now_ms)
        if item.chosen:
            item.deadline_ms = max(item.deadline_ms, before_ms)

    def give_time(
        self, item: Pending, now_ms: int, wanted_ms: int | None = None
    ) -> None:
        given_ms = self.visibility_ms
        if wanted_ms is not None:
            given_ms = min(wanted_ms, self.visibility_max_ms)
        item.deadline_ms = now_ms + given_ms if self.leases else 0

    def delay(self, id_: int, policy: str, now_ms: int) -> int:
        """When an entry that failed may go out again; 0 at once."""
        if id_ in self.redriven:
            return 0
        ms = backoff_ms(policy, max(self.pending[id_].attempts, 1))
        return now_ms + ms if ms else 0

    def next_handout(self) -> None:
        self.handouts += 1

    # --- time

    def expire(self, now_ms: int) -> None:
        for id_ in self.having(DELAYED):
            if self.pending[id_].until_ms <= now_ms:
                self.pending[id_].owe()
        for id_ in self.having(CLAIMED):
            if 0 < self.pending[id_].deadline_ms <= now_ms:
                self._lapse(id_, now_ms)

    def _lapse(self, id_: int, now_ms: int) -> None:
        item = self.pending[id_]
        latest_ms = item.began_ms + self.number("follow-max-ms")
        if self.follows(item) and now_ms < latest_ms:
            item.deadline_ms = min(now_ms + self.visibility_ms, latest_ms)
        elif id_ not in self.entries:
            self.skip(id_)
        elif item.returns_ms:
            item.tell(now_ms, b"disconnect")
            item.owe()
        elif self.spent(id_):
            self.bury(id_, now_ms, b"lapse")
        else:
            item.tell(now_ms, b"lapse")
            policy = str(self.setting("lapse-backoff"))
            if policy == "none":
                item.owe()
            else:
                item.let_go(self.delay(id_, policy, now_ms))

    def follows(self, item: Pending) -> bool:
        connected = bool(item.member and self.connections.get(item.member))
        return connected and self.setting("claims-follow") == "connection"

    # --- restarts

    def restart(self, now_ms: int, tail: int, *, crashed: bool) -> None:
        """What memory held is gone; claims are over after a crash."""
        self.connections.clear()
        self.capped = self.skipped = 0
        kept = self.durable_claims or not crashed
        self.recovered_tail = 0 if kept else tail
        for item in self.pending.values():
            item.client = item.reserved_for = 0
            item.charged = item.chosen = False
            if item.returns_ms:
                item.deadline_ms, item.returns_ms = item.returns_ms, 0
            latest_ms = now_ms + self.visibility_max_ms
            item.until_ms = min(item.until_ms, latest_ms)
            if item.state == CLAIMED and not (kept and self._may_stand(item, now_ms)):
                item.tell(now_ms, b"restart")
                item.owe()
            elif item.state == CLAIMED and self.leases:
                item.deadline_ms = min(item.deadline_ms, latest_ms)
                if self.setting("claims-follow") == "connection":
                    item.deadline_ms = now_ms + self.visibility_ms
                item.chosen = item.deadline_ms > now_ms + self.visibility_ms
        self.consumers = dict.fromkeys(self.consumers, now_ms)

    def _may_stand(self, item: Pending, now_ms: int) -> bool:
        """Its time is not over, or nobody could tell it that it was."""
        follows = self.setting("claims-follow") == "connection"
        return not self.leases or follows or item.deadline_ms > now_ms

    # --- what the engine may do a little later than here

    def adopt_head(self, head: int) -> None:
        """It may also stand on entries above ours that are not new."""
        self.head = max(head, self.head)
        self.advance()

    def adopt_cursor(self, cursor: int) -> None:
        """It may also stand lower, where the next settle moves it on."""
        self.cursor = self.settled_cursor = cursor


@dataclass
class Model:
    """One stream and its groups."""

    server: dict[str, int | str]
    entries: dict[int, bytes] = field(default_factory=dict)
    groups: dict[bytes, Group] = field(default_factory=dict)
    last_id: int = 0

    def create(self, name: bytes, head: int) -> None:
        before = self.groups.get(name)
        group = Group(self.entries, self.server, head, head, head)
        if before is not None:  # replies of the group before are still out
            group.handouts = before.handouts
        self.groups[name] = group

    def restart(self, now_ms: int, *, crashed: bool) -> None:
        for group in self.groups.values():
            group.restart(now_ms, self.last_id, crashed=crashed)

    def delete(self, ids: Iterable[int]) -> None:
        for id_ in ids:
            del self.entries[id_]


def backoff_ms(policy: str, attempts: int) -> int:
    kind, *numbers = policy.split()
    if kind == "none":
        return 0
    if kind == "fixed":
        return int(numbers[0])
    if kind == "linear":
        return min(int(numbers[0]) * attempts, int(numbers[1]))
    grown = int(numbers[0]) * float(numbers[1]) ** (attempts - 1)
    return int(min(grown, int(numbers[2])))
