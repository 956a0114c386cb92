"""Redis's ``entries-read``: how many entries a group has been through.

A counter that a hole after the group's position makes unknown (None); then it
is estimated again from the stream's counters where they allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .ids import EntryID

if TYPE_CHECKING:
    from .group import Group
    from .stream import Stream


def entries_read_after(group: Group, ids: Sequence[EntryID]) -> int | None:
    """The counter after ``ids`` were read, ascending and not empty.

    As if they were read one by one: once the counter is known it counts on.
    """
    stream, read = group.stream, group.entries_read
    hole = stream.max_deleted_id
    head = group.head
    if read is not None and _counts_on(hole, head) and head >= stream.first_id():
        return read + len(ids)
    read = estimate(stream, ids[0])
    if read is not None and _counts_on(hole, ids[0]):
        return read + len(ids) - 1
    return estimate(stream, ids[-1])


def _counts_on(hole: EntryID, position: EntryID) -> bool:
    """Whether nothing was deleted beyond the position."""
    return not hole or hole < position


def estimate(stream: Stream, id_: EntryID) -> int | None:
    """How many entries were ever added up to ``id_``; None when unknown."""
    added, last = stream.entries_added, stream.last_id
    if not added:
        return 0
    if id_ == last or (not stream.length and id_ < last):
        return added
    hole, first = stream.max_deleted_id, stream.first_id()
    if id_ > last or (id_ and id_ < hole) or first <= hole or id_ > first:
        return None
    return added - stream.length + (id_ == first)


def redis_lag(group: Group) -> int | None:
    """Redis's lag: entries after the group's position; None when unknown."""
    stream, read = group.stream, group.entries_read
    if not stream.length:
        return 0
    first = stream.first_id()
    if group.head < first and stream.max_deleted_id < first:
        return stream.length  # it has all of them before it
    if read is None or not _counts_on(stream.max_deleted_id, group.head):
        read = estimate(stream, group.head)
    return None if read is None else stream.entries_added - read
