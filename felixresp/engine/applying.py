"""How each change alters a group, live and in recovery.

None of it can fail, reads a clock or a setting: what a verb decided stands in
the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .changes import (
    Change,
    Claimed,
    Configured,
    ConsumerCreated,
    ConsumerDeleted,
    Delivered,
    Died,
    Discarded,
    Due,
    Extended,
    Finished,
    Forced,
    GroupMoved,
    HandedBack,
    Lapsed,
    Passed,
    Ready,
    Redriven,
    Sought,
    Tally,
)
from .handouts import HandOut
from .ids import EntryID

if TYPE_CHECKING:
    from .group import Group


def apply_delivered(group: Group, change: Delivered) -> HandOut:
    group.touch()
    ids, consumer = change.ids, change.member.consumer
    handout = HandOut(group, change.member, ids, change.now_ms, change.now_ms)
    handout.deadline_ms, handout.nonce = change.deadline_ms, change.nonce
    if group.holes:
        group.skips_below(ids, change.head)
    if group.head < group.out_of_turn:
        _take_again(group, ids)
    group.remember(ids)
    group.pending.update(dict.fromkeys(ids, handout))
    group.cut.pending.update(ids)
    group.passed = change.passed
    group.move_head(change.head, change.entries_read)
    consumer.active_ms = consumer.seen_ms = change.now_ms
    group.cut.consumers.add(consumer.number)
    return handout


def apply_claimed(group: Group, change: Claimed) -> HandOut:
    group.touch()
    ids = list(change.tallies)
    handout = HandOut(group, change.member, ids, change.handed_ms, change.began_ms)
    handout.deadline_ms, handout.nonce = change.deadline_ms, change.nonce
    for id_ in ids:
        if change.how and group.is_claimed(id_):
            group.tell(id_, change.began_ms, change.how)
        group.pending[id_].let_go()
        group.pending[id_] = handout
        group.delayed.pop(id_, None)
        if change.how:
            group.reserved.pop(id_, None)
    group.tallies.update(change.tallies)
    if group.owed:
        group.disown(ids)
    group.cut.pending.update(ids)
    return handout


def apply_extended(group: Group, change: Extended) -> list[HandOut]:
    """The hand-outs that have the new deadline."""
    group.touch()
    split: dict[HandOut, list[EntryID]] = {}
    for id_ in change.ids:
        split.setdefault(group.pending[id_], []).append(id_)
    changed = []
    for old, ids in split.items():
        handout = old
        if len(ids) < old.live:
            handout = old.part(ids)
            for id_ in ids:
                old.let_go()
                group.pending[id_] = handout
        handout.handed_ms, handout.deadline_ms = change.handed_ms, change.deadline_ms
        handout.left = False
        changed.append(handout)
    group.cut.pending.update(change.ids)
    return changed


def apply_lapsed(group: Group, change: Lapsed) -> None:
    group.touch()
    if change.how:
        for id_ in change.ids:
            group.tell(id_, change.now_ms, change.how)
    group.owe(change.ids)
    group.cut.pending.update(change.ids)


def apply_handed_back(group: Group, change: HandedBack) -> None:
    group.touch()
    for id_, until_ms in change.untils.items():
        if group.is_claimed(id_):
            group.tell(id_, change.now_ms, change.how, change.reason)
        group.tallies[id_] = change.tallies.get(id_) or group.tally(id_)
        group.pending[id_].let_go()
        if until_ms:
            group.delay(id_, until_ms)
    group.hold(change.untils)
    group.owe([id_ for id_, until_ms in change.untils.items() if not until_ms])


def apply_due(group: Group, change: Due) -> None:
    group.owe(change.ids)


def apply_finished(group: Group, change: Finished) -> None:
    group.touch()
    group.finish(change.ids)


def apply_passed(group: Group, change: Passed) -> None:
    group.touch()
    if group.holes:
        group.skips_below((), change.head)
    group.passed = change.passed
    group.move_head(change.head, change.entries_read)
    group.advance()


def apply_moved(group: Group, change: GroupMoved) -> None:
    group.touch()
    back = change.head < group.head
    group.head, group.entries_read = change.head, change.entries_read
    group.passed = change.passed
    group.cursor = min(group.cursor, change.head)
    group.reorder()
    group.ahead = {id_ for id_ in group.ahead if id_ > group.head}
    group.holes.clear()
    if back:
        group.recovered_tail = 0  # an ack may be of what comes again now
        listed = group.dead_letters.listed
        top = (*group.pending, *listed, *group.ahead, group.out_of_turn)
        group.out_of_turn = max(top)
    group.advance()


def apply_sought(group: Group, change: Sought) -> None:
    """Dead letters stay; redriven entries go out once more, as owed."""
    group.touch()
    redriven = [id_ for id_ in group.pending if id_ in group.dead_letters.redriven]
    for id_ in redriven:
        if group.is_claimed(id_):
            group.tell(id_, change.now_ms, b"seek")
    kept = {id_: group.stories[id_] for id_ in redriven if id_ in group.stories}
    listed = group.dead_letters.listed
    told = {id_: story for id_, story in group.stories.items() if id_ in listed}
    void = [id_ for id_ in group.pending if id_ not in group.dead_letters.redriven]
    for handout in set(group.pending.values()):
        handout.live = 0
        handout.end()
    group.cut.finish(void)
    for known in (group.pending, group.tallies, group.delayed, group.reserved):
        known.clear()
    for gone in (group.owed, group.ahead, group.deadlines, group.delays):
        gone.clear()
    group.holes.clear()
    group.skips.clear()
    group.stories = {**told, **kept}
    group.recovered_tail = 0
    group.head = group.cursor = change.head
    group.entries_read, group.passed = change.entries_read, change.passed
    group.reorder()
    group.out_of_turn = max((*listed, *redriven, 0))
    group.put_back(redriven)


def apply_configured(group: Group, change: Configured) -> None:
    group.touch()
    before = group.mode
    group.configure(change.own)
    group.paused = change.paused
    group.learned_visibility_ms = change.learned_visibility_ms
    if before.leases and not group.mode.leases:
        _become_plain(group)
    elif group.mode.leases and not before.leases:
        _become_leased(group, change.deadline_ms)


def apply_died(group: Group, change: Died) -> None:
    group.touch()
    for letter in change.letters:
        if group.is_claimed(letter.id):
            group.tell(letter.id, letter.dead_ms, change.how, letter.reason)
        group.dead_letters.add(letter)
        group.cut.dead.add(letter.id)
    group.finish([letter.id for letter in change.letters])


def apply_put_back(group: Group, change: Forced | Redriven) -> None:
    """In play again: dead letters leave their list."""
    group.touch()
    for id_ in change.ids:
        group.dead_letters.redrive(id_)
        group.cut.dead.add(id_)
        group.ahead.discard(id_)
    group.put_back(change.ids)


def apply_discarded(group: Group, change: Discarded) -> None:
    group.touch()
    for id_ in change.ids:
        group.dead_letters.remove(id_)
        group.stories.pop(id_, None)
        group.cut.dead.add(id_)
        if id_ > group.head:  # after SETID back: still finished, never new
            group.ahead.add(id_)


def apply_consumer_created(group: Group, change: ConsumerCreated) -> None:
    group.touch()
    consumer = change.consumer
    group.consumers[consumer.name] = consumer
    group.next_consumer = max(group.next_consumer, consumer.number + 1)
    group.cut.consumers.add(consumer.number)


def apply_consumer_deleted(group: Group, change: ConsumerDeleted) -> None:
    """What it held was handed back or finished before; lapsed entries were not."""
    group.touch()
    consumer = change.consumer
    del group.consumers[consumer.name]
    group.stream.keyspace.connections.forget(consumer)
    group.cut.consumers.add(consumer.number)
    _let_go(group, group.held_by(consumer))


def _become_plain(group: Group) -> None:
    """To mode redis: what nobody holds has no owner; claims keep theirs."""
    unowned = [*group.owed, *group.delayed]
    _let_go(group, unowned)
    group.owe(unowned)
    group.deadlines.clear()
    group.delays.clear()
    group.reserved.clear()
    for handout in set(group.pending.values()):
        handout.deadline_ms, handout.left = 0, False
    group.cut.dead.update(group.dead_letters.redriven)
    group.dead_letters.redriven.clear()
    group.cut.pending.update(group.pending)


def _become_leased(group: Group, deadline_ms: int) -> None:
    """To mode lease: what has an owner is a claim with its full time."""
    for id_ in group.pending:
        tally = group.tally(id_)
        group.tallies[id_] = Tally(1, tally.deliveries, tally.first_ms)
    for handout in set(group.pending.values()):
        if handout.member is not None:
            handout.deadline_ms = deadline_ms
            group.arm(handout)
    if group.pending:  # what was redriven has no mark any more: the cursor waits
        group.cursor = min(group.cursor, min(group.pending) - 1)
        group.reorder()
    group.cut.pending.update(group.pending)


def _take_again(group: Group, ids: Iterable[EntryID]) -> None:
    """In mode redis what is pending above the head is new again."""
    again = [id_ for id_ in ids if id_ in group.pending]
    for id_ in again:
        group.pending[id_].let_go()
        group.tallies.pop(id_, None)
    group.disown(again)


def _let_go(group: Group, ids: Iterable[EntryID]) -> None:
    """Pending, but nobody's any more."""
    ids = list(ids)
    for id_ in ids:
        group.tallies[id_] = group.tally(id_)
    for id_ in ids:
        group.pending[id_].let_go()
    group.hold(ids)


def _volatile(_group: Group, _change: Change) -> None:
    """Nothing to apply."""


# fmt: off
GROUP_CHANGES: dict[type[Change], Callable[[Group, Any], object]] = {
    Delivered: apply_delivered,
    Claimed: apply_claimed,
    Extended: apply_extended,
    Lapsed: apply_lapsed,
    HandedBack: apply_handed_back,
    Due: apply_due,
    Finished: apply_finished,
    Passed: apply_passed,
    GroupMoved: apply_moved,
    Sought: apply_sought,
    Configured: apply_configured,
    Forced: apply_put_back,
    Died: apply_died,
    Redriven: apply_put_back,
    Discarded: apply_discarded,
    ConsumerCreated: apply_consumer_created,
    ConsumerDeleted: apply_consumer_deleted,
    Ready: _volatile,
}
# fmt: on
