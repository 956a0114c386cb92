"""How claims end by themselves, and what every way of ending one shares.

transitions.py has the machine as a table. poll.py hands out, settle.py settles,
takeover.py moves claims, members.py ties them to connections.

A verb plans first: it reads what it needs and may raise NotResident. Then it
records changes, which cannot fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from .applying import apply_claimed, apply_extended
from .backoff import delay_ms
from .changes import (
    Claimed,
    Configured,
    Died,
    Due,
    Extended,
    Finished,
    GroupMoved,
    HandedBack,
    Lapsed,
    Ready,
    Tally,
)
from .cold import need
from .dead_letters import DeadLetter
from .errors import NotResident
from .group import Group, is_armed
from .handouts import HandOut
from .holes import note_skip
from .ids import EntryID

if TYPE_CHECKING:
    from .stream import Stream

_LAPSES_MAX = 1000  # entries per call of expire
_TELL_MS = 60_000  # one line a minute and group
UNBOUNDED_BYTES = 2**63


@dataclass(frozen=True, slots=True)
class Polled:
    """Raw entries handed out, in the order of the reply."""

    ids: Sequence[EntryID]
    entries: Sequence[bytes]


EMPTY = Polled((), ())


def expire(group: Group, now_ms: int) -> None:
    """End the delays and claims that are due; a spent entry becomes a dead letter.

    Takes at most about a thousand entries; more stay due and come next time.
    """
    if group.delays and group.delays[0][0] <= now_ms:
        _end_delays(group, now_ms)
    deadlines = group.deadlines
    if not deadlines or deadlines[0][0] > now_ms:
        return
    due, count = [], 0
    seen: set[HandOut] = set()
    while deadlines and deadlines[0][0] <= now_ms and count < _LAPSES_MAX:
        item = heappop(deadlines)
        handout = item[2]
        if is_armed(item) and handout not in seen:
            seen.add(handout)
            due.append(handout)
            count += handout.live
    followed = {handout for handout in due if _is_followed(group, handout, now_ms)}
    over = [handout for handout in due if handout not in followed]
    try:
        lapsed = _plan_end(group, [h for h in over if not h.left], judged=True)
        left = _plan_end(group, [h for h in over if h.left], judged=False)
    except NotResident:  # nothing has changed: they are still due
        for handout in due:
            rank = group.stream.keyspace.next_rank()
            heappush(deadlines, (handout.deadline_ms, rank, handout))
        raise
    connected = sum(h.live for h in over if h.member and h.member.connections)
    group.stream.keyspace.counts["claims_lapsed"] += sum(h.live for h in over)
    _end(group, lapsed, now_ms, b"lapse")
    _end(group, left, now_ms, b"disconnect")
    if connected:
        _tell_lapses(group, connected, now_ms)
    for handout in due:
        if handout in followed:
            _follow(group, handout, now_ms)


def backoff_until(
    group: Group, id_: EntryID, attempts: int, policy: str, now_ms: int
) -> int:
    """When the entry may go out again; 0 at once, as always after a redrive."""
    if policy == "none" or id_ in group.dead_letters.redriven:
        return 0
    delay = delay_ms(policy, attempts, group.stream.keyspace.random64)
    return now_ms + delay if delay else 0


def give_back(handout: HandOut, now_ms: int) -> None:
    """The reply never left: what it handed out is owed, and cost nothing.

    In mode redis it stays with its consumer, as in Redis.
    """
    group, member = handout.group, handout.member
    ids = standing(group, handout)
    if not ids or member is None or not group.mode.leases:
        return
    tallies = {id_: group.tally(id_).undone() for id_ in ids}
    times = handout.handed_ms, handout.began_ms, handout.deadline_ms
    group.record(Claimed(group, member, tallies, *times))
    group.record(Lapsed(group, tuple(ids), now_ms, b""))


def move(group: Group, head: EntryID, entries_read: int | None) -> None:
    """XGROUP SETID: pending entries and dead letters stay.

    Forward, what it jumps is finished; backward, what was acked comes again.
    """
    passed = group.stream.count_until(head)
    group.record(GroupMoved(group, head, entries_read, passed))


def learn(group: Group, min_idle_ms: int, now_ms: int) -> bool:
    """A client waits this long before it takes work over: so will we.

    Lifts the group's visibility, and the standing claims that no client gave a
    time of its own; True when it did.
    """
    wanted = min(min_idle_ms, group.visibility_max_ms)
    if group.settings.group_learn_visibility != "yes" or wanted <= group.visibility_ms:
        return False
    expire(group, now_ms)
    more = wanted - group.visibility_ms
    configured = group.own_settings, group.paused, wanted, 0
    group.record(Configured(group, *configured))
    for handout in {item[2] for item in group.deadlines if is_armed(item)}:
        if not handout.chosen:
            ends_ms = handout.returns_ms if handout.left else handout.deadline_ms
            extend_all(group, handout, ends_ms + more)
    group.stream.keyspace.notices.append(
        f"{group}: its clients wait {wanted} ms before they take work over: the"
        f" visibility timeout is that now"
    )
    return True


def extend_all(group: Group, handout: HandOut, deadline_ms: int) -> None:
    """The whole claim gets another deadline; its idle time goes on.

    One whose member is gone ends when it was to, unless the member comes back.
    """
    ids = tuple(standing(group, handout))
    left, ends_ms = handout.left, handout.deadline_ms
    if ids:
        extend_to(group, ids, handout.handed_ms, deadline_ms)
    if ids and left:
        handout.returns_ms, handout.deadline_ms = deadline_ms, ends_ms
        handout.left = True
        group.arm(handout)


def extend_to(
    group: Group, ids: tuple[EntryID, ...], handed_ms: int, deadline_ms: int
) -> Sequence[HandOut]:
    """These claims end at ``deadline_ms``."""
    change = Extended(group, ids, handed_ms, deadline_ms)
    changed = apply_extended(group, change)
    group.stream.keyspace.changes.append(change)
    for handout in changed:
        group.arm(handout)
    return changed


def is_over(group: Group, handout: HandOut, now_ms: int) -> bool:
    """Whether the claim is due, though expire() has not come to it yet."""
    is_due = 0 < handout.deadline_ms <= now_ms
    return is_due and not _is_followed(group, handout, now_ms)


def is_spent(group: Group, tally: Tally) -> bool:
    attempts_max = group.settings.group_max_attempts
    return bool(attempts_max) and tally.attempts >= attempts_max


def may_be_gone(stream: Stream, id_: EntryID) -> bool:
    """False where the entry is surely there, without looking at its node."""
    if id_ <= stream.max_deleted_id or not stream.nodes:
        return True
    oldest = stream.nodes[0]
    return id_ < oldest.first or (oldest.dead != 0 and id_ <= oldest.last)


def standing(group: Group, handout: HandOut) -> list[EntryID]:
    """The hand-out's entries that are still claimed under it."""
    pending = group.pending
    return [
        id_
        for id_ in handout.ids
        if pending.get(id_) is handout and group.is_claimed(id_)
    ]


def record_losses(
    group: Group,
    gone: Sequence[EntryID],
    letters: Sequence[DeadLetter],
    how: bytes = b"takeover",
) -> None:
    counts = group.stream.keyspace.counts
    if gone:
        group.skipped += len(gone)
        counts["entries_skipped"] += len(gone)
        for id_ in gone:
            note_skip(group, id_)
        group.record(Finished(group, list(gone)))
    if letters:
        counts["entries_dead"] += len(letters)
        group.record(Died(group, tuple(letters), how))
    if group.starved and (gone or letters):
        ready(group)


def letters_for(
    group: Group,
    ids: Sequence[EntryID],
    now_ms: int,
    *,
    cause: bytes = b"attempts",
    reason: bytes | None = None,
    tallies: Mapping[EntryID, Tally] | None = None,
) -> Sequence[DeadLetter]:
    """What the list will say of these pending entries."""
    letters = []
    for id_ in ids:
        attempts, _, first_ms = tallies[id_] if tallies else group.tally(id_)
        before = group.dead_letters.redriven.get(id_)
        letters.append(
            DeadLetter(
                id=id_,
                attempts=attempts,
                cause=cause,
                reason=group.reason(id_) if reason is None else reason,
                consumer=group.last_consumer(id_),
                first_delivered_ms=first_ms,
                dead_ms=now_ms,
                redriven=before.redriven + 1 if before else 0,
            )
        )
    return letters


def hand_over(group: Group, change: Claimed, client_id: int) -> HandOut:
    """Record a claim; it gets its deadline."""
    handout = apply_claimed(group, change)
    group.stream.keyspace.changes.append(change)
    handout.client_id = client_id
    if change.deadline_ms:
        group.arm(handout)
    return handout


def deadline_after(group: Group, now_ms: int, visibility_ms: int | None = None) -> int:
    """When a claim made now lapses; 0 for never."""
    if not group.mode.leases:
        return 0
    if visibility_ms is None:
        return now_ms + group.visibility_ms
    return now_ms + min(visibility_ms, group.visibility_max_ms)


def is_held_back(group: Group) -> bool:
    """Whether nothing is handed out: the group is paused, or its list is full."""
    return group.paused or is_list_full(group)


def is_list_full(group: Group) -> bool:
    return len(group.dead_letters.listed) >= group.settings.group_max_dead_letters


def ready(group: Group) -> None:
    """Room appeared: polls that were turned away may try again."""
    group.starved = False
    group.stream.keyspace.changes.append(Ready(group))


@dataclass(slots=True)
class _Ended:
    """Entries whose claims are over: gone, spent, and to be handed out again."""

    gone: list[EntryID]
    spent: list[EntryID]
    owed: list[EntryID]


def _plan_end(group: Group, handouts: Sequence[HandOut], *, judged: bool) -> _Ended:
    stream, ended = group.stream, _Ended([], [], [])
    ids = [id_ for handout in handouts for id_ in standing(group, handout)]
    unsure = [id_ for id_ in ids if may_be_gone(stream, id_)]
    need(stream, unsure)
    gone = {id_: None for id_ in unsure if not stream.contains(id_)}
    ended.gone.extend(gone)
    for id_ in ids:
        if id_ in gone:
            continue
        if judged and is_spent(group, group.tally(id_)):
            ended.spent.append(id_)
        else:
            ended.owed.append(id_)
    return ended


def _end(group: Group, ended: _Ended, now_ms: int, how: bytes) -> None:
    letters = letters_for(group, ended.spent, now_ms)
    record_losses(group, ended.gone, letters, how)
    if not ended.owed:
        return
    policy = group.settings.group_lapse_backoff
    if how == b"lapse" and policy != "none":
        untils = {
            id_: backoff_until(group, id_, group.tally(id_).attempts, policy, now_ms)
            for id_ in ended.owed
        }
        group.record(HandedBack(group, untils, {}, now_ms, how, b""))
    else:
        group.record(Lapsed(group, tuple(ended.owed), now_ms, how))


def _end_delays(group: Group, now_ms: int) -> None:
    due: list[EntryID] = []
    delays = group.delays
    while delays and delays[0][0] <= now_ms and len(due) < _LAPSES_MAX:
        until_ms, id_ = heappop(delays)
        if group.delayed.get(id_) == until_ms:
            due.append(id_)
    if due:
        group.record(Due(group, tuple(due)))


def _is_followed(group: Group, handout: HandOut, now_ms: int) -> bool:
    """Whether the claim goes on because its member is connected."""
    settings, member = group.settings, handout.member
    return (
        settings.group_claims_follow == "connection"
        and member is not None
        and bool(member.connections)
        and now_ms < handout.began_ms + settings.group_follow_max_ms
    )


def _follow(group: Group, handout: HandOut, now_ms: int) -> None:
    latest_ms = handout.began_ms + group.settings.group_follow_max_ms
    extend_all(group, handout, min(now_ms + group.visibility_ms, latest_ms))


def _tell_lapses(group: Group, entries: int, now_ms: int) -> None:
    """Work lapsed while its worker was connected: is the timeout too short?"""
    group.lapsed_connected += entries
    group.stream.keyspace.counts["lapsed_while_connected"] += entries
    if group.told_ms and now_ms < group.told_ms + _TELL_MS:
        return
    group.told_ms = now_ms
    group.stream.keyspace.notices.append(
        f"{group}: {entries} claims lapsed while their workers were connected: if"
        f" they still work on them, raise group-visibility-timeout-ms or use XEXTEND"
    )
