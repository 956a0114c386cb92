"""What must hold after every step, and of every hand-out and restart."""

from __future__ import annotations

from collections.abc import Sequence

from felixresp.engine.explain import explain
from felixresp.engine.group import Group
from tests.simulation import model as naive
from tests.simulation.promises import Promise, require, same
from tests.simulation.words import CLAIMED, DELAYED, OWED, Ask, Pending


def check_group(group: Group, model: naive.Group) -> None:
    """The engine's group against the model's, and against itself."""
    _check_states(group)
    require(Promise.CURSOR_BACK, group.cursor >= model.settled_cursor, group.cursor)
    _adopt_head(group, model)
    gaps = [i for i in model.pending if model.is_waited_for(i)]
    over = [i for i in gaps if i <= group.cursor]
    require(Promise.CURSOR_GAP, not over, over)
    require(Promise.CURSOR_GAP, group.cursor <= model.cursor, group.cursor)
    model.adopt_cursor(group.cursor)
    _check_dead(group, model)
    same(Promise.SAME_PENDING, list(group.pending_from()), sorted(model.pending))
    states = {i: state_of(group, i) for i in group.pending}
    same(Promise.SAME_PENDING, states, {i: p.state for i, p in model.pending.items()})
    for id_ in sorted(model.pending):
        _check_pending(group, model, id_)
    delays = {i: model.pending[i].until_ms for i in model.having(DELAYED)}
    same(Promise.DELAY_KEPT, group.delayed, delays)
    kept = {i: item.reserved_for for i, item in model.pending.items()}
    same(Promise.SAME_RESERVED, group.reserved, {i: c for i, c in kept.items() if c})
    same(Promise.SAME_CONSUMERS, group.consumers.keys(), model.consumers.keys())
    same(Promise.AHEAD_KEPT, sorted(group.ahead), sorted(model.ahead))
    _check_counts(group, model)
    same(Promise.ARMED, group.next_deadline(), model.next_deadline())
    same(Promise.SAME_SETTINGS, group.visibility_ms, model.visibility_ms)
    same(Promise.SAME_SETTINGS, group.mode.name, model.mode)
    same(Promise.SAME_SETTINGS, group.paused, model.paused)


def state_of(group: Group, id_: int) -> str:
    if id_ in group.owed:
        return OWED
    return DELAYED if id_ in group.delayed else CLAIMED


def _check_states(group: Group) -> None:
    pending, owed, delayed = group.pending.keys(), group.owed, group.delayed.keys()
    claimed = {id_ for id_ in pending if group.is_claimed(id_)}
    require(Promise.STATES, not owed & delayed, owed & delayed)
    require(Promise.STATES, owed <= pending, owed - pending)
    require(Promise.STATES, delayed <= pending, delayed - pending)
    same(Promise.STATES, len(pending), len(claimed) + len(delayed) + len(owed))
    both = pending & group.dead_letters.listed.keys()
    require(Promise.STATES, not both, both)
    unowned = {i for i in claimed if group.pending[i].member is None}
    require(Promise.STATES, not unowned, unowned)
    require(Promise.STATES, group.reserved.keys() <= claimed, group.reserved)
    if not group.mode.leases:
        timed = {i for i in claimed if group.pending[i].deadline_ms}
        require(Promise.MODE_REDIS, not timed and not delayed, timed)


def _adopt_head(group: Group, model: naive.Group) -> None:
    require(Promise.SAME_HEAD, group.head >= model.head, (group.head, model.head))
    passed = [i for i in model.new() if i <= group.head]
    require(Promise.SAME_HEAD, not passed, passed)
    model.adopt_head(group.head)


def _check_dead(group: Group, model: naive.Group) -> None:
    letters = group.dead_letters
    for id_, letter in model.dead.items():
        there = id_ in letters.listed or id_ in group.pending
        require(Promise.LETTER_KEPT, there, id_)
        if id_ in group.pending:  # why is it not dead?
            same(Promise.ATTEMPTS, group.tally(id_).attempts, letter.attempts)
    for id_ in model.redriven:
        there = id_ in letters.redriven and id_ in group.pending
        require(Promise.REDRIVEN_KEPT, there, id_)
    same(Promise.SAME_DEAD, letters.ids(), sorted(model.dead))
    same(Promise.SAME_DEAD, letters.redriven.keys(), model.redriven.keys())
    for id_, item in model.dead.items():
        it = letters.listed[id_]
        times = it.first_delivered_ms, it.dead_ms
        told = it.attempts, it.cause, it.reason, it.consumer, *times, it.redriven
        mine = item.attempts, item.cause, item.reason, item.consumer
        mine_too = item.first_ms, item.dead_ms, item.redriven
        same(Promise.SAME_DEAD, told, mine + mine_too)
        story = [tuple(attempt) for attempt in group.stories.get(id_, ())]
        same(Promise.SAME_STORY, story, item.story)


def _check_pending(group: Group, model: naive.Group, id_: int) -> None:
    item, handout = model.pending[id_], group.pending[id_]
    attempts, deliveries, first_ms = group.tally(id_)
    if model.leases:
        same(Promise.ATTEMPTS, (id_ >> 64, attempts), (id_ >> 64, item.attempts))
    told = id_ >> 64, deliveries, first_ms
    same(Promise.SAME_DELIVERIES, told, (id_ >> 64, item.deliveries, item.first_ms))
    member = handout.member
    holder = (member.consumer.name, member.user) if member else None
    mine = [id_ >> 64, item.member, item.handed_ms]
    claim = [id_ >> 64, holder, handout.handed_ms]
    if item.state == CLAIMED:
        mine += [item.began_ms, item.deadline_ms, item.nonce]
        claim += [handout.began_ms, handout.deadline_ms, handout.nonce]
    same(Promise.SAME_CLAIMS, claim, mine)
    story = [tuple(attempt) for attempt in group.stories.get(id_, ())]
    same(Promise.SAME_STORY, story, item.story)


def _check_counts(group: Group, model: naive.Group) -> None:
    same(Promise.COUNTS, group.in_flight, model.in_flight)
    same(Promise.COUNTS, list(group.owed_from()), model.having(OWED))
    same(Promise.COUNTS, group.last_pending(), max(model.pending, default=0))
    same(Promise.COUNTS, group.polls_capped, model.capped)
    same(Promise.COUNTS, group.skipped, model.skipped)
    for consumer in group.consumers.values():
        held = group.held_by(consumer)
        mine = [i for i, it in model.pending.items() if it.consumer == consumer.name]
        same(Promise.COUNTS, held, sorted(mine))
        same(Promise.COUNTS, consumer.pending, len(mine))


def check_explained(group: Group, model: naive.Group, id_: int) -> None:
    """XEXPLAIN tells what the model knows."""
    item, explained = model.pending.get(id_), explain(group, id_)
    if item is not None:
        state = "reserved" if item.reserved_for else item.state
        told = explained.state.decode(), explained.reason
        same(Promise.SAME_REPLY, told, (state, item.reason))
    elif id_ in model.dead:
        same(Promise.SAME_REPLY, explained.state, b"dead")
    elif id_ <= model.head or id_ in model.ahead:
        same(Promise.SAME_REPLY, explained.state, b"finished")
    else:
        state = "new" if id_ in model.entries else "absent"
        same(Promise.SAME_REPLY, explained.state.decode(), state)


def check_polled(before: naive.Group, ask: Ask, ids: Sequence[int]) -> None:
    """What a poll hands out; ``before`` is the model when what was due had ended."""
    items = {i: before.pending[i] for i in ids if i in before.pending}
    if not before.leases:  # to Redis all above the head is new
        items = {}
    mine = {i for i, item in items.items() if _is_kept(item, ask)}
    require(Promise.RESERVED_ONCE, len(set(ids)) == len(ids), ids)
    early = [i >> 64 for i, item in items.items() if item.state == DELAYED]
    require(Promise.DELAY_NOT_EARLY, not early, early)
    claimed = {i for i, item in items.items() if item.state == CLAIMED} - mine
    again = claimed & before.once_reserved.get(ask.client, set())
    require(Promise.RESERVED_ONCE, not again, again)
    require(Promise.CLAIMED_ONCE, not claimed, claimed)
    first = [i for i in ids if i not in items]
    dead = [i >> 64 for i in first if i in before.dead]
    require(Promise.NOT_AFTER_DEATH, not dead, dead)
    new = before.new()
    done = [i >> 64 for i in first if i not in new]
    require(Promise.NOT_AFTER_ACK, not done, done)
    bound = before.number("max-attempts")
    spent = [i >> 64 for i, item in items.items() if 0 < bound <= item.attempts]
    require(Promise.BOUND, not spent, spent)
    rest = [i for i in ids if i not in mine]
    if not ask.no_ack:
        room = max(before.number("max-in-flight") - before.in_flight, 0)
        require(Promise.CAP, len(rest) <= room, (len(rest), room))
    ordered = sorted(rest, key=lambda i: (i not in items, i))
    require(Promise.OWED_FIRST, rest == ordered, rest)


def _is_kept(item: Pending, ask: Ask) -> bool:
    """Reserved for this very connection."""
    kept = item.reserved_for == ask.client != 0
    return kept and item.state == CLAIMED and item.member == ask.member
