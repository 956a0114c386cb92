"""The model's polls, history reads and claims, and its connections."""

from __future__ import annotations

from tests.simulation.model import Group
from tests.simulation.words import CLAIMED, DELAYED, OWED, REDIS, Ask, Member, Pending


def attach(group: Group, ask: Ask) -> None:
    """The consumer is there, and the connection counts for the member."""
    group.consumers[ask.consumer] = ask.now_ms
    connections = group.connections.setdefault(ask.member, {})
    if not ask.client or ask.client in connections:
        return
    if not connections:
        for id_ in group.held(ask.member):
            item = group.pending[id_]
            if item.returns_ms:  # it is back: it has its time again
                item.deadline_ms, item.returns_ms = item.returns_ms, 0
    connections[ask.client] = False


def detach(group: Group, client: int, now_ms: int) -> None:
    """The connection is closed."""
    for member, connections in group.connections.items():
        if client not in connections:
            continue
        del connections[client]
        for id_ in group.held(member):
            if group.pending[id_].reserved_for == client:
                group.pending[id_].reserved_for = 0
        if not connections and group.leases:
            _leave(group, member, now_ms)


def _leave(group: Group, member: Member, now_ms: int) -> None:
    grace_ms = group.number("disconnect-grace-ms")
    follows = group.setting("claims-follow") == "connection"
    for id_ in group.held(member):
        item = group.pending[id_]
        if grace_ms >= 0:
            if follows or now_ms + grace_ms < item.deadline_ms:
                item.returns_ms = item.deadline_ms
                item.deadline_ms = now_ms + grace_ms
        elif follows:
            item.deadline_ms = now_ms + group.visibility_ms


def reclaim(group: Group, ask: Ask) -> None:
    """Once per connection: what the member holds from older ones is kept for it."""
    connections = group.connections[ask.member]
    if not ask.client or connections[ask.client]:
        return
    connections[ask.client] = True
    for id_ in group.held(ask.member):
        item = group.pending[id_]
        if item.client < ask.client and item.reserved_for < ask.client:
            item.reserved_for = ask.client
            group.once_reserved.setdefault(ask.client, set()).add(id_)


def poll(group: Group, ask: Ask, nonce: int = 0) -> list[int]:
    attach(group, ask)
    if ask.reclaim:
        reclaim(group, ask)
    group.expire(ask.now_ms)
    if group.holds_back:
        return []
    given, reserved, again = _choose(group, ask)
    group.head = max([group.head, *given[again:]])
    if ask.no_ack:
        for id_ in given:
            if group.leases or id_ not in group.pending:
                group.finish(id_)
        return given
    for id_ in given[again:]:  # in mode redis it may be pending: it begins anew
        story = group.pending[id_].story if id_ in group.pending else []
        group.pending[id_] = Pending(story=story)
    for at, id_ in enumerate(given):
        if at in (0, reserved, again):
            group.next_handout()
        group.hand_out(id_, ask, nonce, b"reclaim" if at < reserved else b"takeover")
        group.pending[id_].count(1, 1)
    group.advance()
    return given


def _choose(group: Group, ask: Ask) -> tuple[list[int], int, int]:
    """What a poll hands out, and how many of it were reserved, and pending."""
    room = min(ask.count, group.number("max-poll-entries"))
    left = group.number("max-in-flight") - group.in_flight
    given: list[int] = []

    def read(ids: list[int], room: int, how: bytes) -> int:
        for id_ in ids:
            read_bytes = sum(len(group.entries[i]) for i in given)
            if len(given) >= room or read_bytes >= ask.bytes_max:
                break
            if id_ not in group.entries:
                group.skip(id_)
            elif how and group.spent(id_):
                group.bury(id_, ask.now_ms, how)
            else:
                given.append(id_)
        return len(given)

    kept = [i for i in group.held(ask.member) if _is_kept(group, i, ask)]
    reserved = again = read(kept, room, b"reclaim")
    if not ask.no_ack and reserved < room:
        group.capped += left <= 0
        room = min(room, reserved + max(left, 0))
    if group.leases:
        again = read(group.having(OWED), room, b"takeover")
    read(group.new(), room, b"")
    return given, reserved, again


def _is_kept(group: Group, id_: int, ask: Ask) -> bool:
    return ask.client != 0 and group.pending[id_].reserved_for == ask.client


def history(group: Group, ask: Ask, after: int) -> list[tuple[int, bytes | None]]:
    attach(group, ask)
    group.expire(ask.now_ms)
    read: list[tuple[int, bytes | None]] = []
    again: dict[tuple[int, bool], int] = {}  # claims that go on: their new number
    read_bytes = 0
    for id_ in group.having(CLAIMED):
        item = group.pending[id_]
        mine = item.member == ask.member or (
            group.mode == REDIS and item.consumer == ask.consumer
        )
        if id_ <= after or not mine or item.reserved_for not in (0, ask.client):
            continue
        full = len(read) >= min(ask.count, group.number("max-poll-entries"))
        if full or read_bytes >= ask.bytes_max:
            break
        entry = group.entries.get(id_)
        if entry is not None:
            elsewhere = item.client != ask.client and not item.charged
            if elsewhere and group.spent(id_):
                group.bury(id_, ask.now_ms, b"takeover")
                continue
            item.count(elsewhere, 1)
            if group.mode == REDIS:
                item.member = ask.member
            group.beat(item, ask.now_ms, ask.now_ms)
            item.handout = _same_claim(group, again, (item.handout, elsewhere))
            item.charged = item.charged or elsewhere
            read_bytes += len(entry)
        read.append((id_, entry))
    return read


def _same_claim(
    group: Group, again: dict[tuple[int, bool], int], claim: tuple[int, bool]
) -> int:
    if claim not in again:
        group.next_handout()
        again[claim] = group.handouts
    return again[claim]


def claim(group: Group, ask: Ask, ids: list[int]) -> list[int]:
    attach(group, ask)
    group.expire(ask.now_ms)
    held_back = group.holds_back
    if ask.last_id > group.head:
        group.head = ask.last_id
        group.advance()
    again: dict[tuple[int, bool], int] = {}
    group.next_handout()
    taken_together = group.handouts
    taken = []
    for id_ in dict.fromkeys(ids):
        item = group.pending.get(id_)
        own = id_ in group.held(ask.member)
        if held_back and not own:
            continue
        if id_ not in group.entries:
            if item is not None:
                group.skip(id_)
            continue
        if item is None:
            if not ask.force:
                continue
            group.put_back(id_)
            item = group.pending[id_]
            item.deliveries = 1  # Redis counts being forced as one
        elif not _may_take(group, id_, ask):
            continue
        free = ask.just_id or own
        if not free and ask.retry_count is None and group.spent(id_):
            group.bury(id_, ask.now_ms, b"takeover")
            continue
        if own:
            group.beat(item, ask.now_ms, ask.now_ms - ask.idle_ms)
            item.handout = _same_claim(group, again, (item.handout, True))
        else:
            group.hand_out(id_, ask, 0, b"takeover")
            item.handout = taken_together
        item.count(not free, not ask.just_id)
        if ask.retry_count is not None:
            item.attempts = item.deliveries = ask.retry_count
        taken.append(id_)
    group.advance()
    return taken


def autoclaim(group: Group, ask: Ask, start: int) -> tuple[int, list[int], list[int]]:
    attach(group, ask)
    learn(group, ask.min_idle_ms, ask.now_ms)
    group.expire(ask.now_ms)
    taken: list[int] = []
    deleted: list[int] = []
    if group.holds_back:
        return 0, taken, deleted
    group.next_handout()
    candidates = sorted(i for i in group.pending if i >= start)
    for at, id_ in enumerate(candidates):
        if at == 10 * ask.count or len(taken) + len(deleted) == ask.count:
            return id_, taken, deleted
        if id_ not in group.entries and group.pending[id_].state != DELAYED:
            group.skip(id_)
            deleted.append(id_)
        elif not _may_take(group, id_, ask):
            continue
        elif not ask.just_id and group.spent(id_):
            group.bury(id_, ask.now_ms, b"takeover")
        else:
            group.hand_out(id_, ask, 0, b"takeover")
            group.pending[id_].count(not ask.just_id, not ask.just_id)
            taken.append(id_)
    return 0, taken, deleted


def _may_take(group: Group, id_: int, ask: Ask) -> bool:
    item = group.pending[id_]
    if item.state == DELAYED:
        return ask.force
    return item.state == OWED or ask.now_ms - item.handed_ms >= ask.min_idle_ms


def learn(group: Group, min_idle_ms: int, now_ms: int) -> None:
    """A client waits this long before it takes work over: so will the group."""
    wanted_ms = min(min_idle_ms, group.visibility_max_ms)
    more_ms = wanted_ms - group.visibility_ms
    if group.setting("learn-visibility") != "yes" or more_ms <= 0:
        return
    group.expire(now_ms)
    group.learned_ms = wanted_ms
    for item in group.claimed():
        if not item.chosen:
            item.deadline_ms += more_ms
