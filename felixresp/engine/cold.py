"""Which nodes a verb will read, named at once.

A verb that misses a node is run again from its start when the node is back. So
it names with the first one all it will need, or a request over n cold nodes
would do its work n times over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .errors import NotResident
from .ids import EntryID
from .nodes import Node

if TYPE_CHECKING:
    from .stream import Stream

_READ_BYTES_MAX = 16 * 1024 * 1024  # named at once; what is beyond comes next
_NODE_BYTES = 1024  # what reading a node costs beside its entries


def need(stream: Stream, ids: Iterable[EntryID]) -> None:
    """Raises NotResident where the nodes of ``ids`` are not all in memory."""
    nodes, wanted = stream.nodes, dict[Node, None]()
    for id_ in ids:
        at = bisect_right(nodes, id_, key=_first) - 1
        if at >= 0 and id_ <= nodes[at].last:
            wanted[nodes[at]] = None
    missing = absent(wanted, 2**63, 2**63)
    if missing:
        raise NotResident(stream, missing)


def absent(nodes: Iterable[Node], count: int, bytes_max: int) -> list[Node]:
    """Those of ``nodes`` that are not in memory, where about ``count`` entries or
    ``bytes_max`` of all of them are wanted; at least the first one."""
    missing: list[Node] = []
    room_bytes = _READ_BYTES_MAX
    for node in nodes:
        if missing and (room_bytes <= 0 or count <= 0 or bytes_max <= 0):
            break
        if not node.resident:
            missing.append(node)
            room_bytes -= node.listpack_bytes + _NODE_BYTES
        count -= node.live
        bytes_max -= node.listpack_bytes
    return missing


def _first(node: Node) -> EntryID:
    return node.first
