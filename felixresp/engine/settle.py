"""Settling: ack, nack, extend. By ID, or by the receipt of one very claim.

What applies to nothing answers 0 and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .applying import apply_finished
from .changes import COUNT_MAX, Discarded, Finished, Forced, HandedBack, Tally
from .claims import (
    backoff_until,
    expire,
    extend_to,
    is_over,
    is_spent,
    letters_for,
    may_be_gone,
    ready,
    record_losses,
)
from .cold import need
from .group import Group
from .handouts import Member
from .ids import EntryID

SILENT, FAIL, FATAL = b"SILENT", b"FAIL", b"FATAL"
Receipt = tuple[EntryID, int]  # the entry, and the nonce of its hand-out


@dataclass(frozen=True, slots=True)
class Nack:
    """What XNACK asks for besides the ids; times in ms."""

    mode: bytes
    retry_count: int | None = None
    force: bool = False
    delay_ms: int | None = None  # None: what the group's backoff says
    reason: bytes = b""
    holder: Member | None = None  # only what this member holds
    by_holder: bool = False  # CONSUMER was given


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
    if len(done) != len(ids) and group.mode.leases:
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
        apply_finished(group, change)
        group.stream.keyspace.changes.append(change)
        if group.starved:
            ready(group)
    if late:
        group.record(Discarded(group, tuple(late)))
    return len(done) + len(late)


def by_receipt(
    group: Group, receipts: Iterable[Receipt], now_ms: int
) -> Sequence[EntryID]:
    """The entries whose very claim still stands."""
    expire(group, now_ms)
    return [id_ for id_, nonce in receipts if _stands(group, id_, nonce, now_ms)]


def nack(group: Group, ids: Sequence[EntryID], wish: Nack, now_ms: int) -> int:
    """Give entries back, or give up on them; returns how many it applied to."""
    expire(group, now_ms)
    forced, gone, wanted = [], [], []
    ids = list(dict.fromkeys(ids))
    need(group.stream, (i for i in ids if may_be_gone(group.stream, i) or wish.force))
    for id_ in ids:
        if id_ not in group.pending:
            if wish.force and not wish.by_holder and group.stream.contains(id_):
                forced.append(id_)
        elif not _may_nack(group, id_, wish, now_ms):
            continue
        elif may_be_gone(group.stream, id_) and not group.stream.contains(id_):
            gone.append(id_)
        else:
            wanted.append(id_)
    if forced:
        group.record(Forced(group, tuple(forced)))
    tallies = {id_: _nacked_tally(group, id_, wish) for id_ in (*wanted, *forced)}
    dead: dict[EntryID, Tally] = {}
    if group.mode.leases:
        dead = {id_: t for id_, t in tallies.items() if _is_fatal(group, wish, t)}
    _bury(group, dead, wish, now_ms)
    record_losses(group, gone, ())
    kept = {id_: t for id_, t in tallies.items() if id_ not in dead}
    back = {
        id_: _until(group, id_, tally.attempts, wish, now_ms)
        for id_, tally in kept.items()
    }
    if back:
        how = wish.mode.lower()
        group.record(HandedBack(group, back, kept, now_ms, how, wish.reason))
    if group.starved and (back or dead):
        ready(group)
    return len(tallies) + len(gone)


def extend(group: Group, id_: EntryID, ms: int, now_ms: int) -> int:
    """The claim stands for ``ms`` from now; returns what was granted.

    The caller has seen that the claim is the client's.
    """
    granted = min(ms, group.visibility_max_ms)
    for handout in extend_to(group, (id_,), now_ms, now_ms + granted):
        handout.chosen = True
    return granted


def holds(group: Group, member: Member | None, id_: EntryID, now_ms: int) -> bool:
    """Whether the member has a standing claim on the entry."""
    handout = group.pending.get(id_)
    return (
        handout is not None
        and member is not None
        and handout.member is member
        and _is_held(group, id_, now_ms)
    )


def _stands(group: Group, id_: EntryID, nonce: int, now_ms: int) -> bool:
    handout = group.pending.get(id_)
    return (
        handout is not None
        and nonce != 0
        and handout.nonce == nonce
        and _is_held(group, id_, now_ms)
    )


def _is_held(group: Group, id_: EntryID, now_ms: int) -> bool:
    """Whether the pending entry's claim stands, and is not due either."""
    return group.is_claimed(id_) and not is_over(group, group.pending[id_], now_ms)


def _may_nack(group: Group, id_: EntryID, wish: Nack, now_ms: int) -> bool:
    if wish.by_holder:
        return holds(group, wish.holder, id_, now_ms)
    if not group.mode.leases:
        return True
    return wish.mode == FATAL or _is_held(group, id_, now_ms)


def _is_fatal(group: Group, wish: Nack, tally: Tally) -> bool:
    if wish.mode == FAIL:
        return is_spent(group, tally)
    return wish.mode == FATAL


def _nacked_tally(group: Group, id_: EntryID, wish: Nack) -> Tally:
    tally = group.tally(id_)
    if wish.retry_count is not None:
        return Tally(wish.retry_count, wish.retry_count, tally.first_ms)
    if wish.mode == SILENT:
        return tally.undone()
    if wish.mode == FATAL and not group.mode.leases:
        return Tally(tally.attempts, COUNT_MAX, tally.first_ms)
    return tally


def _bury(group: Group, dead: dict[EntryID, Tally], wish: Nack, now_ms: int) -> None:
    cause = b"consumer" if wish.mode == FATAL else b"attempts"
    reason = wish.reason or None
    letters = letters_for(
        group, list(dead), now_ms, cause=cause, reason=reason, tallies=dead
    )
    record_losses(group, (), letters, wish.mode.lower())


def _until(group: Group, id_: EntryID, attempts: int, wish: Nack, now_ms: int) -> int:
    """When a nacked entry may go out again; 0 at once."""
    if not group.mode.leases or id_ in group.dead_letters.redriven:
        return 0
    if wish.delay_ms is not None:
        delay = min(wish.delay_ms, group.visibility_max_ms)
        return now_ms + delay if delay else 0
    if wish.mode == FAIL:
        return backoff_until(group, id_, attempts, group.settings.group_backoff, now_ms)
    return 0


def _lost_deliveries(group: Group, ids: Iterable[EntryID]) -> Sequence[EntryID]:
    """Those that may have been handed out just before a crash."""
    head, tail, ahead = group.head, group.recovered_tail, group.ahead
    above = [id_ for id_ in ids if head < id_ <= tail and id_ not in ahead]
    if above:
        need(group.stream, above)
    return [id_ for id_ in above if group.stream.contains(id_)]
