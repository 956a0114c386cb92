"""Databases, keys, expiry and WATCH; where changes are gathered and applied.

Live, a verb applies its change and appends it to ``changes``; the server takes
them after each command or EXEC. In recovery ``apply`` does what the verb's own
application did, change by change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..config import Settings
from .cache import NodeCache
from .changes import (
    Appended,
    Change,
    Created,
    Deleted,
    Dropped,
    ExpirySet,
    GroupCreated,
    GroupDestroyed,
    Lapsed,
    Lost,
    Ready,
    Renamed,
    StreamSet,
    StringSet,
    Trimmed,
)
from .claims import expire, give_back, next_deadline
from .due import Due
from .errors import WrongType
from .group import GROUP_CHANGES, Group
from .handouts import HandOut
from .ids import EntryID
from .key_order import KeyOrder
from .losses import apply_lost
from .snapshots import StreamSnapshot
from .stream import Stream

_EXPIRIES_MAX = 1000  # keys that one call drops


class String:
    """A string value."""

    __slots__ = ("data", "db", "epoch", "expire_ms", "key", "number")

    def __init__(self, number: int, db: int, key: bytes) -> None:
        self.number = number
        self.db = db
        self.key = key
        self.data = b""
        self.expire_ms: int | None = None
        self.epoch = -1


Value = Stream | String


class Keyspace:
    """All databases of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.databases: list[dict[bytes, Value]] = [
            {} for _ in range(settings.databases)
        ]
        self._orders = [KeyOrder(database) for database in self.databases]
        self.changes: list[Change] = []
        # by the command just run, at the cost of an attempt
        self.handed: list[HandOut] = []
        self.cache = NodeCache()
        self.next_number = 1  # of streams, strings and groups; never reused
        self.epoch = 0  # counts the cuts; a value of another epoch is unchanged
        self._changed: dict[Value, None] = {}
        self._saving: dict[Value, None] = {}  # changed before the cut, not yet read
        self._read_early: list[StreamSnapshot | String] = []
        self._dropped: list[Value] = []
        self._expiries = Due[Value](self._is_due)
        self._expiring = [0] * settings.databases  # keys that have an expiry
        self._late_ms = 0  # keys due by then are there yet: they count as gone
        self._deadlines = Due[Group](self._is_armed)
        self._rank = 0
        self._versions: dict[tuple[int, bytes], int] = {}
        self._watchers: dict[tuple[int, bytes], int] = {}

    # --- keys

    def get(self, db: int, key: bytes) -> Value | None:
        value = self.databases[db].get(key)
        return self._unless_late(value) if self._late_ms else value

    def stream(self, db: int, key: bytes) -> Stream | None:
        """Raises WrongType."""
        value = self.databases[db].get(key)
        if self._late_ms:
            value = self._unless_late(value)
        if value is None or type(value) is Stream:
            return value
        raise WrongType

    def string(self, db: int, key: bytes) -> String | None:
        """Raises WrongType."""
        value = self.databases[db].get(key)
        if self._late_ms:
            value = self._unless_late(value)
        if value is None or type(value) is String:
            return value
        raise WrongType

    def keys(self, db: int) -> Iterable[bytes]:
        if not self._late_ms:
            return self.databases[db].keys()
        values = self.databases[db].values()
        return [value.key for value in values if not self._is_late(value)]

    def scan(self, db: int, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """The next cursor, 0 at the end, and about ``count`` keys."""
        cursor, names = self._orders[db].scan(cursor, count)
        if self._late_ms:
            values = self.databases[db]
            names = [name for name in names if not self._is_late(values[name])]
        return cursor, names

    def size(self, db: int) -> int:
        return len(self.databases[db])

    def expires(self, db: int) -> int:
        return self._expiring[db]

    def create_stream(self, db: int, key: bytes) -> Stream:
        stream = Stream(self, self._number(), db, key)
        self._record(Created(stream, db, key))
        return stream

    def set_string(self, db: int, key: bytes, data: bytes) -> String:
        """A new value without expiry, in place of whatever was there."""
        old = self.get(db, key)
        if type(old) is String:
            string = old
            if old.expire_ms is not None:
                self.set_expiry(old, None)
        else:
            if old is not None:
                self.drop(old)
            string = String(self._number(), db, key)
            self._record(Created(string, db, key))
        self._record(StringSet(string, data))
        return string

    def drop(self, value: Value) -> None:
        self._record(Dropped(value))

    def rename(self, value: Value, db: int, key: bytes) -> None:
        """Give the value another key; what was there is dropped."""
        old = self.get(db, key)
        if old is value:
            return
        if old is not None:
            self.drop(old)
        self._record(Renamed(value, value.db, value.key, db, key))

    def set_expiry(self, value: Value, expire_ms: int | None) -> None:
        self._record(ExpirySet(value, expire_ms))

    def flush(self, db: int | None) -> None:
        """Drop every key of one database, or of all."""
        for at in range(len(self.databases)) if db is None else (db,):
            for value in list(self.databases[at].values()):
                self.drop(value)

    # --- groups

    def create_group(
        self, stream: Stream, name: bytes, head: EntryID, entries_read: int | None
    ) -> Group:
        passed = stream.count_until(head)
        group = Group(stream, self._number(), name)
        self._record(GroupCreated(group, head, entries_read, passed))
        return group

    def destroy_group(self, group: Group) -> None:
        self._record(GroupDestroyed(group))

    # --- time

    def expire_due(self, wall_ms: int) -> None:
        """Drop keys whose expiry has passed, at most a thousand a call; who asks
        for one of the others does not find it."""
        for _ in range(_EXPIRIES_MAX):
            value = self._expiries.pop(wall_ms)
            if value is None:
                self._late_ms = 0
                return
            self.drop(value)
        self._late_ms = wall_ms

    def next_expiry(self) -> int | None:
        return self._expiries.next_ms()

    def expire_claims(self, now_ms: int) -> None:
        """End the claims that are due, in every group."""
        while (group := self._deadlines.first(now_ms)) is not None:
            before = len(self.changes)
            expire(group, now_ms)
            self._rearm(group)
            if len(self.changes) > before:
                return  # one group a call: the server serves its waiters

    def next_deadline(self) -> int | None:
        return self._deadlines.next_ms()

    def arm(self, group: Group, deadline_ms: int) -> None:
        """Look at the group's claims again at this time."""
        group.armed_ms = deadline_ms
        self._deadlines.push(deadline_ms, group)

    def next_rank(self) -> int:
        """Breaks ties in heaps, first come first."""
        self._rank += 1
        return self._rank

    def return_claims(self, handouts: Iterable[HandOut]) -> None:
        """These replies never left: nothing they handed out is charged."""
        for handout in handouts:
            if self._has(handout.group):
                give_back(handout)

    # --- WATCH

    def watch(self, db: int, key: bytes) -> int:
        place = db, key
        self._watchers[place] = self._watchers.get(place, 0) + 1
        return self._versions.setdefault(place, 0)

    def unwatch(self, db: int, key: bytes) -> None:
        place = db, key
        self._watchers[place] -= 1
        if not self._watchers[place]:
            del self._watchers[place], self._versions[place]

    def version(self, db: int, key: bytes) -> int:
        """Differs from what watch() gave once the key was touched."""
        return self._versions.get((db, key), 0)

    # --- changes

    def take(self) -> list[Change]:
        """Hand over the changes since the last call."""
        changes = self.changes
        self.changes = []
        if self._versions:
            for change in changes:
                self._note_version(change)
        return changes

    def apply(self, change: Change) -> None:
        """Apply a recovered change; may raise NotResident, then call again."""
        if isinstance(change.target, Group) and type(change) in GROUP_CHANGES:
            GROUP_CHANGES[type(change)](change.target, change)
        else:
            _APPLY[type(change)](self, change)

    def touch(self, value: Value) -> None:
        """The value is about to change: it belongs to the next cut too."""
        self._read_before(value)
        value.epoch = self.epoch
        self._changed[value] = None

    # --- cuts: what a checkpoint stores

    def cut(self) -> list[Value]:
        """Start a cut: the state as it is now. Returns the values dropped since
        the last one; next_snapshot() gives the changed ones."""
        assert not self._saving and not self._read_early  # noqa: PT018
        self._saving, self._changed = self._changed, {}
        self.epoch += 1
        dropped, self._dropped = self._dropped, []
        return dropped

    def next_snapshot(self) -> StreamSnapshot | String | None:
        """The cut's next value, in the state it had at the cut; None at the end.

        Values that change meanwhile are read before they do.
        """
        if self._read_early:
            return self._read_early.pop()
        if self._saving:
            return self._read(self._saving.popitem()[0])
        return None

    # --- recovery

    def restore(self, value: Value) -> None:
        """Put a stored value in its place."""
        self._place(value)
        self.next_number = max(self.next_number, value.number + 1)

    def recover(self, *, crashed: bool) -> None:
        """After the last change was applied: every claim is over."""
        for database in self.databases:
            for value in database.values():
                if isinstance(value, Stream):
                    tail = value.last_id if crashed else 0
                    for group in value.groups.values():
                        group.recover(tail)
        self.changes = []

    # ---

    def _number(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number

    def _record(self, change: Change) -> None:
        _APPLY[type(change)](self, change)
        self.changes.append(change)

    def _holds(self, value: Value) -> bool:
        return self.databases[value.db].get(value.key) is value

    def _has(self, group: Group) -> bool:
        stream = group.stream
        return self._holds(stream) and stream.groups.get(group.name) is group

    def _is_due(self, expire_ms: int, value: Value) -> bool:
        return value.expire_ms == expire_ms and self._holds(value)

    def _is_armed(self, deadline_ms: int, group: Group) -> bool:
        return group.armed_ms == deadline_ms and self._has(group)

    def _is_late(self, value: Value) -> bool:
        return value.expire_ms is not None and value.expire_ms <= self._late_ms

    def _unless_late(self, value: Value | None) -> Value | None:
        if value is None or not self._is_late(value):
            return value
        self.drop(value)
        return None

    def _rearm(self, group: Group) -> None:
        group.armed_ms = None
        deadline_ms = next_deadline(group)
        if deadline_ms is not None:
            self.arm(group, deadline_ms)

    def _read_before(self, value: Value) -> None:
        if value in self._saving:
            del self._saving[value]
            self._read_early.append(self._read(value))

    def _read(self, value: Value) -> StreamSnapshot | String:
        if isinstance(value, Stream):
            return value.snapshot()
        copy = String(value.number, value.db, value.key)
        copy.data, copy.expire_ms = value.data, value.expire_ms
        return copy

    def _place(self, value: Value) -> None:
        self.databases[value.db][value.key] = value
        self._orders[value.db].add(value.key)
        self._expiring[value.db] += value.expire_ms is not None
        self._note_expiry(value)

    def _displace(self, value: Value) -> None:
        del self.databases[value.db][value.key]
        self._expiring[value.db] -= value.expire_ms is not None

    def _note_expiry(self, value: Value) -> None:
        if value.expire_ms is not None:
            self._expiries.push(value.expire_ms, value)

    def _note_version(self, change: Change) -> None:
        """As in Redis, what happens to groups, and XSETID, touches no key."""
        value = change.target
        if isinstance(value, Group) or isinstance(change, StreamSet):
            return
        places = [(value.db, value.key)]
        if isinstance(change, Renamed):
            places.append((change.old_db, change.old_key))
        for place in places:
            if place in self._versions:
                self._versions[place] += 1

    # --- applying changes to keys and groups

    def _apply_created(self, change: Created) -> None:
        value = change.target
        self._place(value)
        self.next_number = max(self.next_number, value.number + 1)
        self.touch(value)

    def _apply_dropped(self, change: Dropped) -> None:
        value = change.target
        self._read_before(value)  # the journal may speak of it after the cut
        self._changed.pop(value, None)
        self._displace(value)
        self._dropped.append(value)
        if isinstance(value, Stream):
            for node in value.nodes:
                self.cache.forget(node)

    def _apply_renamed(self, change: Renamed) -> None:
        value = change.target
        self.touch(value)
        self._displace(value)
        value.db, value.key = change.db, change.key
        self._place(value)

    def _apply_expiry(self, change: ExpirySet) -> None:
        value = change.target
        self.touch(value)
        before = value.expire_ms is not None
        value.expire_ms = change.expire_ms
        self._expiring[value.db] += (value.expire_ms is not None) - before
        self._note_expiry(value)

    def _apply_string(self, change: StringSet) -> None:
        self.touch(change.target)
        change.target.data = change.data

    def _apply_group_created(self, change: GroupCreated) -> None:
        group = change.target
        group.head = group.cursor = change.head
        group.entries_read, group.passed = change.entries_read, change.passed
        group.stream.touch()
        group.stream.groups[group.name] = group
        self.next_number = max(self.next_number, group.number + 1)

    def _apply_group_destroyed(self, change: GroupDestroyed) -> None:
        stream = change.target.stream
        stream.touch()
        stream.drop_group(change.target)


def _volatile(_keyspace: Keyspace, _change: Change) -> None:
    """Nothing to apply: the state it speaks of is not kept over a restart."""


# fmt: off
_APPLY: dict[type[Change], Callable[[Keyspace, Any], None]] = {
    Created: Keyspace._apply_created,
    Dropped: Keyspace._apply_dropped,
    Renamed: Keyspace._apply_renamed,
    ExpirySet: Keyspace._apply_expiry,
    StringSet: Keyspace._apply_string,
    GroupCreated: Keyspace._apply_group_created,
    GroupDestroyed: Keyspace._apply_group_destroyed,
    Appended: lambda _, change: change.target.apply_appended(change),
    Deleted: lambda _, change: change.target.apply_deleted(change),
    Trimmed: lambda _, change: change.target.apply_trimmed(change),
    Lost: lambda _, change: apply_lost(change),
    StreamSet: lambda _, change: change.target.apply_stream_set(change),
    Lapsed: _volatile,
    Ready: _volatile,
}
# fmt: on
