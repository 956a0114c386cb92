"""Entries a group skipped: which entry above them says so, and how many.

``Group.holes`` counts what was deleted above the head; a hand-out turns it into
``Group.skips``, per entry. Neither is written down: after a restart the count
starts anew.
"""

from __future__ import annotations

from .group import Group
from .ids import EntryID
from .stream import Stream


def note_skip(group: Group, id_: EntryID) -> None:
    """A pending entry is gone: the one directly above it says so."""
    count = 1 + group.skips.pop(id_, 0)
    above = _next_known(group.stream, id_)
    if above is None:
        return
    if above in group.pending:
        group.skips[above] = group.skips.get(above, 0) + count
    elif above > group.head:
        group.note_hole(above - 1, count)


def _next_known(stream: Stream, id_: EntryID) -> EntryID | None:
    """The first live ID above ``id_``; None where there is none, or where its
    node would have to be read for that."""
    nodes = stream.nodes
    if not nodes or id_ >= nodes[-1].last:
        return None
    for node in nodes[stream.node_index(id_ + 1) :] if id_ >= nodes[0].first else nodes:
        if id_ >= node.last:
            continue
        if id_ < node.first and not node.dead & 1:
            return node.first
        if not node.resident:
            return None
        view = stream.view(node)
        for place in range(view.position(id_ + 1), node.count):
            if view.is_live(place):
                return view.ids[place]
    return None
