"""Everything durable in a keyspace as plain data, to compare two of them.

Claims are made owed: whether one stands is memory, who held it last is not.
"""

from __future__ import annotations

from typing import Any

from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace, Value
from felixresp.engine.nodes import View
from felixresp.engine.stream import Stream


def describe(keyspace: Keyspace) -> dict[str, Any]:
    """Evicted nodes must be loaded before."""
    return {
        "next number": keyspace.next_number,
        "keys": {
            (value.db, key): _describe_value(value)
            for database in keyspace.databases
            for key, value in database.items()
        },
    }


def _describe_value(value: Value) -> dict[str, Any]:
    common = {"number": value.number, "expire_ms": value.expire_ms}
    if isinstance(value, Stream):
        return common | describe_stream(value)
    return common | {"data": value.data}


def describe_stream(stream: Stream) -> dict[str, Any]:
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
            name: describe_group(group) for name, group in stream.groups.items()
        },
    }


def describe_group(group: Group) -> dict[str, Any]:
    return {
        "number": group.number,
        "head": group.head,
        "cursor": group.cursor,
        "entries_read": group.entries_read,
        "passed": group.passed,
        "next consumer": group.next_consumer,
        "consumers": {c.name: c.number for c in group.consumers.values()},
        "ahead": sorted(group.ahead),
        "pending": [_describe_pending(group, id_) for id_ in group.pending_from()],
        "dead": sorted(group.dead_letters.listed.items()),
        "redriven": sorted(group.dead_letters.redriven.items()),
    }


def _describe_pending(group: Group, id_: int) -> tuple[object, ...]:
    handout = group.pending[id_]
    holder = handout.consumer.name if handout.consumer else None
    return id_, holder, handout.handed_ms, group.tally(id_)
