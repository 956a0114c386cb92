"""A consumer group: what it holds.

Every entry at or below ``cursor`` is finished. An entry in (cursor, head] is
pending (in ``pending``) or finished. A pending entry points to its last
hand-out; it is owed when it is in ``owed``, delayed when it is in ``delayed``,
else claimed until that hand-out's deadline. Entries above ``head`` are new, but
for the few that were finished, claimed or buried out of turn.

The verbs are in poll.py, claims.py, settle.py, takeover.py and admin.py; how
each change alters a group stands in applying.py.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from .applying import GROUP_CHANGES
from .changes import Change, Tally
from .cold import need
from .cuts import Cut
from .dead_letters import DeadLetters
from .errors import NotResident
from .handouts import Attempt, Consumer, HandOut
from .ids import EntryID
from .modes import LEASE, MODES, settings_for
from .snapshots import DELAYED, OWED, GroupSnapshot, PendingRecord

if TYPE_CHECKING:
    from .stream import Stream

_SLACK = 1024  # finished ids that an order may hold before it is rebuilt
_ATTEMPTS_KEPT = 16
_HOLES_MAX = 1024


class Group:
    """One group of one stream."""

    __slots__ = (
        "_low",
        "_order",
        "_owed_order",
        "ahead",
        "armed_ms",
        "behind",
        "changed",
        "consumers",
        "cursor",
        "cut",
        "dead_letters",
        "deadlines",
        "delayed",
        "delays",
        "entries_read",
        "head",
        "holes",
        "idle_since_ms",
        "lapsed_connected",
        "learned_visibility_ms",
        "mode",
        "name",
        "next_consumer",
        "number",
        "out_of_turn",
        "owed",
        "own_settings",
        "passed",
        "paused",
        "pending",
        "polls_capped",
        "recovered_tail",
        "reserved",
        "resident",
        "settings",
        "skipped",
        "skips",
        "starved",
        "stories",
        "stream",
        "sweep_ms",
        "tallies",
        "told_ms",
        "used",
    )

    def __init__(self, stream: Stream, number: int, name: bytes) -> None:
        self.stream = stream
        self.number = number
        self.name = name
        self.mode = LEASE
        self.own_settings: dict[str, str] = {}
        self.settings = stream.keyspace.settings
        self.paused = False
        self.head: EntryID = 0
        self.cursor: EntryID = 0
        self.entries_read: int | None = None
        self.passed = 0  # live entries of the stream at or below the head
        self.consumers: dict[bytes, Consumer] = {}
        self.next_consumer = 1
        self.pending: dict[EntryID, HandOut] = {}
        self.tallies: dict[EntryID, Tally] = {}  # absent: one attempt, one delivery
        self.stories: dict[EntryID, list[Attempt]] = {}  # of the pending and dead
        self.owed: set[EntryID] = set()
        self.delayed: dict[EntryID, int] = {}  # until when
        self.dead_letters = DeadLetters()
        self.ahead: set[EntryID] = set()  # finished above the head
        self.behind: list[EntryID] = []  # put back at or below the cursor
        self.out_of_turn: EntryID = 0  # above the head no entry beyond it is known
        self.learned_visibility_ms = 0
        # after a crash: acks up to here settle entries whose delivery was lost
        self.recovered_tail: EntryID = 0
        # bookkeeping that no restart needs
        self.deadlines: list[tuple[int, int, HandOut]] = []
        self.delays: list[tuple[int, EntryID]] = []
        self.armed_ms: int | None = None  # when the keyspace will look at us
        self.sweep_ms: int | None = None  # when unused consumers are looked for
        self.reserved: dict[EntryID, int] = {}  # for which client
        self.starved = False  # a poll was turned away by a cap
        self.holes: list[tuple[EntryID, int]] = []  # gone above the head: where, n
        self.skips: dict[EntryID, int] = {}  # skipped entries directly below
        self.polls_capped = 0
        self.skipped = 0
        self.lapsed_connected = 0  # entries whose holder was still connected
        self.told_ms = 0  # when that was last logged
        self.resident = True  # see eviction.py
        self.used = True  # since the last look for idle groups
        self.idle_since_ms = 0
        self._order: list[EntryID] = []  # handed out, ascending; finished ones too
        self._low = 0  # everything in _order before it is finished
        self._owed_order: list[EntryID] = []  # ascending; settled ones too
        self.changed = True
        self.cut = Cut(set())

    def __str__(self) -> str:
        """As the operator is told of it; bytes that are no text are escaped."""
        name, key = repr(self.name)[1:], repr(self.stream.key)[1:]
        return f"group {name} of stream {key}"

    # --- reading

    @property
    def unread(self) -> int:
        """New entries: above the head, and not taken out of turn.

        Raises NotResident.
        """
        above = self.stream.length - self.passed
        if self.head >= self.out_of_turn:
            return above
        taken = self.pending.keys() | self.ahead | self.dead_letters.listed.keys()
        taken = {id_ for id_ in taken if id_ > self.head}
        try:
            return above - sum(map(self.stream.contains, taken))
        except NotResident:
            need(self.stream, taken)
            raise

    @property
    def lag(self) -> int:
        """What polls could return now and later."""
        return self.unread + len(self.owed)

    @property
    def in_flight(self) -> int:
        return len(self.pending) - len(self.owed)

    @property
    def visibility_ms(self) -> int:
        setting = self.settings.group_visibility_timeout_ms
        return max(setting, self.learned_visibility_ms)

    @property
    def visibility_max_ms(self) -> int:
        return max(self.settings.group_max_visibility_ms, self.visibility_ms)

    @property
    def durable_claims(self) -> bool:
        settings = self.settings
        return self.mode.durable_claims or settings.group_durable_claims == "yes"

    def tally(self, id_: EntryID) -> Tally:
        tally = self.tallies.get(id_)
        return tally or Tally(1, 1, self.pending[id_].began_ms)

    def reason(self, id_: EntryID) -> bytes:
        """Why it was last handed back; empty where nobody said."""
        told = (attempt.reason for attempt in reversed(self.stories.get(id_, ())))
        return next(filter(None, told), b"")

    def last_consumer(self, id_: EntryID) -> bytes:
        """Who holds the pending entry, or held it last."""
        consumer = self.pending[id_].consumer
        if consumer is not None:
            return consumer.name
        told = (attempt.consumer for attempt in reversed(self.stories.get(id_, ())))
        return next(filter(None, told), b"")

    def is_claimed(self, id_: EntryID) -> bool:
        """Whether the pending entry is held by someone."""
        return id_ not in self.owed and id_ not in self.delayed

    def pending_from(self, start: EntryID = 0) -> Iterator[EntryID]:
        """Pending ids at or above ``start``, ascending."""
        for ids, low in ((self.behind, 0), (self._order, self._low)):
            for at in range(bisect_left(ids, start, low), len(ids)):
                if ids[at] in self.pending:
                    yield ids[at]

    def last_pending(self) -> EntryID:
        """The highest pending id, 0 when there is none."""
        for ids, low in ((self._order, self._low), (self.behind, 0)):
            for at in range(len(ids) - 1, low - 1, -1):
                if ids[at] in self.pending:
                    return ids[at]
        return 0

    def owed_from(self, start: EntryID = 0) -> Iterator[EntryID]:
        """Owed ids at or above ``start``, ascending."""
        order = self._owed_order
        for at in range(bisect_left(order, start), len(order)):
            if order[at] in self.owed:
                yield order[at]

    def held_by(self, consumer: Consumer) -> list[EntryID]:
        """The consumer's pending ids, ascending; owed ones under it too."""
        return sorted(
            id_
            for handout in consumer.handouts
            for id_ in handout.ids
            if self.pending.get(id_) is handout
        )

    # --- changes

    def record(self, change: Change) -> None:
        """Apply a change and yield it."""
        GROUP_CHANGES[type(change)](self, change)
        self.stream.keyspace.changes.append(change)

    def touch(self) -> None:
        self.stream.touch()
        self.changed = True

    # --- what several changes do

    def configure(self, own: dict[str, str]) -> None:
        """Take over its own settings; the caller sees to a change of mode."""
        self.own_settings = own
        self.mode = MODES[own.get("mode", LEASE.name)]
        self.settings = settings_for(self.stream.keyspace.settings, own, self.mode)

    def tell(self, id_: EntryID, now_ms: int, how: bytes, reason: bytes = b"") -> None:
        """The pending entry's attempt is over."""
        handout = self.pending[id_]
        name = handout.consumer.name if handout.consumer else b""
        story = self.stories.setdefault(id_, [])
        story.append(Attempt(name, handout.began_ms, now_ms, how, reason))
        del story[:-_ATTEMPTS_KEPT]

    def owe(self, ids: Iterable[EntryID]) -> None:
        """These pending entries are to be handed out again."""
        new = [id_ for id_ in ids if id_ not in self.owed]
        self.owed.update(new)
        if self.delayed:
            for id_ in new:
                self.delayed.pop(id_, None)
        if self.reserved:
            self.unreserve(new)
        order = self._owed_order
        if len(order) > 2 * len(self.owed) + _SLACK:
            order[:] = [id_ for id_ in order if id_ in self.owed]
        for id_ in new:
            _insert(order, id_)

    def delay(self, id_: EntryID, until_ms: int) -> None:
        """Nobody gets the pending entry before ``until_ms``."""
        self.delayed[id_] = until_ms
        self.owed.discard(id_)
        self.reserved.pop(id_, None)
        heappush(self.delays, (until_ms, id_))
        self.arm_at(until_ms)

    def unreserve(self, ids: Iterable[EntryID]) -> None:
        for id_ in ids:
            self.reserved.pop(id_, None)

    def arm(self, handout: HandOut) -> None:
        """The claim has a deadline: look at it then."""
        deadlines = self.deadlines
        if len(deadlines) > _SLACK and len(deadlines) > 2 * len(self.pending):
            deadlines[:] = [item for item in deadlines if is_armed(item)]
            heapify(deadlines)
        rank = self.stream.keyspace.next_rank()
        heappush(deadlines, (handout.deadline_ms, rank, handout))
        if self.armed_ms is None or handout.deadline_ms < self.armed_ms:
            self.stream.keyspace.arm(self, handout.deadline_ms)

    def arm_at(self, due_ms: int) -> None:
        """Look at the group again at this time."""
        if self.armed_ms is None or due_ms < self.armed_ms:
            self.stream.keyspace.arm(self, due_ms)

    def next_deadline(self) -> int | None:
        """When the next claim lapses or the next delay ends."""
        deadlines, delays = self.deadlines, self.delays
        while deadlines and not is_armed(deadlines[0]):
            heappop(deadlines)
        while delays and self.delayed.get(delays[0][1]) != delays[0][0]:
            heappop(delays)
        if not delays:
            return deadlines[0][0] if deadlines else None
        return min(delays[0][0], deadlines[0][0]) if deadlines else delays[0][0]

    def remember(self, ids: list[EntryID]) -> None:
        """Handed out for the first time, ascending."""
        order = self._order
        if order and ids[0] <= order[-1]:
            waiting = [id_ for id_ in order[self._low :] if id_ in self.pending]
            self._order = sorted({*waiting, *ids})
            self._low = 0
            return
        order += ids
        if len(order) > 2 * len(self.pending) + len(ids) + _SLACK:
            known = order[self._low : -len(ids)]
            waiting = [id_ for id_ in known if id_ in self.pending]
            self._order = waiting + ids
            self._low = 0

    def move_head(self, head: EntryID, entries_read: int | None) -> None:
        self.head = head
        self.entries_read = entries_read
        if self.ahead:
            self.ahead = {id_ for id_ in self.ahead if id_ > head}

    def disown(self, ids: Iterable[EntryID]) -> None:
        """These are not owed any more."""
        self.owed.difference_update(ids)
        _drop_head(self._owed_order, self.owed)

    def reorder(self) -> None:
        """The cursor or the pending entries are others now."""
        waiting = sorted(self.pending)
        split = bisect_left(waiting, self.cursor + 1)
        self.behind, self._order, self._low = waiting[:split], waiting[split:], 0

    def finish(self, ids: Sequence[EntryID]) -> None:
        pending = self.pending
        for id_ in ids:
            handout = pending.pop(id_, None)
            if handout is not None:
                handout.live -= 1
                if not handout.live:
                    handout.end()
        if ids and max(ids) > self.head:
            self.ahead.update(id_ for id_ in ids if id_ > self.head)
            self.out_of_turn = max(self.out_of_turn, *ids)
        if self.owed:
            self.disown(ids)
        self._forget(ids)
        self.cut.finish(ids)
        self.advance()

    def advance(self) -> None:
        """Move the cursor over what is finished, up to the first gap."""
        order, pending, low = self._order, self.pending, self._low
        while low < len(order) and order[low] not in pending:
            low += 1
        self._low = low
        stop = self.head
        if low < len(order):
            stop = min(stop, order[low] - 1)
        self.cursor = max(self.cursor, stop)
        if self.behind and self.behind[0] not in pending:
            _drop_head(self.behind, pending)

    def put_back(self, ids: Iterable[EntryID]) -> None:
        """Finished or new entries become pending, held by nobody, and owed."""
        for id_ in ids:
            if id_ <= self.cursor:
                _insert(self.behind, id_)
            else:
                self._low = min(self._low, _insert(self._order, id_))
            self.tallies[id_] = Tally(0, 0, 0)
            if id_ > self.head:
                self.out_of_turn = max(self.out_of_turn, id_)
        self.hold(ids)
        self.owe(ids)

    def hold(self, ids: Iterable[EntryID]) -> None:
        """Pending, held by nobody. Their tallies stand in ``tallies``."""
        for id_ in ids:
            self.pending[id_] = HandOut(self, None, [id_], 0, 0)
        self.cut.pending.update(ids)

    def note_hole(self, at: EntryID, count: int) -> None:
        """So many entries at or below ``at``, above the head, are gone."""
        insort(self.holes, (at, count))
        if len(self.holes) > _HOLES_MAX:  # two neighbours become one
            (_, first), (second_at, second) = self.holes[:2]
            self.holes[:2] = [(second_at, first + second)]

    def skips_below(self, ids: Sequence[EntryID], head: EntryID) -> None:
        """Note what was skipped below new entries; the head moves to ``head``."""
        holes = self.holes
        for id_ in ids:
            below = bisect_left(holes, (id_,))
            if below:
                self.skips[id_] = sum(count for _, count in holes[:below])
                del holes[:below]
        del holes[: bisect_left(holes, (head + 1,))]

    def _forget(self, ids: Sequence[EntryID]) -> None:
        """What was known of entries that are finished."""
        for known in (self.tallies, self.delayed, self.reserved, self.skips):
            if known:
                for id_ in ids:
                    known.pop(id_, None)
        if self.stories:
            listed = self.dead_letters.listed
            for id_ in ids:
                if id_ not in listed:
                    self.stories.pop(id_, None)
        redriven = self.dead_letters.redriven
        if redriven:
            for id_ in ids:
                if redriven.pop(id_, None) is not None:
                    self.cut.dead.add(id_)

    # --- checkpoints and recovery

    def snapshot(self) -> GroupSnapshot:
        """What changed since the last cut; the caller stores it."""
        cut, self.cut = self.cut, Cut(self.cut.stored)
        self.changed = False
        return cut.snapshot(self)

    def restore_pending(self, records: dict[EntryID, PendingRecord]) -> None:
        """Bring back what a snapshot stored. The cursor and head are set."""
        consumers = {c.number: c for c in self.consumers.values()}
        shared: dict[tuple[object, ...], HandOut] = {}
        for id_ in sorted(records):
            record = records[id_]
            claim = record.claim
            handout = shared.get(claim)
            if handout is None:
                consumer = consumers.get(claim.consumer)
                member = consumer.member(claim.user) if consumer else None
                handout = HandOut(self, member, [], claim.handed_ms, claim.began_ms)
                handout.deadline_ms, handout.nonce = claim.deadline_ms, claim.nonce
                shared[claim] = handout
            handout.ids.append(id_)
            handout.live += 1
            self.pending[id_] = handout
            if record.tally != (1, 1, claim.began_ms):
                self.tallies[id_] = record.tally
            if record.story:
                self.stories[id_] = list(record.story)
            if record.state == DELAYED:
                self.delayed[id_] = record.until_ms
        self.owe([id_ for id_, r in records.items() if r.state == OWED])
        self.reorder()
        self.cut.stored = set(records)
        top = (*records, *self.dead_letters.listed, *self.ahead, 0)
        self.out_of_turn = max(top)


def is_armed(item: tuple[int, int, HandOut]) -> bool:
    """Whether this item of ``deadlines`` still speaks of a claim's deadline."""
    return bool(item[2].live) and item[2].deadline_ms == item[0]


def _insert(order: list[EntryID], id_: EntryID) -> int:
    """Its place in the ascending ``order``, where it stands only once."""
    at = bisect_left(order, id_)
    if at == len(order) or order[at] != id_:
        order.insert(at, id_)
    return at


def _drop_head(order: list[EntryID], kept: Container[EntryID]) -> None:
    """Forget what stands before the first that is kept: it is looked at once."""
    at = 0
    while at < len(order) and order[at] not in kept:
        at += 1
    del order[:at]
