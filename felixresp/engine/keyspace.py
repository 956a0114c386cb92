"""Databases, keys, expiry and WATCH; where changes are gathered and applied.

Live, a verb applies its change and appends it to ``changes``; the server takes
them after each command or EXEC. In recovery ``apply`` does what the verb's own
application did, change by change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from ..config import Settings
from .applying import GROUP_CHANGES
from .cache import NodeCache
from .changes import (
    Appended,
    Change,
    Configured,
    Created,
    Deleted,
    Dropped,
    ExpirySet,
    GroupCreated,
    GroupDestroyed,
    Lost,
    Renamed,
    StreamSet,
    StringSet,
    Trimmed,
)
from .claims import expire, give_back
from .connections import Connections
from .due import Due
from .errors import NotResident, WrongType
from .eviction import evict_idle
from .group import Group
from .handouts import HandOut
from .ids import EntryID
from .key_order import KeyOrder
from .losses import apply_lost
from .members import detach, drop_unused
from .modes import LEASE
from .recovery import resume_group
from .snapshots import StreamSnapshot
from .stream import Stream
from .values import String, Value
from .watches import Watches

_EXPIRIES_MAX = 1000  # keys that one call drops


class Keyspace:
    """All databases of one server.

    ``random64`` gives 64 random bits: receipts and jitter come from it. The
    default is for tests: anyone could guess it.
    """

    def __init__(
        self, settings: Settings, random64: Callable[[], int] | None = None
    ) -> None:
        self.settings = settings
        self.random64 = random64 or count(1).__next__
        self.databases: list[dict[bytes, Value]] = [
            {} for _ in range(settings.databases)
        ]
        self._orders = [KeyOrder(database) for database in self.databases]
        self.changes: list[Change] = []
        # by the command just run, at the cost of an attempt
        self.handed: list[HandOut] = []
        self.notices: list[str] = []  # for the operator
        self.counts: Counter[str] = Counter()  # of groups, for INFO
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
        self._sweeps = Due[Group](self._is_swept)
        self.connections = Connections()
        self._rank = 0
        self.watches = Watches()

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
        if self.settings.group_mode != LEASE.name:  # a change of it comes too late
            own = {"mode": self.settings.group_mode}
            group.record(Configured(group, own, False, 0, 0))
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
        """End the claims and delays that are due, in every group; drop consumers
        that were not used for long."""
        while (group := self._deadlines.first(now_ms)) is not None:
            before = len(self.changes)
            expire(group, now_ms)
            self._rearm(group)
            if len(self.changes) > before:
                return  # one group a call: the server serves its waiters
        while (group := self._sweeps.pop(now_ms)) is not None:
            if not group.resident:
                self.sweep_at(group, now_ms)
                raise NotResident(group.stream, (), (group,))
            group.sweep_ms = None
            drop_unused(group, now_ms)

    def next_deadline(self) -> int | None:
        """When expire_claims() has something to do."""
        armed_ms, swept_ms = self._deadlines.next_ms(), self._sweeps.next_ms()
        if armed_ms is None or swept_ms is None:
            return swept_ms if armed_ms is None else armed_ms
        return min(armed_ms, swept_ms)

    def arm(self, group: Group, deadline_ms: int) -> None:
        """Look at the group's claims again at this time."""
        group.armed_ms = deadline_ms
        self._deadlines.push(deadline_ms, group)

    def sweep_at(self, group: Group, due_ms: int) -> None:
        """Look for the group's unused consumers at this time."""
        group.sweep_ms = due_ms
        self._sweeps.push(due_ms, group)

    def next_rank(self) -> int:
        """Breaks ties in heaps, first come first."""
        self._rank += 1
        return self._rank

    def nonce(self) -> int:
        """A hand-out's random number, never 0."""
        return self.random64() or 1

    def return_claims(self, handouts: Iterable[HandOut], now_ms: int) -> None:
        """These replies never left: nothing they handed out is charged."""
        for handout in handouts:
            if self._has(handout.group):
                give_back(handout, now_ms)

    # --- connections

    def detach(self, client_id: int, now_ms: int) -> None:
        """The connection is closed, reset, or another user's."""
        for member, group in self.connections.close(client_id):
            detach(group, member, client_id, now_ms)

    def evict_idle_groups(self, now_ms: int) -> None:
        """Groups that nobody uses leave memory; for a store that has all but what
        changed since the last cut."""
        for database in self.databases:
            for value in database.values():
                if isinstance(value, Stream) and value.groups:
                    self.counts["groups_evicted"] += evict_idle(value, now_ms)

    # --- changes

    def take(self) -> list[Change]:
        """Hand over the changes since the last call."""
        changes = self.changes
        self.changes = []
        if self.watches.versions:
            self.watches.note(changes)
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

    def resume(self, now_ms: int, *, crashed: bool) -> None:
        """After the last change was applied: claims are over, or stand again
        where they were written down."""
        for database in self.databases:
            for value in database.values():
                if isinstance(value, Stream):
                    for group in value.groups.values():
                        resume_group(group, now_ms, crashed=crashed)

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

    def _is_swept(self, due_ms: int, group: Group) -> bool:
        return group.sweep_ms == due_ms and self._has(group)

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
        deadline_ms = group.next_deadline()
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
            for group in value.groups.values():
                self._forget_consumers(group)

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
        self._forget_consumers(change.target)

    def _forget_consumers(self, group: Group) -> None:
        for consumer in group.consumers.values():
            self.connections.forget(consumer)


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
}
# fmt: on
