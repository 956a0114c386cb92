"""Taking over what is pending: XCLAIM, XAUTOCLAIM, and a history read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from .changes import Forced, Tally
from .claims import (
    UNBOUNDED_BYTES,
    Polled,
    expire,
    hand_over,
    is_spent,
    letters_for,
    move,
    record_losses,
)
from .cold import need
from .group import Group
from .handouts import Consumer, HandOut
from .ids import EntryID

_SCAN_PER_COUNT = 10  # XAUTOCLAIM looks at this many times COUNT entries


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
    ids = dict.fromkeys(ids)
    need(group.stream, ids)
    taken: dict[EntryID, Tally] = {}
    # at no cost, so a lost reply ends none: by connection that has it, charged
    kept: dict[tuple[int, bool], dict[EntryID, Tally]] = {}
    ids_read, entries = [], []
    gone, spent, forced = [], [], []
    for id_ in ids:
        handout = group.pending.get(id_)
        entry = group.stream.entry(id_)
        if handout is None:
            if not options.force or entry is None:
                continue
            forced.append(id_)
            tally = Tally(0, 1, 0)  # Redis counts being forced as a delivery
        elif entry is None:
            gone.append(id_)
            continue
        elif not _is_idle(group, id_, options.min_idle_ms, now_ms):
            continue
        else:
            tally = group.tally(id_)
        own = handout is not None and _owns(group, consumer, id_)
        place = _place(handout) if handout and own else (client_id, False)
        free = options.just_id or own
        if options.retry_count is None and not free and is_spent(group, tally):
            spent.append(id_)
            continue
        claims = kept.setdefault(place, {}) if free else taken
        claims[id_] = _claimed_tally(tally, options, now_ms, free=free)
        ids_read.append(id_)
        entries.append(entry)
    if options.last_id > group.head:
        move(group, options.last_id, group.entries_read)
    record_losses(group, gone, letters_for(group, spent, now_ms))
    if forced:
        group.record(Forced(group, tuple(forced)))
    handed_ms = options.handed_ms
    for (holder_id, charged), tallies in kept.items():
        handout = hand_over(group, consumer, tallies, handed_ms, now_ms, holder_id)
        handout.charged = charged
    if taken:
        handout = hand_over(group, consumer, taken, handed_ms, now_ms, client_id)
        group.stream.keyspace.handed.append(handout)
    if ids_read:
        consumer.active_ms = now_ms
    return Polled(ids_read, entries)


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
    need(group.stream, _idle_from(group, start, min_idle_ms, now_ms, count))
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
        elif not just_id and is_spent(group, tally):
            spent.append(id_)
        else:
            options = ClaimOptions(min_idle_ms, now_ms, just_id=just_id)
            wanted[id_] = _claimed_tally(tally, options, now_ms, free=just_id)
            entries.append(entry)
            room -= 1
    record_losses(group, deleted, letters_for(group, spent, now_ms))
    if wanted:
        handout = hand_over(group, consumer, wanted, now_ms, now_ms, client_id)
        consumer.active_ms = now_ms
        if not just_id:
            group.stream.keyspace.handed.append(handout)
    return AutoClaimed(next_id, Polled(list(wanted), entries), deleted)


def history(  # noqa: PLR0913 - the arguments of XREADGROUP id
    group: Group,
    consumer: Consumer,
    after: EntryID,
    now_ms: int,
    *,
    count: int,
    client_id: int = 0,
    bytes_max: int = UNBOUNDED_BYTES,
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
    held = group.held_by(consumer)
    held = [id_ for id_ in held if id_ > after and id_ not in group.owed]
    need(group.stream, held[:count])
    for id_ in held:
        if len(read) >= count or read_bytes >= bytes_max:
            break
        entry = group.stream.entry(id_)
        if entry is None:
            read.append((id_, None))
            continue
        handout, tally = group.pending[id_], group.tally(id_)
        charge = not handout.charged and handout.client_id != client_id
        if charge and is_spent(group, tally):
            spent.append(id_)
            continue
        attempts = tally.attempts + charge
        place = handout.client_id, handout.charged or charge
        again = Tally(attempts, tally.deliveries + 1, tally.first_ms)
        claims.setdefault(place, {})[id_] = again
        read.append((id_, entry))
        read_bytes += len(entry)
    record_losses(group, (), letters_for(group, spent, now_ms))
    for (holder_id, charged), tallies in claims.items():
        handout = hand_over(group, consumer, tallies, now_ms, now_ms, holder_id)
        handout.charged = charged
    return read


def _idle_from(
    group: Group, start: EntryID, min_idle_ms: int, now_ms: int, count: int
) -> Iterator[EntryID]:
    """The first that XAUTOCLAIM may have to read."""
    scanned = islice(group.pending_from(start), count * _SCAN_PER_COUNT)
    idle = (id_ for id_ in scanned if _is_idle(group, id_, min_idle_ms, now_ms))
    return islice(idle, count)


def _is_idle(group: Group, id_: EntryID, min_idle_ms: int, now_ms: int) -> bool:
    """Owed entries match at any min-idle."""
    return id_ in group.owed or now_ms - group.pending[id_].handed_ms >= min_idle_ms


def _place(handout: HandOut) -> tuple[int, bool]:
    """What a heartbeat keeps: the claim's connection, whether a history read
    elsewhere was charged."""
    return handout.client_id, handout.charged


def _owns(group: Group, consumer: Consumer, id_: EntryID) -> bool:
    return group.pending[id_].consumer is consumer and id_ not in group.owed


def _claimed_tally(
    tally: Tally, options: ClaimOptions, now_ms: int, *, free: bool
) -> Tally:
    first_ms = tally.first_ms or now_ms
    if options.retry_count is not None:
        return Tally(options.retry_count, options.retry_count, first_ms)
    deliveries = tally.deliveries + (not options.just_id)
    return Tally(tally.attempts + (not free), deliveries, first_ms)
