"""XREADGROUP ``>`` in lease mode: owed entries first, then new ones.

The caps, and what a poll does to entries that are gone or spent, are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from .changes import Delivered, Finished, Passed, Tally
from .claims import (
    EMPTY,
    UNBOUNDED_BYTES,
    Polled,
    expire,
    hand_over,
    is_spent,
    letters_for,
    record_losses,
)
from .cold import need
from .errors import NotResident
from .group import Group
from .handouts import Consumer
from .ids import EntryID
from .lag import entries_read_after


def poll(  # noqa: PLR0913 - the arguments of XREADGROUP >
    group: Group,
    consumer: Consumer,
    now_ms: int,
    *,
    count: int,
    client_id: int = 0,
    bytes_max: int = UNBOUNDED_BYTES,
    no_ack: bool = False,
) -> Polled:
    """Hand out owed entries, then new ones: XREADGROUP ``>``.

    At most ``count`` and what the caps leave; stops once ``bytes_max`` are
    read, after the entry that crosses the line.
    """
    deadlines = group.deadlines
    if deadlines and deadlines[0][0] <= now_ms:
        expire(group, now_ms)
    room = _room(group, count, no_ack=no_ack)
    if room <= 0:
        return EMPTY
    owed, room_bytes = _NOTHING_OWED, bytes_max
    if group.owed:
        try:
            owed = _plan_owed(group, room, bytes_max)
        except NotResident:
            need(group.stream, islice(group.owed_from(), room))
            raise
        room -= len(owed.entries)
        room_bytes -= sum(map(len, owed.entries))
    new = _NOTHING_NEW
    if (
        room > 0
        and room_bytes > 0
        and group.stream.last_id > group.head
        and not _ranges_full(group)
    ):
        new = _plan_new(group, room, room_bytes)
    if owed.gone or owed.spent:
        record_losses(group, owed.gone, letters_for(group, owed.spent, now_ms))
    if no_ack:
        _finish_at_once(group, owed.ids, new)
    else:
        if owed.ids:
            again = {id_: _one_more(group, id_, now_ms) for id_ in owed.ids}
            handout = hand_over(group, consumer, again, now_ms, now_ms, client_id)
            group.stream.keyspace.handed.append(handout)
            consumer.active_ms = now_ms
        if new.ids:
            _deliver(group, consumer, new, now_ms, client_id)
        elif new.scanned:
            _pass_over(group, new)
    if owed.ids:
        return Polled(owed.ids + new.ids, owed.entries + new.entries)
    return Polled(new.ids, new.entries)


@dataclass(slots=True)
class _Owed:
    ids: list[EntryID]
    entries: list[bytes]
    gone: list[EntryID]
    spent: list[EntryID]


_NOTHING_OWED = _Owed([], [], [], [])


def _plan_owed(group: Group, room: int, bytes_max: int) -> _Owed:
    plan = _Owed([], [], [], [])
    read_bytes = 0
    for id_ in group.owed_from():
        entry = group.stream.entry(id_)
        if entry is None:
            plan.gone.append(id_)
        elif is_spent(group, group.tally(id_)):
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
    entries_read: int | None = None  # Redis's counter, after them


_NOTHING_NEW = _New([], [], 0, 0)


def _plan_new(group: Group, room: int, bytes_max: int) -> _New:
    stream, head = group.stream, group.head
    if head >= group.out_of_turn:
        ids, entries = stream.read_after(head, room, bytes_max)
        if not ids:
            return _NOTHING_NEW
        read = entries_read_after(group, ids)
        return _New(ids, entries, ids[-1], len(ids), read)
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
    if plan.scanned:
        plan.entries_read = entries_read_after(group, plan.ids or [plan.head])
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


def _one_more(group: Group, id_: EntryID, now_ms: int) -> Tally:
    attempts, deliveries, first_ms = group.tally(id_)
    return Tally(attempts + 1, deliveries + 1, first_ms or now_ms)


def _deliver(
    group: Group, consumer: Consumer, new: _New, now_ms: int, client_id: int
) -> None:
    passed = group.passed + new.scanned
    change = Delivered(
        group, consumer, new.ids, new.head, new.entries_read, passed, now_ms
    )
    handout = group.apply_delivered(change)
    group.stream.keyspace.changes.append(change)
    group.stream.keyspace.handed.append(handout)
    group.arm(handout, now_ms, client_id)


def _finish_at_once(group: Group, owed: Sequence[EntryID], new: _New) -> None:
    """NOACK: what is handed out is finished; a lost reply loses it."""
    if owed:
        group.record(Finished(group, list(owed)))
    if new.scanned:
        _pass_over(group, new)


def _pass_over(group: Group, new: _New) -> None:
    passed = group.passed + new.scanned
    group.record(Passed(group, new.head, new.entries_read, passed))
