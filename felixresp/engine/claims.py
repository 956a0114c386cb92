"""The verbs of the delivery machine, in lease mode.

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
    Delivered,
    Died,
    Discarded,
    Finished,
    Forced,
    GroupMoved,
    Lapsed,
    Passed,
    Ready,
    Tally,
)
from .dead_letters import DeadLetter
from .errors import NotResident
from .group import Consumer, Group, HandOut
from .ids import EntryID
from .lag import entries_read_after

if TYPE_CHECKING:
    from .stream import Stream

_LAPSES_MAX = 1000  # entries per call of expire
_SCAN_PER_COUNT = 10  # XAUTOCLAIM looks at this many times COUNT entries
_UNBOUNDED_BYTES = 2**63


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


def poll(  # noqa: PLR0913 - the arguments of XREADGROUP >
    group: Group,
    consumer: Consumer,
    now_ms: int,
    *,
    count: int,
    client_id: int = 0,
    bytes_max: int = _UNBOUNDED_BYTES,
    no_ack: bool = False,
) -> Polled:
    """Hand out owed entries, then new ones: XREADGROUP ``>``.

    At most ``count`` and what the caps leave; stops once ``bytes_max`` are
    read, after the entry that crosses the line.
    """
    expire(group, now_ms)
    room = _room(group, count, no_ack=no_ack)
    if room <= 0:
        return EMPTY
    owed = _plan_owed(group, room, bytes_max)
    room -= len(owed.entries)
    room_bytes = bytes_max - sum(map(len, owed.entries))
    new = _NOTHING_NEW
    if (
        room > 0
        and room_bytes > 0
        and group.stream.last_id > group.head
        and not _ranges_full(group)
    ):
        new = _plan_new(group, room, room_bytes)
    _record_losses(group, owed.gone, _letters(group, owed.spent, now_ms))
    if no_ack:
        _finish_at_once(group, owed.ids, new)
    else:
        if owed.ids:
            again = {id_: _one_more(group, id_, now_ms) for id_ in owed.ids}
            _claim(group, consumer, again, now_ms, now_ms, client_id)
            consumer.active_ms = now_ms
        if new.ids:
            _deliver(group, consumer, new, now_ms, client_id)
        elif new.scanned:
            _pass_over(group, new)
    if owed.ids:
        return Polled(owed.ids + new.ids, owed.entries + new.entries)
    return Polled(new.ids, new.entries)


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
        for id_ in ids:
            if id_ in pending:
                continue
            letter = listed.get(id_)
            if letter is not None:
                if letter.cause == b"attempts":
                    late.append(id_)
            elif _lost_delivery(group, id_):
                done.append(id_)
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
    spent, owed, gone = [], [], []
    for id_ in ids:
        if _may_be_gone(group.stream, id_) and not group.stream.contains(id_):
            gone.append(id_)
        elif _is_spent(group, group.tally(id_)):
            spent.append(id_)
        else:
            owed.append(id_)
    letters = _letters(group, spent, now_ms)
    _record_losses(group, gone, letters)
    if owed:
        group.owe(owed)
        group.stream.keyspace.changes.append(Lapsed(group, tuple(owed)))
    elif group.starved:
        _ready(group)


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


@dataclass(frozen=True, slots=True)
class ClaimOptions:
    """What XCLAIM asks for besides the ids; times in ms."""

    min_idle_ms: int
    handed_ms: int  # when the claim's idle time starts
    retry_count: int | None = None
    force: bool = False
    just_id: bool = False
    last_id: EntryID = 0


def claim(
    group: Group,
    consumer: Consumer,
    ids: Iterable[EntryID],
    options: ClaimOptions,
    now_ms: int,
    client_id: int = 0,
) -> Polled:
    """XCLAIM: take the pending entries of ``ids`` that are idle enough."""
    expire(group, now_ms)
    wanted, gone, spent, forced = {}, [], [], []
    entries = []
    for id_ in dict.fromkeys(ids):
        handout = group.pending.get(id_)
        entry = group.stream.entry(id_)
        if handout is None:
            if not options.force or entry is None:
                continue
            forced.append(id_)
            tally = Tally(0, 0, 0)
        elif entry is None:
            gone.append(id_)
            continue
        elif not _is_idle(group, id_, options.min_idle_ms, now_ms):
            continue
        else:
            tally = group.tally(id_)
        own = handout is not None and _owns(group, consumer, id_)
        free = options.just_id or own
        if options.retry_count is None and not free and _is_spent(group, tally):
            spent.append(id_)
            continue
        wanted[id_] = _claimed_tally(tally, options, now_ms, free=free)
        entries.append(entry)
    if options.last_id > group.head:
        move(group, options.last_id, group.entries_read)
    _record_losses(group, gone, _letters(group, spent, now_ms))
    if forced:
        group.record(Forced(group, tuple(forced)))
    if wanted:
        _claim(group, consumer, wanted, options.handed_ms, now_ms, client_id)
        consumer.active_ms = now_ms
    return Polled(list(wanted), entries)


@dataclass(frozen=True, slots=True)
class AutoClaimed:
    """What XAUTOCLAIM answers; ``next_id`` is 0 at the end."""

    next_id: EntryID
    polled: Polled
    deleted: Sequence[EntryID]


def autoclaim(  # noqa: PLR0913 - the arguments of XAUTOCLAIM
    group: Group,
    consumer: Consumer,
    start: EntryID,
    now_ms: int,
    *,
    min_idle_ms: int,
    count: int,
    just_id: bool = False,
    client_id: int = 0,
) -> AutoClaimed:
    """XAUTOCLAIM: take idle pending entries from ``start`` on, in ID order."""
    expire(group, now_ms)
    wanted, entries, deleted, spent = {}, [], [], []
    attempts_left, room, next_id = count * _SCAN_PER_COUNT, count, 0
    for id_ in group.pending_from(start):
        if not attempts_left or not room:
            next_id = id_
            break
        attempts_left -= 1
        if not _is_idle(group, id_, min_idle_ms, now_ms):
            continue
        entry = group.stream.entry(id_)
        tally = group.tally(id_)
        if entry is None:
            deleted.append(id_)
            room -= 1
        elif not just_id and _is_spent(group, tally):
            spent.append(id_)
        else:
            options = ClaimOptions(min_idle_ms, now_ms, just_id=just_id)
            wanted[id_] = _claimed_tally(tally, options, now_ms, free=just_id)
            entries.append(entry)
            room -= 1
    _record_losses(group, deleted, _letters(group, spent, now_ms))
    if wanted:
        _claim(group, consumer, wanted, now_ms, now_ms, client_id)
        consumer.active_ms = now_ms
    return AutoClaimed(next_id, Polled(list(wanted), entries), deleted)


def history(  # noqa: PLR0913 - the arguments of XREADGROUP id
    group: Group,
    consumer: Consumer,
    after: EntryID,
    now_ms: int,
    *,
    count: int,
    client_id: int = 0,
    bytes_max: int = _UNBOUNDED_BYTES,
) -> list[tuple[EntryID, bytes | None]]:
    """The consumer's own standing claims above ``after``: (id, entry or None).

    Re-arms the deadlines. Costs an attempt once per claim, and only on another
    connection than the one that got it: a restarted worker, not a re-read.
    """
    expire(group, now_ms)
    settings = group.stream.keyspace.settings
    count = min(count, settings.group_max_poll_entries)
    read: list[tuple[EntryID, bytes | None]] = []
    spent: list[EntryID] = []
    claims: dict[tuple[int, bool], dict[EntryID, Tally]] = {}
    read_bytes = 0
    for id_ in group.held_by(consumer):
        if id_ <= after or id_ in group.owed:
            continue
        if len(read) >= count or read_bytes >= bytes_max:
            break
        entry = group.stream.entry(id_)
        if entry is None:
            read.append((id_, None))
            continue
        handout, tally = group.pending[id_], group.tally(id_)
        charge = not handout.charged and handout.client_id != client_id
        if charge and _is_spent(group, tally):
            spent.append(id_)
            continue
        attempts = tally.attempts + charge
        place = handout.client_id, handout.charged or charge
        again = Tally(attempts, tally.deliveries + 1, tally.first_ms)
        claims.setdefault(place, {})[id_] = again
        read.append((id_, entry))
        read_bytes += len(entry)
    _record_losses(group, (), _letters(group, spent, now_ms))
    for (holder_id, charged), tallies in claims.items():
        handout = _claim(group, consumer, tallies, now_ms, now_ms, holder_id)
        handout.charged = charged
    return read


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
    more = wanted - group.visibility_ms
    group.learned_visibility_ms = wanted
    expire(group, now_ms)
    moved = []
    for deadline_ms, rank, handout in group.deadlines:
        handout.deadline_ms = deadline_ms + more
        moved.append((handout.deadline_ms, rank, handout))
    heapify(moved)
    group.deadlines = moved
    return True


# --- planning


@dataclass(slots=True)
class _Owed:
    ids: list[EntryID]
    entries: list[bytes]
    gone: list[EntryID]
    spent: list[EntryID]


_NOTHING_OWED = _Owed([], [], [], [])


def _plan_owed(group: Group, room: int, bytes_max: int) -> _Owed:
    if not group.owed:
        return _NOTHING_OWED
    plan = _Owed([], [], [], [])
    read_bytes = 0
    for id_ in group.owed_from():
        entry = group.stream.entry(id_)
        if entry is None:
            plan.gone.append(id_)
        elif _is_spent(group, group.tally(id_)):
            plan.spent.append(id_)
        else:
            plan.ids.append(id_)
            plan.entries.append(entry)
            read_bytes += len(entry)
            if len(plan.ids) == room or read_bytes >= bytes_max:
                break
    return plan


@dataclass(slots=True)
class _New:
    ids: list[EntryID]
    entries: list[bytes]
    head: EntryID  # after them
    scanned: int  # live entries between the old head and the new one


_NOTHING_NEW = _New([], [], 0, 0)


def _plan_new(group: Group, room: int, bytes_max: int) -> _New:
    stream, head = group.stream, group.head
    if head >= group.out_of_turn:
        ids, entries = stream.read_after(head, room, bytes_max)
        return _New(ids, entries, ids[-1], len(ids)) if ids else _NOTHING_NEW
    # some entries above the head were finished, claimed or buried out of turn
    taken = group.pending.keys() | group.ahead | group.dead_letters.listed.keys()
    plan = _New([], [], head, 0)
    while room > len(plan.ids) and bytes_max > 0:
        ids, entries = stream.read_after(plan.head, room - len(plan.ids), bytes_max)
        if not ids:
            break
        plan.head = ids[-1]
        plan.scanned += len(ids)
        for id_, entry in zip(ids, entries, strict=True):
            if id_ not in taken:
                plan.ids.append(id_)
                plan.entries.append(entry)
                bytes_max -= len(entry)
    return plan


def _room(group: Group, count: int, *, no_ack: bool) -> int:
    settings = group.stream.keyspace.settings
    room = min(count, settings.group_max_poll_entries)
    if len(group.dead_letters.listed) >= settings.group_max_dead_letters:
        group.starved = True
        return 0
    if no_ack:
        return room
    left = settings.group_max_in_flight - group.in_flight
    if left < room:
        room = left
        if left <= 0:
            group.starved = True
            group.polls_capped += 1
    return room


def _ranges_full(group: Group) -> bool:
    """Acked-ahead ranges lie between pending entries, so are never more."""
    settings = group.stream.keyspace.settings
    if len(group.pending) < settings.group_max_acked_ahead_ranges:
        return False
    group.starved = True
    return True


def _is_spent(group: Group, tally: Tally) -> bool:
    attempts_max = group.stream.keyspace.settings.group_max_attempts
    return bool(attempts_max) and tally.attempts >= attempts_max


def _is_idle(group: Group, id_: EntryID, min_idle_ms: int, now_ms: int) -> bool:
    """Owed entries match at any min-idle."""
    return id_ in group.owed or now_ms - group.pending[id_].handed_ms >= min_idle_ms


def _may_be_gone(stream: Stream, id_: EntryID) -> bool:
    """False where the entry is surely there, without looking at its node."""
    if id_ <= stream.max_deleted_id or not stream.nodes:
        return True
    oldest = stream.nodes[0]
    return id_ < oldest.first or (oldest.dead != 0 and id_ <= oldest.last)


def _owns(group: Group, consumer: Consumer, id_: EntryID) -> bool:
    return group.pending[id_].consumer is consumer and id_ not in group.owed


def _lost_delivery(group: Group, id_: EntryID) -> bool:
    """Whether the entry may have been handed out just before a crash."""
    return (
        group.head < id_ <= group.stream.recovered_tail
        and id_ not in group.ahead
        and group.stream.contains(id_)
    )


def _one_more(group: Group, id_: EntryID, now_ms: int) -> Tally:
    attempts, deliveries, first_ms = group.tally(id_)
    return Tally(attempts + 1, deliveries + 1, first_ms or now_ms)


def _claimed_tally(
    tally: Tally, options: ClaimOptions, now_ms: int, *, free: bool
) -> Tally:
    first_ms = tally.first_ms or now_ms
    if options.retry_count is not None:
        return Tally(options.retry_count, options.retry_count, first_ms)
    deliveries = tally.deliveries + (not options.just_id)
    return Tally(tally.attempts + (not free), deliveries, first_ms)


def _standing(group: Group, handout: HandOut) -> list[EntryID]:
    """The hand-out's entries that are still claimed under it."""
    pending, owed = group.pending, group.owed
    return [
        id_ for id_ in handout.ids if pending.get(id_) is handout and id_ not in owed
    ]


# --- recording


def _record_losses(
    group: Group, gone: Sequence[EntryID], letters: Sequence[DeadLetter]
) -> None:
    if gone:
        group.skipped += len(gone)
        group.record(Finished(group, list(gone)))
    if letters:
        group.record(Died(group, tuple(letters)))


def _letters(group: Group, ids: Sequence[EntryID], now_ms: int) -> Sequence[DeadLetter]:
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


def _claim(
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
    _arm(group, handout, now_ms, client_id)
    return handout


def _arm(group: Group, handout: HandOut, now_ms: int, client_id: int) -> None:
    group.arm(handout, now_ms, client_id)
    group.stream.keyspace.handed.append(handout)


def _deliver(
    group: Group, consumer: Consumer, new: _New, now_ms: int, client_id: int
) -> None:
    read = entries_read_after(group, new.ids)
    passed = group.passed + new.scanned
    change = Delivered(group, consumer, new.ids, new.head, read, passed, now_ms)
    handout = group.apply_delivered(change)
    group.stream.keyspace.changes.append(change)
    _arm(group, handout, now_ms, client_id)


def _finish_at_once(group: Group, owed: Sequence[EntryID], new: _New) -> None:
    """NOACK: what is handed out is finished; a lost reply loses it."""
    if owed:
        group.record(Finished(group, list(owed)))
    if new.scanned:
        _pass_over(group, new)


def _pass_over(group: Group, new: _New) -> None:
    read = entries_read_after(group, new.ids or [new.head])
    group.record(Passed(group, new.head, read, group.passed + new.scanned))


def _ready(group: Group) -> None:
    group.starved = False
    group.stream.keyspace.changes.append(Ready(group))
