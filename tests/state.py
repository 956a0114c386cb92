"""Everything durable in a keyspace as plain data, to compare two of them.

Compare before ``resume``: it ends or renews the claims. That a delay is over is
memory, its time is not: what was due at ``now_ms`` is shown as owed.
"""

from __future__ import annotations

from typing import Any

from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import View
from felixresp.engine.stream import Stream
from felixresp.engine.values import Value


def describe(keyspace: Keyspace, now_ms: int = 0) -> dict[str, Any]:
    """Evicted nodes must be loaded before."""
    return {
        "next number": keyspace.next_number,
        "keys": {
            (value.db, key): _describe_value(value, now_ms)
            for database in keyspace.databases
            for key, value in database.items()
        },
    }


def _describe_value(value: Value, now_ms: int) -> dict[str, Any]:
    common = {"number": value.number, "expire_ms": value.expire_ms}
    if isinstance(value, Stream):
        return common | describe_stream(value, now_ms)
    return common | {"data": value.data}


def describe_stream(stream: Stream, now_ms: int = 0) -> dict[str, Any]:
    nodes, entries = [], []
    for node in stream.nodes:
        nodes.append(
            (node.first, node.last, node.count, node.live, node.listpack_bytes)
        )
        view = View(node)
        entries += [
            (id_, view.entry(at)) for at, id_ in enumerate(view.ids) if view.is_live(at)
        ]
    return {
        "last_id": stream.last_id,
        "max_deleted_id": stream.max_deleted_id,
        "entries_added": stream.entries_added,
        "length": stream.length,
        "nodes": nodes,
        "entries": entries,
        "groups": {
            name: describe_group(group, now_ms) for name, group in stream.groups.items()
        },
    }


def describe_group(group: Group, now_ms: int = 0) -> dict[str, Any]:
    return {
        "number": group.number,
        "mode": group.mode.name,
        "own settings": dict(group.own_settings),
        "paused": group.paused,
        "learned": group.learned_visibility_ms,
        "head": group.head,
        "cursor": group.cursor,
        "entries_read": group.entries_read,
        "passed": group.passed,
        "next consumer": group.next_consumer,
        "consumers": {c.name: c.number for c in group.consumers.values()},
        "ahead": sorted(group.ahead),
        "pending": [
            (id_, *_describe_pending(group, id_, now_ms))
            for id_ in group.pending_from()
        ],
        "dead": sorted(group.dead_letters.listed.items()),
        "redriven": sorted(group.dead_letters.redriven.items()),
        "stories": {id_: list(story) for id_, story in sorted(group.stories.items())},
    }


def _describe_pending(group: Group, id_: int, now_ms: int) -> tuple[object, ...]:
    handout = group.pending[id_]
    member = handout.member
    holder = (member.consumer.name, member.user) if member is not None else None
    times = handout.handed_ms, handout.began_ms, group.tally(id_)
    until_ms = group.delayed.get(id_, 0)
    if until_ms > now_ms:
        return "delayed", holder, times, until_ms
    if until_ms or id_ in group.owed:
        return "owed", holder, times
    deadline_ms = handout.returns_ms if handout.left else handout.deadline_ms
    if group.settings.group_claims_follow == "connection":
        deadline_ms = 0  # it begins anew with a start
    return "claimed", holder, times, deadline_ms, handout.nonce
