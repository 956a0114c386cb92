"""A stream: its entries in nodes, its counters, its groups.

Reading raises NotResident where nodes have to be loaded first, always before
anything changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from .changes import Appended, Deleted, StreamSet, Trimmed
from .cold import absent
from .errors import IDsExhausted, IDTooSmall, NotResident
from .ids import MAX_ID, SEQ_MAX, EntryID
from .nodes import (
    Node,
    Slice,
    View,
    encode_entry,
    first_zero,
    following_size,
    opening_size,
    places_until,
)
from .snapshots import NodeSnapshot, StreamSnapshot

if TYPE_CHECKING:
    from .group import Group
    from .keyspace import Keyspace

_Fits = Callable[[Node, int], bool]

_first = attrgetter("first")  # of a node; called in C by bisect
_AT_ONCE_BYTES = 256 * 1024  # a longer range is read while the socket drains


class Stream:
    """Everything that lives under one stream key."""

    __slots__ = (
        "_changed_nodes",
        "_dropped_groups",
        "_dropped_nodes",
        "_view",
        "db",
        "entries_added",
        "epoch",
        "expire_ms",
        "groups",
        "key",
        "keyspace",
        "last_id",
        "length",
        "max_deleted_id",
        "nodes",
        "number",
    )

    def __init__(self, keyspace: Keyspace, number: int, db: int, key: bytes) -> None:
        self.keyspace = keyspace
        self.number = number
        self.db = db
        self.key = key
        self.expire_ms: int | None = None
        self.last_id: EntryID = 0
        self.max_deleted_id: EntryID = 0
        self.entries_added = 0
        self.length = 0
        self.nodes: list[Node] = []
        self.groups: dict[bytes, Group] = {}
        self.epoch = -1
        self._view: View | None = None
        self._changed_nodes: dict[Node, None] = {}
        self._dropped_nodes: list[Node] = []
        self._dropped_groups: list[int] = []

    # --- verbs

    def next_id(self, wall_ms: int) -> EntryID:
        """The ID that ``*`` means. Raises IDsExhausted."""
        first = wall_ms << 64
        if first > self.last_id:
            return first
        if self.last_id == MAX_ID:
            raise IDsExhausted
        return self.last_id + 1

    def next_id_at(self, ms: int) -> EntryID:
        """The ID that ``ms-*`` means. Raises IDTooSmall."""
        last_ms = self.last_id >> 64
        if ms > last_ms:
            return ms << 64
        if ms < last_ms or self.last_id & SEQ_MAX == SEQ_MAX:
            raise IDTooSmall
        return self.last_id + 1

    def append(self, id_: EntryID, fields: Sequence[bytes]) -> None:
        """Add an entry; ``fields`` are field, value, ... Raises IDTooSmall."""
        if id_ <= self.last_id:
            raise IDTooSmall
        node = self.nodes[-1] if self.nodes else None
        if node is None or node.ids is None or self._is_full(node, fields):
            opens, size = True, opening_size(fields)
        else:
            opens, size = False, following_size(node, id_, fields)
        change = Appended(self, id_, encode_entry(id_, fields), size, opens)
        self.apply_appended(change)
        self.keyspace.changes.append(change)

    def delete(self, ids: Iterable[EntryID]) -> int:
        """XDEL: how many of ``ids`` were there and are gone now."""
        present = tuple(id_ for id_ in dict.fromkeys(ids) if self.contains(id_))
        if present:
            self._do_deleted(Deleted(self, present))
        return len(present)

    def trim_to_length(self, length_max: int, *, whole: bool, limit: int) -> int:
        """Keep the newest ``length_max``; returns how many entries went.

        ``whole`` removes only nodes that go entirely, and no more than
        ``limit`` entries (0: no limit).
        """
        if self.length <= length_max:
            return 0
        surplus = self.length - length_max
        before, gone = self._whole_nodes(
            lambda node, gone: gone + node.live <= surplus, limit if whole else 0
        )
        if not whole and gone < surplus:
            before = self._nth_live_after(before, surplus - gone)
        return self._do_trimmed(before)

    def trim_to_id(self, id_: EntryID, *, whole: bool, limit: int) -> int:
        """Remove entries below ``id_``; returns how many went."""
        if not whole:
            return self._do_trimmed(id_)
        before, _ = self._whole_nodes(lambda node, _: node.last < id_, limit)
        return self._do_trimmed(before)

    def set_id(
        self, last_id: EntryID, entries_added: int, max_deleted_id: EntryID
    ) -> None:
        change = StreamSet(self, last_id, entries_added, max_deleted_id)
        self.apply_stream_set(change)
        self.keyspace.changes.append(change)

    # --- reading

    def group(self, name: bytes) -> Group | None:
        """Raises NotResident."""
        group = self.groups.get(name)
        if group is not None and not group.resident:
            raise NotResident(self, (), (group,))
        if group is not None:
            group.used = True
        return group

    def first_id(self) -> EntryID:
        """The first live entry's ID, 0 when there is none."""
        if not self.nodes:
            return 0
        node = self.nodes[0]
        if not node.dead & 1:
            return node.first
        return self.view(node).ids[first_zero(node.dead)]

    def top_id(self) -> EntryID:
        """The last live entry's ID, 0 when there is none."""
        if not self.nodes:
            return 0
        node = self.nodes[-1]
        at = node.count - 1
        if not node.dead >> at & 1:
            return node.last
        while node.dead >> at & 1:
            at -= 1
        return self.view(node).ids[at]

    def contains(self, id_: EntryID) -> bool:
        return self._find(id_) is not None

    def entry(self, id_: EntryID) -> bytes | None:
        """The raw entry, None when it is not there."""
        found = self._find(id_)
        return None if found is None else found[0].entry(found[1])

    def count_until(self, id_: EntryID) -> int:
        """How many live entries stand at or below ``id_``."""
        if id_ >= self.last_id:
            return self.length
        if not self.nodes or id_ < self.nodes[0].first:
            return 0
        at = self.node_index(id_)
        node = self.nodes[at]
        below = sum(node.live for node in self.nodes[:at])
        if id_ >= node.last:
            return below + node.live
        view = self.view(node)
        end = view.position(id_ + 1)
        return below + end - (node.dead & (1 << end) - 1).bit_count()

    def read_after(
        self, after: EntryID, count: int, bytes_max: int
    ) -> tuple[list[EntryID], list[bytes]]:
        """Ids and raw entries above ``after``, at most ``count``.

        Stops once ``bytes_max`` are passed; the entry that crosses is kept.
        """
        ids: list[EntryID] = []
        entries: list[bytes] = []
        nodes = self.nodes
        if not nodes or after >= nodes[-1].last:
            return ids, entries
        at = self.node_index(after) if after >= nodes[0].first else 0
        room_bytes = bytes_max
        wanted = nodes[at : at + count + 1]
        for node in wanted:
            if not node.resident:
                raise NotResident(self, absent(wanted, count, bytes_max))
            view = self.view(node)
            start = bisect_right(view.ids, after)
            if node.dead:
                places = [i for i in range(start, node.count) if view.is_live(i)]
                places = places[: count - len(ids)]
                new_ids = [view.ids[i] for i in places]
                new = [view.entry(i) for i in places]
            else:
                stop = min(node.count, start + count - len(ids))
                new_ids = view.ids[start:stop]
                new = view.entries(start, stop)
            new_bytes = sum(map(len, new))
            if new_bytes >= room_bytes:
                kept = places_until(new, room_bytes)
                return ids + new_ids[:kept], entries + new[:kept]
            room_bytes -= new_bytes
            ids += new_ids
            entries += new
            if len(ids) >= count:
                break
        return ids, entries

    def range(
        self, start: EntryID, end: EntryID, count: int | None, *, reverse: bool
    ) -> tuple[int, list[bytes | Slice]]:
        """Live entries in [start, end]: how many, and their raw parts in order.

        A long answer's parts are slices, read when the socket has room.
        """
        total, parts, at_once = 0, list[bytes | Slice](), 0
        left = self.length if count is None else count
        runs = self._runs(start, end, reverse=reverse)
        planned: list[tuple[Node, Sequence[int]]] = []
        for node, places in runs:
            if left <= 0:
                break
            taken = places[:left]
            planned.append((node, taken))
            total += len(taken)
            left -= len(taken)
        for node, taken in planned:  # nothing is pinned before all is planned
            if node.resident and at_once < _AT_ONCE_BYTES:
                view = self.view(node)
                parts.extend(raw := [view.entry(i) for i in taken])
                at_once += sum(map(len, raw))
            else:
                parts.append(Slice(self, node, taken))
        return total, parts

    def view(self, node: Node) -> View:
        """The node opened for reading. Raises NotResident."""
        if node.ids is not None:
            return View(node)
        if node.payload is None:
            raise NotResident(self, [node])
        if self._view is None or self._view.node is not node:
            self._view = View(node)
        return self._view

    # --- applying changes: live and in recovery

    def apply_appended(self, change: Appended) -> None:
        keyspace = self.keyspace
        if self.epoch != keyspace.epoch:
            keyspace.touch(self)
        nodes, id_ = self.nodes, change.id
        if change.opens:
            if nodes and nodes[-1].ids is not None:
                self._seal(nodes[-1])
            nodes.append(Node(id_))
        nodes[-1].append(id_, change.entry, change.size)
        self.last_id = id_
        self.entries_added += 1
        self.length += 1
        for group in self.groups.values():
            if id_ <= group.head:  # SETID put it beyond the tail
                group.touch()
                group.passed += 1

    def apply_deleted(self, change: Deleted) -> None:
        places = []
        for id_ in change.ids:
            found = self._find(id_)
            assert found is not None
            places.append((found[0].node, found[1]))
        self.touch()
        for node, position in places:
            self._bury(node, 1 << position)
        self.length -= len(places)
        self.max_deleted_id = max(self.max_deleted_id, *change.ids)
        for group in self.groups.values():
            gone = sum(id_ <= group.head for id_ in change.ids)
            if gone:
                group.touch()
                group.passed -= gone
            if gone < len(change.ids):
                for id_ in change.ids:
                    if id_ > group.head:
                        group.note_hole(id_, 1)

    def apply_trimmed(self, change: Trimmed) -> None:
        before = change.before
        whole = 0
        while whole < len(self.nodes) and self.nodes[whole].last < before:
            whole += 1
        cut = self.nodes[whole] if whole < len(self.nodes) else None
        buried = 0
        if cut is not None and cut.first < before:
            buried = (1 << self.view(cut).position(before)) - 1 & ~cut.dead
        self.touch()
        gone = sum(node.live for node in self.nodes[:whole]) + buried.bit_count()
        for node in self.nodes[:whole]:
            self.drop_node(node)
        del self.nodes[:whole]
        if cut is not None and buried:
            self._bury(cut, buried)
        self.length -= gone
        for group in self.groups.values():
            if group.passed:
                group.touch()
            below = gone if group.head >= before else group.passed
            group.passed -= below
            if gone > below:
                group.note_hole(before - 1, gone - below)

    def apply_stream_set(self, change: StreamSet) -> None:
        self.touch()
        self.last_id = change.last_id
        self.entries_added = change.entries_added
        self.max_deleted_id = change.max_deleted_id

    # --- checkpoints

    def touch(self) -> None:
        """Called before every change: the stream differs from its last cut."""
        if self.epoch != self.keyspace.epoch:
            self.keyspace.touch(self)

    def drop_group(self, group: Group) -> None:
        del self.groups[group.name]
        self._dropped_groups.append(group.number)

    def snapshot(self) -> StreamSnapshot:
        """What changed since the last cut; the caller stores it."""
        nodes = [NodeSnapshot.of(node) for node in self._changed_nodes]
        if self.nodes and self.nodes[-1].ids is not None:
            nodes.append(NodeSnapshot.of(self.nodes[-1]))
        snapshot = StreamSnapshot(
            stream=self,
            number=self.number,
            db=self.db,
            key=self.key,
            expire_ms=self.expire_ms,
            last_id=self.last_id,
            entries_added=self.entries_added,
            max_deleted_id=self.max_deleted_id,
            nodes=nodes,
            dropped_nodes=self._dropped_nodes,
            groups=[g.snapshot() for g in self.groups.values() if g.changed],
            dropped_groups=self._dropped_groups,
        )
        self._changed_nodes = {}
        self._dropped_nodes = []
        self._dropped_groups = []
        return snapshot

    def open_tail(self) -> None:
        """After a restart: the last node takes entries again."""
        if self.nodes and self.nodes[-1].ids is None:
            self.view(self.nodes[-1])
            self._view = None
            self.keyspace.cache.unseal(self.nodes[-1])

    def _is_full(self, node: Node, fields: Sequence[bytes]) -> bool:
        settings = self.keyspace.settings
        entries_max = settings.stream_node_max_entries
        bytes_max = settings.stream_node_max_bytes
        if entries_max and node.count >= entries_max:
            return True
        if not bytes_max:
            return False
        new = len(fields[0]) + len(fields[1])
        if len(fields) > 2:
            new = sum(map(len, fields))
        return node.listpack_bytes + new >= bytes_max

    def _seal(self, node: Node) -> None:
        self._view = node.seal()
        node.stored = False
        self.keyspace.cache.sealed(node)
        self._changed_nodes[node] = None

    def _bury(self, node: Node, mask: int) -> None:
        node.dead |= mask
        node.live -= mask.bit_count()
        if node.live == 0:
            del self.nodes[self.node_index(node.first)]
            self.drop_node(node)
        elif node.ids is None:
            self._changed_nodes[node] = None

    def drop_node(self, node: Node) -> None:
        self._changed_nodes.pop(node, None)
        self._dropped_nodes.append(node)
        self.keyspace.cache.forget(node)
        self._view = None

    def node_index(self, id_: EntryID) -> int:
        """The index of the last node that starts at or below ``id_``."""
        nodes = self.nodes
        if id_ >= nodes[-1].first:
            return len(nodes) - 1
        return bisect_right(nodes, id_, key=_first) - 1

    def _find(self, id_: EntryID) -> tuple[View, int] | None:
        if not self.nodes or not self.nodes[0].first <= id_ <= self.nodes[-1].last:
            return None
        node = self.nodes[self.node_index(id_)]
        if id_ > node.last:
            return None
        view = self.view(node)
        position = view.position(id_)
        if view.ids[position] != id_ or not view.is_live(position):
            return None
        return view, position

    def _runs(
        self, start: EntryID, end: EntryID, *, reverse: bool
    ) -> Iterator[tuple[Node, Sequence[int]]]:
        """Nodes that overlap [start, end] with the live positions inside it."""
        nodes = self.nodes
        if not nodes or start > end or end < nodes[0].first:
            return
        low = self.node_index(start) if start >= nodes[0].first else 0
        high = self.node_index(end)
        for at in range(high, low - 1, -1) if reverse else range(low, high + 1):
            node = nodes[at]
            first = 0 if start <= node.first else self.view(node).position(start)
            stop = node.count if end >= node.last else self.view(node).position(end + 1)
            places: Sequence[int] = range(first, stop)
            if node.dead:
                places = [i for i in places if not node.dead >> i & 1]
            if places:
                yield node, places[::-1] if reverse else places

    def _whole_nodes(self, fits: _Fits, limit: int) -> tuple[EntryID, int]:
        """The ID below which head nodes go, and how many entries they hold."""
        before = gone = 0
        for node in self.nodes:
            if not fits(node, gone) or (limit and gone + node.live > limit):
                break
            gone += node.live
            before = node.last + 1
        return before, gone

    def _nth_live_after(self, before: EntryID, n: int) -> EntryID:
        """Just above the ``n``-th live entry of the node that ``before`` ends at."""
        at = next(i for i, node in enumerate(self.nodes) if node.last >= before)
        node = self.nodes[at]
        view = self.view(node)
        live = [i for i in range(node.count) if view.is_live(i)]
        return view.ids[live[n - 1]] + 1

    def _do_deleted(self, change: Deleted) -> None:
        self.apply_deleted(change)
        self.keyspace.changes.append(change)

    def _do_trimmed(self, before: EntryID) -> int:
        length = self.length
        if not self.nodes or before <= self.first_id():
            return 0
        change = Trimmed(self, before)
        self.apply_trimmed(change)
        self.keyspace.changes.append(change)
        return length - self.length
