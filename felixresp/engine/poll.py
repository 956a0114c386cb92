"""XREADGROUP ``>`` and XPOLL: reserved entries first, then owed, then new ones.

The caps, and what a poll does to entries that are gone or spent, are here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from .applying import apply_delivered
from .changes import Claimed, Delivered, Finished, Passed
from .claims import (
    EMPTY,
    UNBOUNDED_BYTES,
    Polled,
    deadline_after,
    expire,
    hand_over,
    is_list_full,
    is_spent,
    letters_for,
    record_losses,
)
from .cold import need
from .errors import NotResident
from .group import Group
from .handouts import Member
from .ids import EntryID
from .lag import entries_read_after
from .members import reserved_for


def poll(  # noqa: PLR0913 - the arguments of XREADGROUP > and XPOLL
    group: Group,
    member: Member,
    now_ms: int,
    *,
    count: int,
    client_id: int = 0,
    bytes_max: int = UNBOUNDED_BYTES,
    no_ack: bool = False,
    visibility_ms: int | None = None,
    with_receipts: bool = False,
) -> Polled:
    """Hand out what is reserved for the connection, owed entries, new ones.

    At most ``count`` and what the caps leave; stops once ``bytes_max`` are
    read, after the entry that crosses the line.
    """
    deadlines = group.deadlines
    if (deadlines and deadlines[0][0] <= now_ms) or group.delays:
        expire(group, now_ms)
    room = _room(group, count)
    if room <= 0:
        return EMPTY
    again, room_bytes = _NOTHING_OWED, bytes_max
    if group.reserved:
        reserved = partial(reserved_for, group, member, client_id)
        again = _plan_again(group, reserved, room, room_bytes)
        room -= len(again.ids)
        room_bytes -= sum(map(len, again.entries))
    held = len(again.ids)
    if room > 0 and not no_ack:
        room = _under_cap(group, room)
    if group.owed and group.mode.redelivers and room > 0 and room_bytes > 0:
        owed = _plan_again(group, group.owed_from, room, room_bytes)
        room -= len(owed.ids)
        room_bytes -= sum(map(len, owed.entries))
        again = again.followed_by(owed)
    new = _NOTHING_NEW
    if (
        room > 0
        and room_bytes > 0
        and group.stream.last_id > group.head
        and not _ranges_full(group)
    ):
        new = _plan_new(group, room, room_bytes)
    if again.gone or again.spent:
        letters = letters_for(group, again.spent, now_ms)
        record_losses(group, again.gone, letters, b"reclaim")
    if no_ack:
        _finish_at_once(group, again.ids, new)
    else:
        nonce = group.stream.keyspace.nonce() if with_receipts else 0
        deadline_ms = deadline_after(group, now_ms, visibility_ms)
        hand = _Hand(group, member, now_ms, client_id, deadline_ms, nonce)
        hand.chosen = visibility_ms is not None
        hand.give(again, held, new)
    if again.ids:
        return Polled(again.ids + new.ids, again.entries + new.entries)
    return Polled(new.ids, new.entries)


@dataclass(slots=True)
class _Again:
    ids: list[EntryID]
    entries: list[bytes]
    gone: list[EntryID]
    spent: list[EntryID]

    def followed_by(self, other: _Again) -> _Again:
        return _Again(
            self.ids + other.ids,
            self.entries + other.entries,
            self.gone + other.gone,
            self.spent + other.spent,
        )


_NOTHING_OWED = _Again([], [], [], [])


def _plan_again(
    group: Group, ids: Callable[[], Iterable[EntryID]], room: int, bytes_max: int
) -> _Again:
    plan = _Again([], [], [], [])
    read_bytes = 0
    for id_ in ids():
        try:
            entry = group.stream.entry(id_)
        except NotResident:
            need(group.stream, islice(ids(), room))
            raise
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
    taken: Container[EntryID] = group.dead_letters.listed
    if group.mode.leases:  # to Redis they are new
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


def _room(group: Group, count: int) -> int:
    """How many entries the poll may have, in flight or not."""
    settings = group.settings
    if group.paused:
        return 0
    if is_list_full(group):
        _tell_full(group)
        return 0
    return min(count, settings.group_max_poll_entries)


def _tell_full(group: Group) -> None:
    keyspace = group.stream.keyspace
    keyspace.counts["polls_blocked_by_dead_letters"] += 1
    if not group.starved:
        group.starved = True
        keyspace.notices.append(
            f"{group} hands out nothing:"
            f" its list of dead letters is full; XDLQ REDRIVE or XDLQ DISCARD some"
        )


def _under_cap(group: Group, room: int) -> int:
    """How many of them may be in flight besides those that are."""
    left = group.settings.group_max_in_flight - group.in_flight
    if left < room:
        room = left
        if left <= 0:
            group.starved = True
            group.polls_capped += 1
            group.stream.keyspace.counts["polls_capped"] += 1
    return room


def _ranges_full(group: Group) -> bool:
    """Acked-ahead ranges lie between pending entries, so are never more."""
    if len(group.pending) < group.settings.group_max_acked_ahead_ranges:
        return False
    group.starved = True
    group.stream.keyspace.counts["polls_blocked_by_acked_ahead"] += 1
    return True


class _Hand:
    """One hand-out: to whom, until when, under which nonce."""

    __slots__ = (
        "chosen", "client_id", "deadline_ms", "group", "member", "nonce", "now_ms"
    )  # fmt: skip

    def __init__(
        self,
        group: Group,
        member: Member,
        now_ms: int,
        client_id: int,
        deadline_ms: int,
        nonce: int,
    ) -> None:
        self.group = group
        self.member = member
        self.now_ms = now_ms
        self.client_id = client_id
        self.deadline_ms = deadline_ms
        self.nonce = nonce
        self.chosen = False

    def give(self, again: _Again, held: int, new: _New) -> None:
        """The first ``held`` of the pending ones were reserved."""
        if again.ids:
            self._again(again.ids[:held], b"reclaim")
            self._again(again.ids[held:], b"takeover")
            self.member.consumer.active_ms = self.now_ms
        if new.ids:
            self._new(new)
        elif new.scanned:
            _pass_over(self.group, new)

    def _again(self, ids: Sequence[EntryID], how: bytes) -> None:
        group, now_ms = self.group, self.now_ms
        if not ids:
            return
        tallies = {id_: group.tally(id_).again(now_ms) for id_ in ids}
        times = now_ms, now_ms, self.deadline_ms
        change = Claimed(group, self.member, tallies, *times, self.nonce, how)
        handout = hand_over(group, change, self.client_id)
        handout.chosen = self.chosen
        group.stream.keyspace.handed.append(handout)

    def _new(self, new: _New) -> None:
        group = self.group
        change = Delivered(
            group,
            self.member,
            new.ids,
            new.head,
            new.entries_read,
            group.passed + new.scanned,
            self.now_ms,
            self.deadline_ms,
            self.nonce,
        )
        handout = apply_delivered(group, change)
        handout.client_id, handout.chosen = self.client_id, self.chosen
        keyspace = group.stream.keyspace
        keyspace.changes.append(change)
        keyspace.handed.append(handout)
        if self.deadline_ms:
            group.arm(handout)


def _finish_at_once(group: Group, owed: Sequence[EntryID], new: _New) -> None:
    """NOACK: what is handed out is finished; a lost reply loses it."""
    if owed:
        group.record(Finished(group, list(owed)))
    if new.scanned:
        _pass_over(group, new)


def _pass_over(group: Group, new: _New) -> None:
    passed = group.passed + new.scanned
    group.record(Passed(group, new.head, new.entries_read, passed))
