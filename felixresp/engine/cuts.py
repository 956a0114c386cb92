"""Which small records of a group changed since the last checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .ids import EntryID
from .snapshots import CLAIMED, DELAYED, OWED, Claim, GroupSnapshot, PendingRecord

if TYPE_CHECKING:
    from .group import Group


class Cut:
    """Gathers ids and numbers while the group changes."""

    __slots__ = ("consumers", "dead", "gone", "pending", "stored")

    def __init__(self, stored: set[EntryID]) -> None:
        self.stored = stored  # pending entries the store has
        self.pending: set[EntryID] = set()
        self.gone: set[EntryID] = set()
        self.dead: set[EntryID] = set()
        self.consumers: set[int] = set()

    def finish(self, ids: Iterable[EntryID]) -> None:
        # an entry that came and went between two cuts costs the store nothing
        self.pending.difference_update(ids)
        if self.stored:
            self.gone.update(self.stored.intersection(ids))

    def snapshot(self, group: Group) -> GroupSnapshot:
        """The group's records that changed, as they are now."""
        changed = self.pending & group.pending.keys()
        pending = {id_: _pending_record(group, id_) for id_ in changed}
        dropped = [id_ for id_ in self.gone if id_ not in group.pending]
        self.stored.update(pending)
        self.stored.difference_update(dropped)
        numbers = {c.number: c for c in group.consumers.values()}
        listed = group.dead_letters.listed
        redriven = group.dead_letters.redriven
        return GroupSnapshot(
            group=group,
            number=group.number,
            name=group.name,
            head=group.head,
            cursor=group.cursor,
            entries_read=group.entries_read,
            passed=group.passed,
            next_consumer=group.next_consumer,
            own_settings=dict(group.own_settings),
            paused=group.paused,
            learned_visibility_ms=group.learned_visibility_ms,
            ahead=sorted(group.ahead),
            consumers=[
                (c.number, c.name, c.seen_ms, c.active_ms)
                for c in map(numbers.get, self.consumers)
                if c is not None
            ],
            dropped_consumers=[n for n in self.consumers if n not in numbers],
            pending=pending,
            dropped_pending=dropped,
            dead={id_: listed[id_] for id_ in self.dead & listed.keys()},
            redriven={id_: redriven[id_] for id_ in self.dead & redriven.keys()},
            dropped_dead=[
                id_ for id_ in self.dead if id_ not in listed and id_ not in redriven
            ],
            stories={
                id_: tuple(group.stories[id_])
                for id_ in self.dead & listed.keys()
                if id_ in group.stories
            },
        )


def _pending_record(group: Group, id_: EntryID) -> PendingRecord:
    handout = group.pending[id_]
    member, number = handout.member, 0
    user = b""
    if member is not None:
        number, user = member.consumer.number, member.user
    claim = Claim(
        number,
        user,
        handout.handed_ms,
        handout.began_ms,
        handout.returns_ms if handout.left else handout.deadline_ms,
        handout.nonce,
    )
    state = OWED if id_ in group.owed else CLAIMED
    if id_ in group.delayed:
        state = DELAYED
    story = tuple(group.stories.get(id_, ()))
    return PendingRecord(
        claim, state, group.delayed.get(id_, 0), group.tally(id_), story
    )
