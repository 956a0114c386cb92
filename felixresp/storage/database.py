"""The checkpoint on disk: one LMDB environment, and what stands in it.

Nothing else imports lmdb. A checkpoint is one write transaction, made on a
thread of its own; it sees plain data only, never an engine object. Reading uses
short transactions, so pages of old versions are free again soon.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import lmdb

from ..engine.cache import NodeCache
from ..engine.group import Group
from ..engine.ids import EntryID
from ..engine.keyspace import Keyspace
from ..engine.nodes import Node
from ..engine.snapshots import GroupSnapshot, PendingRecord, StreamSnapshot
from ..engine.stream import Stream
from ..engine.values import String
from . import records
from .base import StoreError, Unreadable
from .frames import refuse_unknown
from .records import State

_MAP_BYTES = 2**40  # the file is sparse: it takes what is written
_BATCH = 64  # records between two pauses
_GARBAGE_MAX = 20_000  # records that one checkpoint deletes
_NAMES = (
    "state",
    "values",
    "nodes",
    "payloads",
    "groups",
    "consumers",
    "pending",
    "dead",
    "garbage",
)
_STATE = b"state"
_OF_STREAM = ("nodes", "payloads", "groups", "consumers", "pending", "dead")
_OF_GROUP = ("consumers", "pending", "dead")

Pause = Callable[[], None]


class WriteFailed(Exception):
    """The transaction was not committed: nothing has changed."""


class Database:
    """Raises StoreError when it cannot be opened."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "lmdb"
        self._row = b""
        try:
            self._env = lmdb.open(
                str(self._path), map_size=_MAP_BYTES, max_dbs=len(_NAMES)
            )
            self._env.reader_check()
            self._dbs = {name: self._env.open_db(name.encode()) for name in _NAMES}
        except (lmdb.Error, OSError) as exc:
            msg = f"cannot open {self._path}: {exc}"
            raise StoreError(msg) from None

    def close(self) -> None:
        self._env.close()

    def read_state(self) -> State | None:
        """None in a new database. Raises StoreError for an unknown version."""
        with self._env.begin() as txn:
            data = txn.get(_STATE, db=self._dbs["state"])
        if data is None:
            return None
        return records.decode_state(self._open(_STATE, data))

    def read(self, stream: int, nodes: Iterable[Node], cache: NodeCache) -> None:
        """Bring the nodes' payloads and indexes into memory. Raises Unreadable."""
        db = self._dbs["payloads"]
        try:
            with self._env.begin(buffers=True) as txn:
                for node in nodes:
                    key = records.node_key(stream, node.first)
                    data = txn.get(key, db=db)
                    if data is None or not records.is_sound(key, data):
                        raise self._unreadable(node, key)
                    try:
                        payload, index = records.decode_payload(node, data)
                    except ValueError:
                        raise self._unreadable(node, key) from None
                    cache.load(node, payload, index)
        except lmdb.Error as exc:
            msg = f"cannot read {self._path}: {exc}"
            raise StoreError(msg) from exc

    def _unreadable(self, node: Node, key: bytes) -> Unreadable:
        return Unreadable(records.describe_damage(str(self._path), key), node)

    # --- loading all that is always in memory

    def load(self, keyspace: Keyspace) -> None:
        """Raises Corrupt, or StoreError for an unknown version."""
        try:
            self._load(keyspace)
        except lmdb.Error as exc:
            msg = f"cannot read {self._path}: {exc}"
            raise StoreError(msg) from exc
        except (struct.error, LookupError, TypeError, ValueError) as exc:
            raise records.damaged(str(self._path), self._row) from exc

    def _load(self, keyspace: Keyspace) -> None:
        with self._env.begin() as txn:
            streams: dict[bytes, Stream] = {}
            for key, data in self._rows(txn, "values"):
                value = records.decode_value(keyspace, key, data)
                keyspace.restore(value)
                if isinstance(value, Stream):
                    streams[key] = value
            self._load_nodes(txn, streams)
            self._fill_groups(txn, self._load_groups(txn, streams), b"")

    def _load_nodes(self, txn: lmdb.Transaction, streams: dict[bytes, Stream]) -> None:
        prefix, stream = b"", None
        decode = records.decode_node
        nodes: list[Node] = []
        for key, data in self._rows(txn, "nodes"):
            if key[:8] != prefix:
                prefix = key[:8]
                stream = streams.get(prefix)
                nodes = stream.nodes if stream is not None else []
            node = decode(key[8:], data)
            nodes.append(node)
        for stream in streams.values():
            stream.length = sum([node.live for node in stream.nodes])

    def _load_groups(
        self, txn: lmdb.Transaction, streams: dict[bytes, Stream]
    ) -> dict[bytes, Group]:
        groups: dict[bytes, Group] = {}
        for key, data in self._rows(txn, "groups"):
            stream = streams.get(key[:8])
            if stream is not None:
                number = int.from_bytes(key[8:], "big")
                group = records.decode_group(stream, number, data)
                stream.groups[group.name] = groups[key] = group
        return groups

    def read_groups(self, groups: Iterable[Group]) -> None:
        """Fill groups that left memory. Raises Corrupt, StoreError."""
        try:
            with self._env.begin() as txn:
                for group in groups:
                    key = records.group_key(group.stream.number, group.number)
                    self._fill_groups(txn, {key: group}, key)
                    group.resident = group.used = True
        except lmdb.Error as exc:
            msg = f"cannot read {self._path}: {exc}"
            raise StoreError(msg) from exc
        except (struct.error, LookupError, TypeError, ValueError) as exc:
            raise records.damaged(str(self._path), self._row) from exc

    def _fill_groups(
        self, txn: lmdb.Transaction, groups: dict[bytes, Group], prefix: bytes
    ) -> None:
        """Consumers, dead letters and pending entries, of keys with this prefix."""
        for key, data in self._rows(txn, "consumers", prefix):
            if (group := groups.get(key[:16])) is not None:
                consumer = records.decode_consumer(key[16:], data)
                group.consumers[consumer.name] = consumer
        for key, data in self._rows(txn, "dead", prefix):
            if (group := groups.get(key[:16])) is not None:
                letter, story, listed = records.decode_dead(data)
                if story:
                    group.stories[letter.id] = list(story)
                if listed:
                    group.dead_letters.add(letter)
                else:
                    group.dead_letters.redriven[letter.id] = letter
        found: dict[bytes, dict[EntryID, PendingRecord]] = {key: {} for key in groups}
        for key, data in self._rows(txn, "pending", prefix):
            if (pending := found.get(key[:16])) is not None:
                id_, record = records.decode_pending(key[16:], data)
                pending[id_] = record
        for key, group in groups.items():
            group.restore_pending(found[key])

    def _rows(
        self, txn: lmdb.Transaction, name: str, prefix: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Each record; ``_row`` says which one, should it not make sense."""
        with txn.cursor(self._dbs[name]) as cursor:
            if prefix and not cursor.set_range(prefix):
                return
            rows = cast("Iterator[tuple[bytes, bytes]]", cursor.iternext())
            for key, data in rows:
                if not key.startswith(prefix):
                    return
                self._row = key
                yield key, self._open(key, data)

    def _open(self, key: bytes, data: bytes) -> bytes:
        """A record without its checksum. Raises Corrupt, or StoreError for an
        unknown version."""
        if data and data[0] != records.RECORD_VERSION:
            place = f"{self._path}, key {key.hex()}"
            refuse_unknown(data[0], records.RECORD_VERSION, place)
        if not records.is_sound(key, data):
            raise records.damaged(str(self._path), key)
        return data[: -records.CHECK_BYTES]

    # --- writing

    def write(
        self,
        state: State,
        values: Iterable[StreamSnapshot | String],
        dropped: Iterable[tuple[int, bool]],
        pause: Pause,
    ) -> bool:
        """One checkpoint; ``dropped`` are numbers, and whether of a stream.

        True when garbage is left for the next one. Raises WriteFailed.
        """
        try:
            with self._env.begin(write=True) as txn:
                rows = _Rows(txn, self._dbs, pause)
                for number, is_stream in dropped:
                    rows.delete("values", records.stream_key(number))
                    if is_stream:
                        rows.mark_garbage(records.stream_key(number))
                for value in values:
                    if isinstance(value, String):
                        key = records.stream_key(value.number)
                        rows.put("values", key, records.encode_value(value))
                    else:
                        _write_stream(rows, value)
                rows.flush()
                left = rows.sweep()
                rows.put("state", _STATE, records.encode_state(state))
                rows.flush()
        except (lmdb.Error, OSError) as exc:
            msg = f"cannot write {self._path}: {exc}"
            raise WriteFailed(msg) from exc
        return left


class _Rows:
    """Puts in batches and deletes of one transaction, with pauses between."""

    def __init__(
        self, txn: lmdb.Transaction, dbs: dict[str, lmdb._Database], pause: Pause
    ) -> None:
        self._txn = txn
        self._dbs = dbs
        self._pause = pause
        self._puts: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in dbs}
        self._deletes = 0

    def put(self, name: str, key: bytes, data: bytes) -> None:
        puts = self._puts[name]
        puts.append((key, records.seal(key, data)))
        if len(puts) == _BATCH:
            self._write(name, puts)
            self._pause()

    def delete(self, name: str, key: bytes) -> None:
        self._txn.delete(key, db=self._dbs[name])
        self._count_delete()

    def mark_garbage(self, prefix: bytes) -> None:
        """Everything under this stream or group is to be deleted by and by."""
        self.put("garbage", prefix, bytes((records.RECORD_VERSION,)))

    def flush(self) -> None:
        for name, puts in self._puts.items():
            if puts:
                self._write(name, puts)

    def sweep(self) -> bool:
        """Delete a slice of the garbage; True when there is more."""
        left = _GARBAGE_MAX
        with self._txn.cursor(self._dbs["garbage"]) as garbage:
            while garbage.first():
                prefix = bytes(garbage.key())
                for name in _OF_STREAM if len(prefix) == 8 else _OF_GROUP:
                    left -= self._sweep_one(name, prefix, left)
                    if left <= 0:
                        return True
                garbage.delete()
        return False

    def _sweep_one(self, name: str, prefix: bytes, most: int) -> int:
        gone = 0
        with self._txn.cursor(self._dbs[name]) as cursor:
            found = cursor.set_range(prefix)
            while found and gone < most and bytes(cursor.key()).startswith(prefix):
                cursor.delete()
                gone += 1
                self._count_delete()
                found = bool(cursor.key())  # the next one, empty at the end
        return gone

    def _write(self, name: str, puts: list[tuple[bytes, bytes]]) -> None:
        with self._txn.cursor(self._dbs[name]) as cursor:
            cursor.putmulti(puts)
        puts.clear()

    def _count_delete(self) -> None:
        self._deletes += 1
        if self._deletes % _BATCH == 0:
            self._pause()


def _write_stream(rows: _Rows, stream: StreamSnapshot) -> None:
    number = stream.number
    rows.put("values", records.stream_key(number), records.encode_value(stream))
    for dropped in stream.dropped_nodes:  # first: a new node may start there again
        key = records.node_key(number, dropped.first)
        rows.delete("nodes", key)
        rows.delete("payloads", key)
    for node in stream.nodes:
        key = records.node_key(number, node.first)
        rows.put("nodes", key, records.encode_node(node))
        if node.payload is not None and node.index is not None:
            data = records.encode_payload(node.index, node.payload)
            rows.put("payloads", key, data)
    for gone in stream.dropped_groups:
        key = records.group_key(number, gone)
        rows.delete("groups", key)
        rows.mark_garbage(key)
    for group in stream.groups:
        _write_group(rows, number, group)


def _write_group(rows: _Rows, stream: int, group: GroupSnapshot) -> None:
    number = group.number
    rows.put("groups", records.group_key(stream, number), records.encode_group(group))
    for gone in group.dropped_consumers:
        rows.delete("consumers", records.consumer_key(stream, number, gone))
    for consumer, name, seen_ms, active_ms in group.consumers:
        key = records.consumer_key(stream, number, consumer)
        rows.put("consumers", key, records.encode_consumer(name, seen_ms, active_ms))
    for id_ in group.dropped_pending:
        rows.delete("pending", records.entry_key(stream, number, id_))
    for id_, record in group.pending.items():
        key = records.entry_key(stream, number, id_)
        rows.put("pending", key, records.encode_pending(record))
    for id_ in group.dropped_dead:
        rows.delete("dead", records.entry_key(stream, number, id_))
    for listed, letters in ((True, group.dead), (False, group.redriven)):
        for id_, letter in letters.items():
            key = records.entry_key(stream, number, id_)
            story = group.stories.get(id_, ())
            rows.put("dead", key, records.encode_dead(letter, story, listed=listed))
