"""Taking over what is pending: XCLAIM, XAUTOCLAIM, and a history read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from .changes import Claimed, Forced, Tally
from .claims import (
    UNBOUNDED_BYTES,
    Polled,
    deadline_after,
    expire,
    hand_over,
    is_held_back,
    is_spent,
    letters_for,
    may_be_gone,
    move,
    record_losses,
)
from .cold import need
from .group import Group
from .handouts import HandOut, Member
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
    member: Member,
    ids: Iterable[EntryID],
    options: ClaimOptions,
    now_ms: int,
    client_id: int = 0,
) -> Polled:
    """XCLAIM: take the pending entries of ``ids`` that are idle enough."""
    expire(group, now_ms)
    plan = _plan_claim(group, member, dict.fromkeys(ids), options, now_ms)
    if options.last_id > group.head:
        move(group, options.last_id, group.entries_read)
    record_losses(group, plan.gone, letters_for(group, plan.spent, now_ms))
    if plan.forced:
        group.record(Forced(group, tuple(plan.forced)))
    for held, tallies in plan.kept.items():  # a lost reply ends none of these claims
        _beat(group, member, held, tallies, options.handed_ms, now_ms)
    if plan.taken:
        times = options.handed_ms, now_ms
        handout = _take(group, member, plan.taken, *times, client_id)
        if not options.just_id:
            group.stream.keyspace.handed.append(handout)
    if plan.ids:
        member.consumer.active_ms = now_ms
    return Polled(plan.ids, plan.entries)


@dataclass(slots=True)
class _Claims:
    """What XCLAIM does to whom."""

    ids: list[EntryID] = field(default_factory=list)  # in the order of the reply
    entries: list[bytes] = field(default_factory=list)
    taken: dict[EntryID, Tally] = field(default_factory=dict)
    kept: dict[HandOut, dict[EntryID, Tally]] = field(default_factory=dict)
    forced: list[EntryID] = field(default_factory=list)
    gone: list[EntryID] = field(default_factory=list)
    spent: list[EntryID] = field(default_factory=list)


def _plan_claim(
    group: Group,
    member: Member,
    ids: Collection[EntryID],
    options: ClaimOptions,
    now_ms: int,
) -> _Claims:
    need(group.stream, ids)
    plan, held_back = _Claims(), is_held_back(group)
    for id_ in ids:
        handout = group.pending.get(id_)
        own = handout is not None and _owns(group, member, id_)
        if held_back and not own:
            continue
        entry = group.stream.entry(id_)
        if entry is None:
            if handout is not None:
                plan.gone.append(id_)
            continue
        if not _may_take(group, id_, options, now_ms):
            continue
        # Redis counts being forced as a delivery
        tally = Tally(0, 1, 0) if handout is None else group.tally(id_)
        free = options.just_id or own
        if options.retry_count is None and not free and is_spent(group, tally):
            plan.spent.append(id_)
            continue
        claims = plan.taken
        if handout is None:
            plan.forced.append(id_)
        elif own:
            claims = plan.kept.setdefault(handout, {})
        claims[id_] = _claimed_tally(tally, options, now_ms, free=free)
        plan.ids.append(id_)
        plan.entries.append(entry)
    return plan


@dataclass(frozen=True, slots=True)
class AutoClaimed:
    """What XAUTOCLAIM answers; ``next_id`` is 0 at the end."""

    next_id: EntryID
    polled: Polled
    deleted: Sequence[EntryID]


def autoclaim(  # noqa: PLR0913 - the arguments of XAUTOCLAIM
    group: Group,
    member: Member,
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
    if is_held_back(group):
        return AutoClaimed(0, Polled((), ()), ())
    options = ClaimOptions(min_idle_ms, now_ms, just_id=just_id)
    need(group.stream, _read_from(group, start, options, now_ms, count))
    for id_ in group.pending_from(start):
        if not attempts_left or not room:
            next_id = id_
            break
        attempts_left -= 1
        may_take = _may_take(group, id_, options, now_ms)
        if not may_take and not _may_list(group, id_):
            continue
        entry = group.stream.entry(id_)
        tally = group.tally(id_)
        if entry is None:  # listed however short it has been idle
            deleted.append(id_)
            room -= 1
        elif not may_take:
            continue
        elif not just_id and is_spent(group, tally):
            spent.append(id_)
        else:
            wanted[id_] = _claimed_tally(tally, options, now_ms, free=just_id)
            entries.append(entry)
            room -= 1
    record_losses(group, deleted, letters_for(group, spent, now_ms))
    if wanted:
        handout = _take(group, member, wanted, now_ms, now_ms, client_id)
        member.consumer.active_ms = now_ms
        if not just_id:
            group.stream.keyspace.handed.append(handout)
    return AutoClaimed(next_id, Polled(list(wanted), entries), deleted)


def history(  # noqa: PLR0913 - the arguments of XREADGROUP id
    group: Group,
    member: Member,
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
    count = min(count, group.settings.group_max_poll_entries)
    read: list[tuple[EntryID, bytes | None]] = []
    spent: list[EntryID] = []
    claims: dict[tuple[HandOut, bool], dict[EntryID, Tally]] = {}
    read_bytes = 0
    held = [
        id_
        for id_ in group.held_by(member.consumer)
        if id_ > after and _shows(group, member, id_, client_id)
    ]
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
        again = tally.again(now_ms, attempts=charge)
        claims.setdefault((handout, charge), {})[id_] = again
        read.append((id_, entry))
        read_bytes += len(entry)
    record_losses(group, (), letters_for(group, spent, now_ms))
    for (claim_, charge), tallies in claims.items():
        charged = claim_.charged or charge
        handout = _beat(group, member, claim_, tallies, now_ms, now_ms)
        handout.charged = charged
    return read


def _read_from(
    group: Group, start: EntryID, options: ClaimOptions, now_ms: int, count: int
) -> Iterator[EntryID]:
    """What XAUTOCLAIM may have to read."""
    for id_ in islice(group.pending_from(start), count * _SCAN_PER_COUNT):
        if _may_take(group, id_, options, now_ms):
            yield id_
            count -= 1
            if not count:
                return
        elif _may_list(group, id_):
            yield id_


def _may_list(group: Group, id_: EntryID) -> bool:
    """Whether XAUTOCLAIM lists it as deleted where it is not there any more."""
    return id_ not in group.delayed and may_be_gone(group.stream, id_)


def _shows(group: Group, member: Member, id_: EntryID, client_id: int) -> bool:
    """Whether a history read of the member has the entry."""
    if not group.is_claimed(id_):
        return False
    if group.reserved.get(id_, client_id) != client_id:
        return False
    return group.pending[id_].member is member or not group.mode.by_user


def _may_take(group: Group, id_: EntryID, options: ClaimOptions, now_ms: int) -> bool:
    """Owed entries match at any min-idle; delayed ones, and those that are not
    pending, only by force."""
    if id_ in group.delayed or id_ not in group.pending:
        return options.force
    if id_ in group.owed:
        return True
    return now_ms - group.pending[id_].handed_ms >= options.min_idle_ms


def _owns(group: Group, member: Member, id_: EntryID) -> bool:
    return group.pending[id_].member is member and group.is_claimed(id_)


def _take(
    group: Group,
    member: Member,
    tallies: dict[EntryID, Tally],
    handed_ms: int,
    now_ms: int,
    client_id: int,
) -> HandOut:
    """A new attempt; whoever held the entries has lost them."""
    times = handed_ms, now_ms, deadline_after(group, now_ms)
    change = Claimed(group, member, tallies, *times, 0, b"takeover")
    return hand_over(group, change, client_id)


def _beat(
    group: Group,
    member: Member,
    held: HandOut,
    tallies: dict[EntryID, Tally],
    handed_ms: int,
    now_ms: int,
) -> HandOut:
    """The same claim goes on, its receipts good, with its full time again."""
    deadline_ms = deadline_after(group, now_ms)
    if held.chosen:  # never less than the client asked for
        deadline_ms = max(deadline_ms, held.deadline_ms)
    times = handed_ms, held.began_ms, deadline_ms
    change = Claimed(group, member, tallies, *times, held.nonce)
    handout = hand_over(group, change, held.client_id)
    handout.charged, handout.chosen = held.charged, held.chosen
    return handout


def _claimed_tally(
    tally: Tally, options: ClaimOptions, now_ms: int, *, free: bool
) -> Tally:
    if options.retry_count is not None:
        count = options.retry_count
        return Tally(count, count, tally.first_ms or now_ms)
    return tally.again(now_ms, attempts=not free, deliveries=not options.just_id)
