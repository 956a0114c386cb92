"""The delivery machine, in lease mode: how claims start and end.

poll.py hands out, takeover.py moves claims; settling and lapsing are here.

    new     --poll--> claimed
    claimed --ack--> finished        --own claim--> claimed
    claimed --claim by another--> claimed (attempts + 1, dead letter when spent)
    claimed --lapse--> owed, dead letter when the attempts are spent
    owed    --poll | claim--> claimed (attempts + 1)      --ack--> finished
    any pending --entry deleted, then poll | lapse | claim--> finished (skipped)

A verb plans first: it reads what it needs and may raise NotResident. Then it
records changes, which cannot fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from .changes import (
    Claimed,
    ConsumerCreated,
    Died,
    Discarded,
    Finished,
    GroupMoved,
    Lapsed,
    Ready,
    Tally,
)
from .cold import need
from .dead_letters import DeadLetter
from .errors import NotResident
from .group import Group
from .handouts import Consumer, HandOut
from .ids import EntryID

if TYPE_CHECKING:
    from .stream import Stream

_LAPSES_MAX = 1000  # entries per call of expire
UNBOUNDED_BYTES = 2**63


@dataclass(frozen=True, slots=True)
class Polled:
    """Raw entries handed out, in the order of the reply."""

    ids: Sequence[EntryID]
    entries: Sequence[bytes]


EMPTY = Polled((), ())


def consumer_named(group: Group, name: bytes, now_ms: int) -> Consumer:
    """The consumer, created if it is new; notes that it was seen."""
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = Consumer(group.next_consumer, name)
        group.record(ConsumerCreated(group, consumer))
    consumer.seen_ms = now_ms
    return consumer


def ack(group: Group, ids: Sequence[EntryID]) -> int:
    """Finish entries; returns how many that settled.

    A plain ID is taken from any consumer, also late. A dead letter with cause
    attempts was finished after all: it leaves the list.
    """
    pending = group.pending
    if len(ids) > 1:
        ids = list(dict.fromkeys(ids))
    done = [id_ for id_ in ids if id_ in pending]
    late: list[EntryID] = []
    if len(done) != len(ids):
        listed = group.dead_letters.listed
        lost: list[EntryID] = []
        for id_ in ids:
            if id_ in pending:
                continue
            letter = listed.get(id_)
            if letter is None:
                lost.append(id_)
            elif letter.cause == b"attempts":
                late.append(id_)
        done += _lost_deliveries(group, lost)
    if done:
        change = Finished(group, done)
        group.apply_finished(change)
        group.stream.keyspace.changes.append(change)
        if group.starved:
            _ready(group)
    if late:
        group.record(Discarded(group, tuple(late)))
    return len(done) + len(late)


def expire(group: Group, now_ms: int) -> None:
    """End the claims that are due; a spent entry becomes a dead letter.

    Takes at most about a thousand entries; more stay due and come next time.
    """
    deadlines = group.deadlines
    if not deadlines or deadlines[0][0] > now_ms:
        return
    due: list[EntryID] = []
    handouts: list[HandOut] = []
    while deadlines and deadlines[0][0] <= now_ms and len(due) < _LAPSES_MAX:
        handout = heappop(deadlines)[2]
        if handout.live and handout.deadline_ms <= now_ms:
            handouts.append(handout)
            due += _standing(group, handout)
    try:
        end_claims(group, due, now_ms)
    except NotResident:  # nothing has changed: they are still due
        for handout in handouts:
            rank = group.stream.keyspace.next_rank()
            heappush(deadlines, (handout.deadline_ms, rank, handout))
        raise


def end_claims(group: Group, ids: Sequence[EntryID], now_ms: int) -> None:
    """Claims on ``ids`` lapse now."""
    stream = group.stream
    unsure = [id_ for id_ in ids if may_be_gone(stream, id_)]
    need(stream, unsure)
    gone = {id_: None for id_ in unsure if not stream.contains(id_)}
    spent, owed = [], []
    for id_ in ids:
        if id_ in gone:
            continue
        if is_spent(group, group.tally(id_)):
            spent.append(id_)
        else:
            owed.append(id_)
    letters = letters_for(group, spent, now_ms)
    record_losses(group, list(gone), letters)
    if owed:
        group.owe(owed)
        group.stream.keyspace.changes.append(Lapsed(group, tuple(owed)))


def next_deadline(group: Group) -> int | None:
    """The earliest deadline of a claim that still stands."""
    deadlines = group.deadlines
    while deadlines and not deadlines[0][2].live:
        heappop(deadlines)
    return deadlines[0][0] if deadlines else None


def give_back(handout: HandOut) -> None:
    """The reply never left: what it handed out is owed, and cost nothing."""
    group = handout.group
    ids = _standing(group, handout)
    if not ids or handout.consumer is None:
        return
    tallies = {}
    for id_ in ids:
        tally = group.tally(id_)
        attempts, deliveries = tally.attempts - 1, tally.deliveries - 1
        tallies[id_] = Tally(max(attempts, 0), max(deliveries, 0), tally.first_ms)
    group.record(Claimed(group, handout.consumer, tallies, handout.handed_ms))
    group.owe(ids)
    group.stream.keyspace.changes.append(Lapsed(group, tuple(ids)))


def move(group: Group, head: EntryID, entries_read: int | None) -> None:
    """XGROUP SETID: pending entries and dead letters stay.

    Forward, what it jumps is finished; backward, what was acked comes again.
    """
    passed = group.stream.count_until(head)
    group.record(GroupMoved(group, head, entries_read, passed))


def learn(group: Group, min_idle_ms: int, now_ms: int) -> bool:
    """A client waits this long before it takes work over: so will we.

    Lifts the group's visibility, and the standing claims; True when it did.
    """
    settings = group.stream.keyspace.settings
    wanted = min(min_idle_ms, settings.group_max_visibility_ms)
    if settings.group_learn_visibility != "yes" or wanted <= group.visibility_ms:
        return False
    expire(group, now_ms)
    more = wanted - group.visibility_ms
    group.learned_visibility_ms = wanted
    moved = []
    for deadline_ms, rank, handout in group.deadlines:
        handout.deadline_ms = deadline_ms + more
        moved.append((handout.deadline_ms, rank, handout))
    heapify(moved)
    group.deadlines = moved
    return True


def is_spent(group: Group, tally: Tally) -> bool:
    attempts_max = group.stream.keyspace.settings.group_max_attempts
    return bool(attempts_max) and tally.attempts >= attempts_max


def may_be_gone(stream: Stream, id_: EntryID) -> bool:
    """False where the entry is surely there, without looking at its node."""
    if id_ <= stream.max_deleted_id or not stream.nodes:
        return True
    oldest = stream.nodes[0]
    return id_ < oldest.first or (oldest.dead != 0 and id_ <= oldest.last)


def _lost_deliveries(group: Group, ids: Iterable[EntryID]) -> Sequence[EntryID]:
    """Those that may have been handed out just before a crash."""
    head, tail, ahead = group.head, group.recovered_tail, group.ahead
    above = [id_ for id_ in ids if head < id_ <= tail and id_ not in ahead]
    if above:
        need(group.stream, above)
    return [id_ for id_ in above if group.stream.contains(id_)]


def _standing(group: Group, handout: HandOut) -> list[EntryID]:
    """The hand-out's entries that are still claimed under it."""
    pending, owed = group.pending, group.owed
    return [
        id_ for id_ in handout.ids if pending.get(id_) is handout and id_ not in owed
    ]


def record_losses(
    group: Group, gone: Sequence[EntryID], letters: Sequence[DeadLetter]
) -> None:
    if gone:
        group.skipped += len(gone)
        group.record(Finished(group, list(gone)))
    if letters:
        group.record(Died(group, tuple(letters)))
    if group.starved and (gone or letters):
        _ready(group)


def letters_for(
    group: Group, ids: Sequence[EntryID], now_ms: int
) -> Sequence[DeadLetter]:
    """What the list will say of entries whose attempts are spent."""
    letters = []
    for id_ in ids:
        attempts, _, first_ms = group.tally(id_)
        consumer = group.pending[id_].consumer
        before = group.dead_letters.redriven.get(id_)
        letters.append(
            DeadLetter(
                id=id_,
                attempts=attempts,
                cause=b"attempts",
                reason=b"",
                consumer=consumer.name if consumer else b"",
                first_delivered_ms=first_ms,
                dead_ms=now_ms,
                redriven=before.redriven + 1 if before else 0,
            )
        )
    return letters


def hand_over(
    group: Group,
    consumer: Consumer,
    tallies: dict[EntryID, Tally],
    handed_ms: int,
    now_ms: int,
    client_id: int,
) -> HandOut:
    change = Claimed(group, consumer, tallies, handed_ms)
    handout = group.apply_claimed(change)
    group.stream.keyspace.changes.append(change)
    group.arm(handout, now_ms, client_id)
    return handout


def _ready(group: Group) -> None:
    group.starved = False
    group.stream.keyspace.changes.append(Ready(group))
