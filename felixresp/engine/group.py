"""A consumer group: what it holds, and how each change alters it.

Every entry at or below ``cursor`` is finished. An entry in (cursor, head] is
pending (in ``pending``) or finished. A pending entry points to its last
hand-out; it is owed when it is in ``owed``, else claimed until that hand-out's
deadline. Entries above ``head`` are new, but for the few that were finished,
claimed or buried out of turn.

The verbs are in claims.py and dead_letters.py. Here is what changes apply,
live and in recovery: none of it can fail, reads a clock or a setting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from heapq import heapify, heappush
from typing import TYPE_CHECKING, Any

from .changes import (
    Change,
    Claimed,
    ConsumerCreated,
    ConsumerDeleted,
    Delivered,
    Died,
    Discarded,
    Finished,
    Forced,
    GroupMoved,
    Passed,
    Redriven,
    Tally,
)
from .cold import need
from .cuts import Cut
from .dead_letters import DeadLetters
from .errors import NotResident
from .handouts import Consumer, HandOut
from .ids import EntryID
from .snapshots import GroupSnapshot, PendingRecord

if TYPE_CHECKING:
    from .stream import Stream

_SLACK = 1024  # finished ids that an order may hold before it is rebuilt


class Group:
    """One group of one stream."""

    __slots__ = (
        "_cut",
        "_low",
        "_order",
        "_owed_order",
        "ahead",
        "armed_ms",
        "behind",
        "changed",
        "consumers",
        "cursor",
        "dead_letters",
        "deadlines",
        "entries_read",
        "head",
        "learned_visibility_ms",
        "name",
        "next_consumer",
        "number",
        "out_of_turn",
        "owed",
        "passed",
        "pending",
        "polls_capped",
        "recovered_tail",
        "skipped",
        "starved",
        "stream",
        "tallies",
    )

    def __init__(self, stream: Stream, number: int, name: bytes) -> None:
        self.stream = stream
        self.number = number
        self.name = name
        self.head: EntryID = 0
        self.cursor: EntryID = 0
        self.entries_read: int | None = None
        self.passed = 0  # live entries of the stream at or below the head
        self.consumers: dict[bytes, Consumer] = {}
        self.next_consumer = 1
        self.pending: dict[EntryID, HandOut] = {}
        self.tallies: dict[EntryID, Tally] = {}  # absent: one attempt, one delivery
        self.owed: set[EntryID] = set()
        self.dead_letters = DeadLetters()
        self.ahead: set[EntryID] = set()  # finished above the head
        self.behind: list[EntryID] = []  # put back at or below the cursor
        self.out_of_turn: EntryID = 0  # above the head no entry beyond it is known
        self.learned_visibility_ms = 0
        # after a crash: acks up to here settle entries whose delivery was lost
        self.recovered_tail: EntryID = 0
        # bookkeeping that no restart needs
        self.deadlines: list[tuple[int, int, HandOut]] = []
        self.armed_ms: int | None = None  # when the keyspace will look at us
        self.starved = False  # a poll was turned away by a cap
        self.polls_capped = 0
        self.skipped = 0
        self._order: list[EntryID] = []  # handed out, ascending; finished ones too
        self._low = 0  # everything in _order before it is finished
        self._owed_order: list[EntryID] = []  # ascending; settled ones too
        self.changed = True
        self._cut = Cut(set())

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
        setting = self.stream.keyspace.settings.group_visibility_timeout_ms
        return max(setting, self.learned_visibility_ms)

    def tally(self, id_: EntryID) -> Tally:
        tally = self.tallies.get(id_)
        return tally or Tally(1, 1, self.pending[id_].handed_ms)

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

    def apply_delivered(self, change: Delivered) -> HandOut:
        self.touch()
        ids, consumer = change.ids, change.consumer
        handout = HandOut(self, consumer, ids, change.now_ms)
        self._remember(ids)
        self.pending.update(dict.fromkeys(ids, handout))
        self._cut.pending.update(ids)
        self.passed = change.passed
        self._move_head(change.head, change.entries_read)
        consumer.active_ms = consumer.seen_ms = change.now_ms
        self._cut.consumers.add(consumer.number)
        return handout

    def apply_claimed(self, change: Claimed) -> HandOut:
        self.touch()
        consumer = change.consumer
        handout = HandOut(self, consumer, list(change.tallies), change.handed_ms)
        for id_ in handout.ids:
            self.pending[id_].let_go()
            self.pending[id_] = handout
        self.tallies.update(change.tallies)
        if self.owed:
            self._disown(handout.ids)
        self._cut.pending.update(handout.ids)
        return handout

    def apply_finished(self, change: Finished) -> None:
        self.touch()
        self._finish(change.ids)

    def apply_passed(self, change: Passed) -> None:
        self.touch()
        self.passed = change.passed
        self._move_head(change.head, change.entries_read)
        self._advance()

    def apply_moved(self, change: GroupMoved) -> None:
        self.touch()
        back = change.head < self.head
        self.head, self.entries_read = change.head, change.entries_read
        self.passed = change.passed
        self.cursor = min(self.cursor, change.head)
        waiting = sorted(self.pending)
        split = bisect_left(waiting, self.cursor + 1)
        self.behind, self._order, self._low = waiting[:split], waiting[split:], 0
        self.ahead = {id_ for id_ in self.ahead if id_ > self.head}
        if back:
            listed = self.dead_letters.listed
            top = (*self.pending, *listed, *self.ahead, self.out_of_turn)
            self.out_of_turn = max(top)
        self._advance()

    def apply_forced(self, change: Forced) -> None:
        self.touch()
        for id_ in change.ids:
            self.ahead.discard(id_)
            self.dead_letters.redrive(id_)
            self._cut.dead.add(id_)
        self._put_back(change.ids)

    def apply_died(self, change: Died) -> None:
        self.touch()
        for letter in change.letters:
            self.dead_letters.add(letter)
            self._cut.dead.add(letter.id)
        self._finish([letter.id for letter in change.letters])

    def apply_redriven(self, change: Redriven) -> None:
        self.touch()
        for id_ in change.ids:
            self.dead_letters.redrive(id_)
            self._cut.dead.add(id_)
            self.ahead.discard(id_)
        self._put_back(change.ids)

    def apply_discarded(self, change: Discarded) -> None:
        self.touch()
        for id_ in change.ids:
            self.dead_letters.remove(id_)
            self._cut.dead.add(id_)
            if id_ > self.head:  # after SETID back: still finished, never new
                self.ahead.add(id_)

    def apply_consumer_created(self, change: ConsumerCreated) -> None:
        self.touch()
        consumer = change.consumer
        self.consumers[consumer.name] = consumer
        self.next_consumer = max(self.next_consumer, consumer.number + 1)
        self._cut.consumers.add(consumer.number)

    def apply_consumer_deleted(self, change: ConsumerDeleted) -> None:
        self.touch()
        consumer = change.consumer
        del self.consumers[consumer.name]
        self._cut.consumers.add(consumer.number)
        held = self.held_by(consumer)
        for id_ in held:
            self.tallies[id_] = self.tally(id_)
        for handout in consumer.handouts:
            handout.live = 0
        consumer.handouts = {}
        self._hold(held)
        self.owe(held)

    # --- what several changes do

    def owe(self, ids: Iterable[EntryID]) -> None:
        """These pending entries are to be handed out again."""
        new = [id_ for id_ in ids if id_ not in self.owed]
        self.owed.update(new)
        order = self._owed_order
        if len(order) > 2 * len(self.owed) + _SLACK:
            order[:] = [id_ for id_ in order if id_ in self.owed]
        for id_ in new:
            _insert(order, id_)

    def recover(self, tail: EntryID) -> None:
        """After a restart every claim is over: all that is pending is owed."""
        self.recovered_tail = tail
        self.owe(sorted(self.pending))

    def arm(self, handout: HandOut, now_ms: int, client_id: int) -> None:
        """Start a claim's time."""
        handout.client_id = client_id
        handout.deadline_ms = now_ms + self.visibility_ms
        deadlines = self.deadlines
        if len(deadlines) > _SLACK and len(deadlines) > 2 * len(self.pending):
            deadlines[:] = [item for item in deadlines if item[2].live]
            heapify(deadlines)
        keyspace = self.stream.keyspace
        heappush(deadlines, (handout.deadline_ms, keyspace.next_rank(), handout))
        if self.armed_ms is None or handout.deadline_ms < self.armed_ms:
            keyspace.arm(self, handout.deadline_ms)

    def _remember(self, ids: list[EntryID]) -> None:
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

    def _move_head(self, head: EntryID, entries_read: int | None) -> None:
        self.head = head
        self.entries_read = entries_read
        if self.ahead:
            self.ahead = {id_ for id_ in self.ahead if id_ > head}

    def _disown(self, ids: Iterable[EntryID]) -> None:
        """These are not owed any more."""
        self.owed.difference_update(ids)
        _drop_head(self._owed_order, self.owed)

    def _finish(self, ids: Sequence[EntryID]) -> None:
        pending, cut = self.pending, self._cut
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
            self._disown(ids)
        if self.tallies:
            for id_ in ids:
                self.tallies.pop(id_, None)
        redriven = self.dead_letters.redriven
        if redriven:
            for id_ in ids:
                if redriven.pop(id_, None) is not None:
                    cut.dead.add(id_)
        cut.finish(ids)
        self._advance()

    def _advance(self) -> None:
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

    def _put_back(self, ids: Iterable[EntryID]) -> None:
        """Finished or new entries become pending, held by nobody, and owed."""
        for id_ in ids:
            if id_ <= self.cursor:
                _insert(self.behind, id_)
            else:
                self._low = min(self._low, _insert(self._order, id_))
            self.tallies[id_] = Tally(0, 0, 0)
            if id_ > self.head:
                self.out_of_turn = max(self.out_of_turn, id_)
        self._hold(ids)
        self.owe(ids)

    def _hold(self, ids: Iterable[EntryID]) -> None:
        """Pending, held by nobody."""
        for id_ in ids:
            self.pending[id_] = HandOut(self, None, [id_], 0)
        self._cut.pending.update(ids)

    # --- checkpoints and recovery

    def snapshot(self) -> GroupSnapshot:
        """What changed since the last cut; the caller stores it."""
        cut, self._cut = self._cut, Cut(self._cut.stored)
        self.changed = False
        return cut.snapshot(self)

    def restore_pending(self, records: dict[EntryID, PendingRecord]) -> None:
        """Bring back what a snapshot stored. The cursor and head are set."""
        consumers = {c.number: c for c in self.consumers.values()}
        shared: dict[tuple[int, int], HandOut] = {}
        for id_ in sorted(records):
            record = records[id_]
            place = record.consumer, record.handed_ms
            handout = shared.get(place)
            if handout is None:
                consumer = consumers.get(record.consumer)
                handout = HandOut(self, consumer, [], record.handed_ms)
                shared[place] = handout
            handout.ids.append(id_)
            handout.live += 1
            self.pending[id_] = handout
            if record.tally != (1, 1, record.handed_ms):
                self.tallies[id_] = record.tally
        ids = sorted(records)
        split = bisect_left(ids, self.cursor + 1)
        self.behind, self._order, self._low = ids[:split], ids[split:], 0
        self._cut.stored = set(records)
        top = (*ids, *self.dead_letters.listed, *self.ahead, 0)
        self.out_of_turn = max(top)


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


# fmt: off
GROUP_CHANGES: dict[type[Change], Callable[[Group, Any], object]] = {
    Delivered: Group.apply_delivered,
    Claimed: Group.apply_claimed,
    Finished: Group.apply_finished,
    Passed: Group.apply_passed,
    GroupMoved: Group.apply_moved,
    Forced: Group.apply_forced,
    Died: Group.apply_died,
    Redriven: Group.apply_redriven,
    Discarded: Group.apply_discarded,
    ConsumerCreated: Group.apply_consumer_created,
    ConsumerDeleted: Group.apply_consumer_deleted,
}
# fmt: on
