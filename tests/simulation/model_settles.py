"""The model's settling, its dead letters, and what managers do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tests.simulation.model import Group
from tests.simulation.words import (
    CLAIMED,
    DELAYED,
    LEASE,
    NEVER,
    OWED,
    Member,
    Nacked,
    Pending,
)

Mark = tuple[int, int]  # an id and the nonce of a receipt; 0: a plain ID


def standing(group: Group, marks: Sequence[Mark], now_ms: int) -> list[int]:
    """The ids that the marks mean: plain ones, and those whose very claim stands."""
    if any(nonce for _, nonce in marks):
        group.expire(now_ms)
    return [id_ for id_, nonce in marks if not nonce or stands(group, id_, nonce)]


def stands(group: Group, id_: int, nonce: int) -> bool:
    item = group.pending.get(id_)
    return item is not None and item.state == CLAIMED and item.nonce == nonce


def ack(group: Group, marks: Sequence[Mark], now_ms: int) -> int:
    done = 0
    for id_ in dict.fromkeys(standing(group, marks, now_ms)):
        if id_ in group.pending or (group.leases and _may_be_lost(group, id_)):
            group.finish(id_)
            done += 1
        elif group.leases and _was_done_after_all(group, id_):
            del group.dead[id_]
            group.finish(id_)
            done += 1
    return done


def _may_be_lost(group: Group, id_: int) -> bool:
    """It may have been handed out just before the crash."""
    return id_ in group.new() and id_ <= group.recovered_tail


def _was_done_after_all(group: Group, id_: int) -> bool:
    return id_ in group.dead and group.dead[id_].cause == b"attempts"


def nack(group: Group, marks: Sequence[Mark], wish: Nacked, now_ms: int) -> int:
    ids = standing(group, marks, now_ms)
    group.expire(now_ms)
    done = 0
    for id_ in dict.fromkeys(ids):
        if id_ not in group.pending:
            if not wish.force or wish.member or id_ not in group.entries:
                continue
            group.put_back(id_)
        elif not _may_nack(group, group.pending[id_], wish):
            continue
        done += 1
        if id_ not in group.entries:
            group.skip(id_)
        else:
            _nack_one(group, id_, wish, now_ms)
    return done


def _may_nack(group: Group, item: Pending, wish: Nacked) -> bool:
    claimed = item.state == CLAIMED
    if wish.member is not None:
        return claimed and item.member == wish.member
    return claimed or not group.leases or wish.mode == b"FATAL"


def _nack_one(group: Group, id_: int, wish: Nacked, now_ms: int) -> None:
    item, how = group.pending[id_], wish.mode.lower()
    if wish.retry_count is not None:
        item.attempts = item.deliveries = wish.retry_count
    elif wish.mode == b"SILENT":
        item.attempts = max(item.attempts - 1, 0)
        item.deliveries = max(item.deliveries - 1, 0)
    elif wish.mode == b"FATAL" and not group.leases:
        item.deliveries = NEVER
    if group.leases and wish.mode == b"FATAL":
        group.bury(id_, now_ms, how, b"consumer", wish.reason)
    elif group.leases and wish.mode == b"FAIL" and group.spent(id_):
        group.bury(id_, now_ms, how, b"attempts", wish.reason)
    else:
        item.tell(now_ms, how, wish.reason)
        item.let_go(_until(group, id_, wish, now_ms))


def _until(group: Group, id_: int, wish: Nacked, now_ms: int) -> int:
    if not group.leases or id_ in group.redriven:
        return 0
    if wish.delay_ms is not None:
        ms = min(wish.delay_ms, group.visibility_max_ms)
        return now_ms + ms if ms else 0
    if wish.mode == b"FAIL":
        return group.delay(id_, str(group.setting("backoff")), now_ms)
    return 0


def extend(
    group: Group, marks: Sequence[Mark], ms: int, member: Member | None, now_ms: int
) -> list[int]:
    """Granted ms for each, or 0; a plain ID needs the member that holds it."""
    group.expire(now_ms)
    granted = []
    for mark in marks:
        ids = standing(group, [mark], now_ms)
        if not ids or (member is not None and ids[0] not in group.held(member)):
            granted.append(0)
            continue
        item = group.pending[ids[0]]
        granted.append(min(ms, group.visibility_max_ms))
        item.handed_ms, item.deadline_ms = now_ms, now_ms + granted[-1]
        item.chosen, item.returns_ms = True, 0
        if sum(i.handout == item.handout for i in group.pending.values()) > 1:
            group.next_handout()  # it parts from the others of its hand-out
            item.handout = group.handouts
    return granted


def give_back(group: Group, handouts: Collection[int]) -> None:
    """A reply never left: what it handed out is owed, and cost nothing."""
    for item in group.claimed() if group.leases else ():
        if item.handout in handouts:
            item.owe()
            item.attempts = max(item.attempts - 1, 0)
            item.deliveries = max(item.deliveries - 1, 0)


def redrive(group: Group, ids: Sequence[int]) -> int:
    wanted = {i for i in ids if i in group.dead and i in group.entries}
    for id_ in wanted:
        group.put_back(id_)
    return len(wanted)


def discard(group: Group, ids: Sequence[int]) -> int:
    wanted = {i for i in ids if i in group.dead}
    for id_ in wanted:
        del group.dead[id_]
        group.finish(id_)
    return len(wanted)


def set_id(group: Group, head: int) -> None:
    if head < group.head:  # an ack may be of what comes again now
        group.recovered_tail = 0
    group.head = head
    group.cursor = group.settled_cursor = min(group.cursor, head)
    group.advance()


def seek(group: Group, head: int, now_ms: int) -> None:
    """Everything is void but the dead; the redriven go out once, as owed."""
    kept = {i: group.pending[i] for i in group.redriven}
    for item in kept.values():
        item.tell(now_ms, b"seek")
    group.pending = {i: Pending(story=item.story) for i, item in kept.items()}
    group.ahead.clear()
    group.recovered_tail = 0
    group.head = group.cursor = group.settled_cursor = head


def configure(group: Group, settings: dict[str, int | str], now_ms: int) -> None:
    before = group.mode
    group.own = {**group.own, **settings}
    if before == LEASE != group.mode:
        _become_plain(group)
    elif before != LEASE == group.mode:
        _become_leased(group, now_ms)


def _become_plain(group: Group) -> None:
    for item in group.pending.values():
        item.reserved_for = item.deadline_ms = item.returns_ms = 0
        if item.state in (OWED, DELAYED):
            item.let_go()
    group.redriven.clear()


def _become_leased(group: Group, now_ms: int) -> None:
    for item in group.pending.values():
        item.attempts = 1
        if item.state == CLAIMED:
            item.deadline_ms = now_ms + group.visibility_ms
    low = min([group.cursor, *(id_ - 1 for id_ in group.pending)])
    group.cursor = group.settled_cursor = low


def delete_consumer(group: Group, name: bytes, user: bytes | None, now_ms: int) -> int:
    """What it held is owed to all, or dropped in mode redis; ``user`` limits it."""
    held = [i for i, item in group.pending.items() if item.consumer == name]
    taken = held
    if user is not None and group.leases:
        taken = [i for i in held if group.pending[i].member == (name, user)]
    for id_ in taken:
        if group.leases:
            group.pending[id_].tell(now_ms, b"removed")
            group.pending[id_].let_go()
        else:
            group.finish(id_)
    if len(taken) == len(held):
        forget_consumer(group, name)
    return len(taken)


def forget_consumer(group: Group, name: bytes) -> None:
    del group.consumers[name]
    for member in [m for m in group.connections if m[0] == name]:
        del group.connections[member]
