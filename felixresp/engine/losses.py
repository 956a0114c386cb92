"""Nodes whose entries cannot be read: the stream goes on without them.

Which ids they had is not known any more, so the node goes as a whole. To groups
its entries are gone, as deleted ones are.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from .changes import Lost
from .ids import EntryID
from .nodes import Node

if TYPE_CHECKING:
    from .stream import Stream


def lose(stream: Stream, node: Node) -> bool:
    """False where the node is not the stream's any more, and nothing is lost."""
    at = _place(stream, node.first)
    if at == len(stream.nodes) or stream.nodes[at] is not node:
        return False
    change = Lost(stream, node.first)
    apply_lost(change)
    stream.keyspace.changes.append(change)
    return True


def apply_lost(change: Lost) -> None:
    stream = change.target
    at = _place(stream, change.first)
    node = stream.nodes[at]
    assert node.first == change.first
    stream.touch()
    del stream.nodes[at]
    stream.drop_node(node)
    stream.length -= node.live
    stream.max_deleted_id = max(stream.max_deleted_id, node.last)
    for group in stream.groups.values():
        passed = group.passed
        if group.head >= node.last:
            group.touch()
            group.passed -= node.live
        elif group.head >= node.first:
            group.touch()
            group.passed = sum(before.live for before in stream.nodes[:at])
        above = node.live - (passed - group.passed)
        if above:
            group.note_hole(node.last, above)


def _place(stream: Stream, first: EntryID) -> int:
    return bisect_left(stream.nodes, first, key=_first)


def _first(node: Node) -> EntryID:
    return node.first
