"""What stands in the way of a group, and what happened to one entry of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .claims import expire, is_list_full
from .group import Group
from .handouts import Attempt
from .ids import EntryID


@dataclass(frozen=True, slots=True)
class Explained:
    """One entry as the group sees it; times are unix ms, 0 for none."""

    state: bytes
    attempts: int = 0
    deliveries: int = 0
    first_ms: int = 0
    consumer: bytes = b""
    user: bytes = b""
    held_since_ms: int = 0
    until_ms: int = 0  # of a claim or a delay
    reason: bytes = b""
    story: Sequence[Attempt] = ()


def settle_time(group: Group, now_ms: int) -> None:
    """End whatever is due: what is shown is the state of now."""
    while True:
        expire(group, now_ms)
        due_ms = group.next_deadline()
        if due_ms is None or due_ms > now_ms:
            return


def explain(group: Group, id_: EntryID) -> Explained:
    """Raises NotResident."""
    if id_ in group.pending:
        return _pending(group, id_)
    letter = group.dead_letters.listed.get(id_)
    if letter is not None:
        return Explained(
            b"dead",
            attempts=letter.attempts,
            first_ms=letter.first_delivered_ms,
            consumer=letter.consumer,
            reason=letter.reason,
            story=group.stories.get(id_, ()),
        )
    if id_ <= group.head or id_ in group.ahead:
        return Explained(b"finished")
    return Explained(b"new" if group.stream.contains(id_) else b"absent")


def state(group: Group, id_: EntryID) -> bytes:
    """The pending entry's state."""
    if id_ in group.delayed:
        return b"delayed"
    if id_ in group.owed:
        return b"owed"
    return b"reserved" if id_ in group.reserved else b"claimed"


def blocked_by(group: Group) -> Sequence[bytes]:
    """Why polls come back with less than there is."""
    settings = group.settings
    reasons = []
    if group.in_flight >= settings.group_max_in_flight:
        reasons.append(b"cap")
    if len(group.pending) >= settings.group_max_acked_ahead_ranges:
        reasons.append(b"acked-ahead")
    if group.paused:
        reasons.append(b"paused")
    if is_list_full(group):
        reasons.append(b"dead-letters")
    return reasons


def _pending(group: Group, id_: EntryID) -> Explained:
    handout, tally = group.pending[id_], group.tally(id_)
    member = handout.member
    claimed = group.is_claimed(id_)
    deadline_ms = handout.deadline_ms if claimed else 0
    return Explained(
        state(group, id_),
        attempts=tally.attempts,
        deliveries=tally.deliveries,
        first_ms=tally.first_ms,
        consumer=member.consumer.name if member else b"",
        user=member.user if member and claimed else b"",
        held_since_ms=handout.began_ms if claimed else 0,
        until_ms=group.delayed.get(id_, deadline_ms),
        reason=group.reason(id_),
        story=group.stories.get(id_, ()),
    )
