"""The records of a checkpoint: what stands under each key, byte for byte.

Keys sort by number: a stream's records stand together, a group's within them.
Every value starts with the version of its format; docs/storage.md has the table.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from zlib import crc32

from ..engine.changes import Tally
from ..engine.dead_letters import DeadLetter
from ..engine.group import Group
from ..engine.handouts import Consumer
from ..engine.ids import SEQ_MAX, EntryID
from ..engine.keyspace import Keyspace, String, Value
from ..engine.nodes import INDEX_BYTES, Node
from ..engine.snapshots import (
    GroupSnapshot,
    NodeSnapshot,
    PendingRecord,
    StreamSnapshot,
)
from ..engine.stream import Stream
from .base import Corrupt
from .decoder import decode_letter
from .encoder import encode_letter, within
from .frames import Position

RECORD_VERSION = 2
CHECK_BYTES = 4
_SOUND = 0x2144DF1C  # crc32 of anything with its own crc32 behind it

_NUMBER = Struct(">Q")
_STREAM_PLACE = Struct(">QQQ")  # stream, id
_GROUP = Struct(">QQ")  # stream, group
_GROUP_PLACE = Struct(">QQQQ")  # stream, group, id
_CONSUMER_PLACE = Struct(">QQQ")  # stream, group, consumer

_STATE = Struct("<BQQQQQ?")  # frame, segment, offset, next number, epoch, clean
_VALUE = Struct("<BBI?qI")  # kind, db, has an expiry, unix ms, key length
_STREAM = Struct("<16sQ16s")  # last id, entries added, max deleted id
_NODE = Struct("<B16sIQ")  # last id, entries, listpack bytes; then the dead mask
_GROUP_RECORD = Struct("<B16s16sQQQII")  # head, cursor, read, passed, consumers, 2 n
_CONSUMER = Struct("<Bqq")  # seen ms, active ms; then the name
_PENDING = Struct("<BQqQQq")  # consumer, handed ms, attempts, deliveries, first ms
_IS_STREAM, _IS_STRING = 1, 2
_LISTED, _REDRIVEN = 1, 2
_ID_BYTES = 16


class State(NamedTuple):
    """What the store is as a whole."""

    position: Position  # the first frame that is not in the checkpoint
    next_number: int
    epoch: int
    clean: bool  # stopped after it, with nothing in the journal


def seal(key: bytes, data: bytes) -> bytes:
    """A record ends with the checksum of its key and of what is before it."""
    return data + crc32(data, crc32(key)).to_bytes(CHECK_BYTES, "little")


def is_sound(key: bytes, data: bytes | memoryview) -> bool:
    return crc32(data, crc32(key)) == _SOUND


def stream_key(stream: int) -> bytes:
    return _NUMBER.pack(stream)


def node_key(stream: int, first: EntryID) -> bytes:
    return _STREAM_PLACE.pack(stream, first >> 64, first & SEQ_MAX)


def group_key(stream: int, group: int) -> bytes:
    return _GROUP.pack(stream, group)


def consumer_key(stream: int, group: int, consumer: int) -> bytes:
    return _CONSUMER_PLACE.pack(stream, group, consumer)


def entry_key(stream: int, group: int, id_: EntryID) -> bytes:
    return _GROUP_PLACE.pack(stream, group, id_ >> 64, id_ & SEQ_MAX)


def split_group_key(key: bytes) -> tuple[int, bytes]:
    """The group's number, and what follows it in the key."""
    return _NUMBER.unpack_from(key, 8)[0], key[16:]


# --- the store


def encode_state(state: State) -> bytes:
    numbers = *state.position, state.next_number, state.epoch
    return _STATE.pack(RECORD_VERSION, *numbers, state.clean)


def decode_state(data: bytes) -> State:
    _, seq, segment, offset, next_number, epoch, clean = _STATE.unpack(data)
    return State(Position(seq, segment, offset), next_number, epoch, clean)


# --- streams and strings


def encode_value(value: StreamSnapshot | String) -> bytes:
    kind = _IS_STRING if isinstance(value, String) else _IS_STREAM
    expire_ms = value.expire_ms
    has = expire_ms is not None
    key = value.key
    head = (
        _VALUE.pack(RECORD_VERSION, kind, value.db, has, expire_ms or 0, len(key)) + key
    )
    if isinstance(value, String):
        return head + value.data
    last, deleted = _id(value.last_id), _id(value.max_deleted_id)
    return head + _STREAM.pack(last, value.entries_added, deleted)


def decode_value(keyspace: Keyspace, key: bytes, data: bytes) -> Value:
    number = _NUMBER.unpack(key)[0]
    _, kind, db, has, expire_ms, length = _VALUE.unpack_from(data)
    at = _VALUE.size
    name = data[at : at + length]
    at += length
    value: Value
    if kind == _IS_STRING:
        value = String(number, db, name)
        value.data = data[at:]
    elif kind == _IS_STREAM:
        value = Stream(keyspace, number, db, name)
        last, value.entries_added, deleted = _STREAM.unpack_from(data, at)
        value.last_id, value.max_deleted_id = _number(last), _number(deleted)
    else:
        raise ValueError(kind)
    value.expire_ms = expire_ms if has else None
    return value


# --- nodes


def encode_node(node: NodeSnapshot) -> bytes:
    dead = node.dead.to_bytes((node.dead.bit_length() + 7) // 8, "little")
    fixed = _NODE.pack(RECORD_VERSION, _id(node.last), node.count, node.listpack_bytes)
    return fixed + dead


def decode_node(first: bytes, data: bytes) -> Node:
    node = Node(_number(first))
    _, last, count, node.listpack_bytes = _NODE.unpack_from(data)
    node.last = _number(last)
    node.count = node.live = count
    if len(data) > _NODE.size:
        node.dead = int.from_bytes(data[_NODE.size :], "little")
        node.live = count - node.dead.bit_count()
    node.ids = node.entries = None
    node.stored = True
    return node


def encode_payload(index: bytes, payload: bytes) -> bytes:
    return b"".join((bytes((RECORD_VERSION,)), index, payload))


def decode_payload(node: Node, data: memoryview) -> tuple[bytes, bytes]:
    """(payload, index) of a sound record."""
    split = 1 + node.count * INDEX_BYTES
    if len(data) < split + CHECK_BYTES or data[0] != RECORD_VERSION:
        raise ValueError(len(data))
    return bytes(data[split:-CHECK_BYTES]), bytes(data[1:split])


# --- groups


def encode_group(group: GroupSnapshot) -> bytes:
    read = group.entries_read
    fixed = _GROUP_RECORD.pack(
        RECORD_VERSION,
        _id(group.head),
        _id(group.cursor),
        0 if read is None else read + 1,
        group.passed,
        group.next_consumer,
        len(group.name),
        len(group.ahead),
    )
    return b"".join((fixed, group.name, *map(_id, group.ahead)))


def decode_group(stream: Stream, number: int, data: bytes) -> Group:
    fields = _GROUP_RECORD.unpack_from(data)
    _, head, cursor, read, passed, next_consumer, length, ahead = fields
    at = _GROUP_RECORD.size + length
    group = Group(stream, number, data[_GROUP_RECORD.size : at])
    group.head, group.cursor = _number(head), _number(cursor)
    group.entries_read = read - 1 if read else None
    group.passed, group.next_consumer = passed, next_consumer
    end = at + ahead * _ID_BYTES
    group.ahead = {_number(data[i : i + _ID_BYTES]) for i in range(at, end, _ID_BYTES)}
    group.changed = False
    return group


def encode_consumer(name: bytes, seen_ms: int, active_ms: int) -> bytes:
    return _CONSUMER.pack(RECORD_VERSION, seen_ms, active_ms) + name


def decode_consumer(number: bytes, data: bytes) -> Consumer:
    consumer = Consumer(_NUMBER.unpack(number)[0], data[_CONSUMER.size :])
    _, consumer.seen_ms, consumer.active_ms = _CONSUMER.unpack_from(data)
    return consumer


def encode_pending(record: PendingRecord) -> bytes:
    attempts, deliveries, first_ms = record.tally
    counts = within(attempts), within(deliveries)
    return _PENDING.pack(
        RECORD_VERSION, record.consumer, record.handed_ms, *counts, first_ms
    )


def decode_pending(id_: bytes, data: bytes) -> tuple[EntryID, PendingRecord]:
    _, consumer, handed_ms, *tally = _PENDING.unpack(data)
    return _number(id_), PendingRecord(consumer, handed_ms, Tally(*tally))


def encode_dead(letter: DeadLetter, *, listed: bool) -> bytes:
    head = bytes((RECORD_VERSION, _LISTED if listed else _REDRIVEN))
    return head + encode_letter(letter)


def decode_dead(data: bytes) -> tuple[DeadLetter, bool]:
    """The letter, and whether it is on the list."""
    return decode_letter(data, 2)[0], data[1] == _LISTED


def damaged(place: str, key: bytes) -> Corrupt:
    return Corrupt(f"{describe_damage(place, key)}: restore a backup")


def describe_damage(place: str, key: bytes) -> str:
    return f"{place}: the record under key {key.hex()} is damaged"


def _id(id_: EntryID) -> bytes:
    return id_.to_bytes(_ID_BYTES, "big")


def _number(id_: bytes) -> EntryID:
    return int.from_bytes(id_, "big")
