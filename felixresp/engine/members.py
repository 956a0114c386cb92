"""Members and their connections: who counts as there, and what they reclaim.

A connection counts for a member from its first XREADGROUP, XPOLL, XCLAIM or
XAUTOCLAIM in that name until it is closed, reset, or used by another user.
"""

from __future__ import annotations

from collections.abc import Iterator

from .changes import ConsumerCreated, ConsumerDeleted, Finished, HandedBack
from .claims import extend_all, ready, standing
from .group import Group
from .handouts import DEFAULT_USER, Consumer, Member
from .ids import EntryID

_SWEEP_MS = 1000  # at least between two looks for unused consumers
_LOOKS = 24  # per expiry time, at one that is unused but pending or connected


def member_named(
    group: Group,
    name: bytes,
    now_ms: int,
    client_id: int = 0,
    user: bytes = DEFAULT_USER,
) -> Member:
    """The member, its consumer created if it is new; notes that it was seen.

    ``client_id`` 0 is no connection: nothing follows it.
    """
    consumer = consumer_named(group, name, now_ms)
    member = consumer.members.get(user) or consumer.member(user)
    if client_id and client_id not in member.connections:
        _attach(group, member, client_id)
    return member


def consumer_named(group: Group, name: bytes, now_ms: int) -> Consumer:
    """The consumer, created if it is new; notes that it was seen."""
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = Consumer(group.next_consumer, name)
        group.record(ConsumerCreated(group, consumer))
        if group.sweep_ms is None:
            expiry_ms = group.settings.group_consumer_expiry_ms
            group.stream.keyspace.sweep_at(group, now_ms + expiry_ms)
    consumer.seen_ms = now_ms
    return consumer


def reclaim(group: Group, member: Member, client_id: int) -> None:
    """Keep for this connection what its member holds from older connections.

    Works once per connection and member, also when it finds nothing.
    """
    attachment = member.connections.get(client_id)
    if attachment is None or attachment.reclaimed:
        return
    attachment.reclaimed = True
    ids = [
        id_
        for handout in member.handouts()
        if handout.client_id < client_id
        for id_ in standing(group, handout)
        if group.reserved.get(id_, 0) < client_id
    ]
    group.reserved.update(dict.fromkeys(ids, client_id))
    attachment.reserved = sorted(ids, reverse=True)


def reserved_for(group: Group, member: Member, client_id: int) -> Iterator[EntryID]:
    """What is reserved for the connection, ascending."""
    attachment = member.connections.get(client_id)
    if attachment is None:
        return
    reserved, kept = group.reserved, attachment.reserved
    while kept and reserved.get(kept[-1]) != client_id:
        kept.pop()
    for id_ in reversed(kept):
        if reserved.get(id_) == client_id:
            yield id_


def detach(group: Group, member: Member, client_id: int, now_ms: int) -> None:
    """The connection does not count for the member any more."""
    attachment = member.connections.pop(client_id, None)
    if attachment is None:
        return
    for id_ in attachment.reserved:
        if group.reserved.get(id_) == client_id:
            del group.reserved[id_]
    if member.connections or not group.mode.leases:
        return
    grace_ms = group.settings.group_disconnect_grace_ms
    follows = group.settings.group_claims_follow == "connection"
    if grace_ms >= 0:
        _leave(group, member, now_ms + grace_ms, later=follows)
    elif follows:
        _leave(group, member, now_ms + group.visibility_ms, later=True, judged=True)


def remove_consumer(
    group: Group, consumer: Consumer, user: bytes | None, now_ms: int
) -> int:
    """XGROUP DELCONSUMER: what it held is owed, or dropped in mode redis.

    ``user`` limits it to that user's claims; None takes everybody's. Returns how
    many entries it held.
    """
    ids = group.held_by(consumer)
    if user is not None and group.mode.by_user:
        ids = [id_ for id_ in ids if _is_of(group, id_, user)]
    kept = len(ids) < consumer.pending
    if not group.mode.leases:
        if ids:
            group.record(Finished(group, ids))
    elif ids:
        untils = dict.fromkeys(ids, 0)
        group.record(HandedBack(group, untils, {}, now_ms, b"removed", b""))
        if group.starved:
            ready(group)
    if not kept:
        group.record(ConsumerDeleted(group, consumer))
    return len(ids)


def drop_unused(group: Group, now_ms: int) -> None:
    """Consumers with nothing pending that were not seen for long are gone."""
    expiry_ms = group.settings.group_consumer_expiry_ms
    for consumer in list(group.consumers.values()):
        if not (
            consumer.handouts
            or consumer.is_connected
            or consumer.seen_ms > now_ms - expiry_ms
        ):
            group.record(ConsumerDeleted(group, consumer))
            group.stream.keyspace.counts["consumers_expired"] += 1
    if group.consumers:
        later_ms = now_ms + expiry_ms // _LOOKS  # for those that something keeps
        dues = [consumer.seen_ms + expiry_ms for consumer in group.consumers.values()]
        due_ms = min(due if due > now_ms else later_ms for due in dues)
        group.stream.keyspace.sweep_at(group, max(due_ms, now_ms + _SWEEP_MS))


def _attach(group: Group, member: Member, client_id: int) -> None:
    if not member.connections:
        for handout in member.handouts():
            if handout.left:  # its member is back: it has its time again
                handout.left = False
                handout.deadline_ms = handout.returns_ms
                if standing(group, handout):
                    group.arm(handout)
    group.stream.keyspace.connections.add(client_id, group, member)


def _leave(
    group: Group,
    member: Member,
    deadline_ms: int,
    *,
    later: bool,
    judged: bool = False,
) -> None:
    """The member is gone: its claims end at ``deadline_ms``.

    ``later``: also those with an earlier deadline, which they had while they
    followed the connection. ``judged``: as any lapse is.
    """
    for handout in member.handouts():
        if not later and handout.deadline_ms <= deadline_ms:
            continue
        if judged:
            extend_all(group, handout, deadline_ms)
        elif standing(group, handout):
            handout.returns_ms, handout.left = handout.deadline_ms, True
            handout.deadline_ms = deadline_ms
            group.arm(handout)


def _is_of(group: Group, id_: EntryID, user: bytes) -> bool:
    member = group.pending[id_].member
    return member is not None and member.user == user
