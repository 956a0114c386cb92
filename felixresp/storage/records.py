"""The records of a checkpoint: what stands under each key, byte for byte.

Keys sort by number: a stream's records stand together, a group's within them.
Every value starts with the version of its format; docs/storage.md has the table.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from ..engine.changes import Tally
from ..engine.dead_letters import DeadLetter
from ..engine.group import Group
from ..engine.handouts import Attempt, Consumer
from ..engine.ids import SEQ_MAX, EntryID
from ..engine.keyspace import Keyspace
from ..engine.nodes import INDEX_BYTES, Node
from ..engine.snapshots import (
    CLAIMED,
    DELAYED,
    Claim,
    GroupSnapshot,
    NodeSnapshot,
    PendingRecord,
    StreamSnapshot,
)
from ..engine.stream import Stream
from ..engine.values import String, Value
from .base import Corrupt
from .decoder import decode_letter, decode_settings, read_texts
from .encoder import encode_letter, encode_settings, within_tally, within_time
from .frames import Position

RECORD_VERSION = 3
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
# head, cursor, read, passed, next consumer, paused, learned ms, name length, ahead,
# settings; then the name, ids, and settings
_GROUP_RECORD = Struct("<B16s16sQQQ?qIII")
_CONSUMER = Struct("<Bqq")  # seen ms, active ms; then the name
# state, until, attempts, deliveries, first ms; consumer, handed, began, deadline,
# nonce, user length; then the user and the story
_PENDING = Struct("<BBqQQqQqqqQI")
_STORY = Struct("<B")  # attempts
_ATTEMPT = Struct("<qqIII")  # began, ended, lengths of consumer, how and reason
_STORY_BYTES_MAX = 1024 * 1024  # consumer names can be long, LMDB's values not
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
        group.paused,
        within_time(group.learned_visibility_ms),
        len(group.name),
        len(group.ahead),
        len(group.own_settings),
    )
    settings = encode_settings(group.own_settings)
    return b"".join((fixed, group.name, *map(_id, group.ahead), settings))


def decode_group(stream: Stream, number: int, data: bytes) -> Group:
    fields = _GROUP_RECORD.unpack_from(data)
    _, head, cursor, read, passed, next_consumer, *rest = fields
    paused, learned_ms, length, ahead, settings = rest
    at = _GROUP_RECORD.size + length
    group = Group(stream, number, data[_GROUP_RECORD.size : at])
    group.head, group.cursor = _number(head), _number(cursor)
    group.entries_read = read - 1 if read else None
    group.passed, group.next_consumer = passed, next_consumer
    end = at + ahead * _ID_BYTES
    group.ahead = {_number(data[i : i + _ID_BYTES]) for i in range(at, end, _ID_BYTES)}
    group.configure(decode_settings(data, end, settings)[0])
    group.paused, group.learned_visibility_ms = paused, learned_ms
    group.changed = False
    return group


def encode_consumer(name: bytes, seen_ms: int, active_ms: int) -> bytes:
    return _CONSUMER.pack(RECORD_VERSION, seen_ms, active_ms) + name


def decode_consumer(number: bytes, data: bytes) -> Consumer:
    consumer = Consumer(_NUMBER.unpack(number)[0], data[_CONSUMER.size :])
    _, consumer.seen_ms, consumer.active_ms = _CONSUMER.unpack_from(data)
    return consumer


def encode_pending(record: PendingRecord) -> bytes:
    claim, state, until_ms, tally, story = record
    consumer, user, *times, nonce = claim
    try:
        head = RECORD_VERSION, state, until_ms, *tally
        fixed = _PENDING.pack(*head, consumer, *times, nonce, len(user))
    except struct.error:  # a client set something beyond 64 bits
        head = RECORD_VERSION, state, within_time(until_ms), *within_tally(tally)
        times = list(map(within_time, times))
        fixed = _PENDING.pack(*head, consumer, *times, nonce, len(user))
    return fixed + user + _encode_story(story)


def decode_pending(id_: bytes, data: bytes) -> tuple[EntryID, PendingRecord]:
    fields = _PENDING.unpack_from(data)
    _, state, until_ms, attempts, deliveries, first_ms, consumer, *times, user = fields
    if not CLAIMED <= state <= DELAYED:
        raise ValueError(state)
    at = _PENDING.size + user
    claim = Claim(consumer, data[_PENDING.size : at], *times)
    tally, story = Tally(attempts, deliveries, first_ms), _decode_story(data, at)
    return _number(id_), PendingRecord(claim, state, until_ms, tally, story)


def encode_dead(letter: DeadLetter, story: Sequence[Attempt], *, listed: bool) -> bytes:
    head = bytes((RECORD_VERSION, _LISTED if listed else _REDRIVEN))
    return head + encode_letter(letter) + _encode_story(story)


def decode_dead(data: bytes) -> tuple[DeadLetter, Sequence[Attempt], bool]:
    """The letter, its story, and whether it is on the list."""
    letter, at = decode_letter(data, 2)
    return letter, _decode_story(data, at), data[1] == _LISTED


def _encode_story(story: Sequence[Attempt]) -> bytes:
    """The newest attempts, as many as a record has room for."""
    if not story:
        return _STORY.pack(0)
    parts: list[bytes] = []
    room = _STORY_BYTES_MAX
    for attempt in reversed(story):
        texts = attempt.consumer, attempt.how, attempt.reason
        room -= sum(map(len, texts))
        if room < 0:
            break
        times = within_time(attempt.began_ms), within_time(attempt.ended_ms)
        parts.append(b"".join((_ATTEMPT.pack(*times, *map(len, texts)), *texts)))
    return _STORY.pack(len(parts)) + b"".join(reversed(parts))


def _decode_story(data: bytes, at: int) -> Sequence[Attempt]:
    (count,) = _STORY.unpack_from(data, at)
    if not count:
        return ()
    at += _STORY.size
    story = []
    for _ in range(count):
        began_ms, ended_ms, *lengths = _ATTEMPT.unpack_from(data, at)
        (consumer, *texts), at = read_texts(data, at + _ATTEMPT.size, lengths)
        story.append(Attempt(consumer, began_ms, ended_ms, *texts))
    return story


def damaged(place: str, key: bytes) -> Corrupt:
    return Corrupt(f"{describe_damage(place, key)}: restore a backup")


def describe_damage(place: str, key: bytes) -> str:
    return f"{place}: the record under key {key.hex()} is damaged"


def _id(id_: EntryID) -> bytes:
    return id_.to_bytes(_ID_BYTES, "big")


def _number(id_: bytes) -> EntryID:
    return int.from_bytes(id_, "big")
