"""Changes to bytes and back: what a journal frame holds.

A change is its kind (one byte) and fixed fields, then what varies in length.
Streams, strings, groups and consumers are written as numbers; the decoder finds
them in the keyspace being recovered. Integers are little-endian, ids 16 bytes
big-endian. Any difference in what is written here needs a new ``VERSION``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any

from ..engine.changes import (
    Appended,
    Change,
    Claimed,
    ConsumerCreated,
    ConsumerDeleted,
    Created,
    Deleted,
    Delivered,
    Died,
    Discarded,
    Dropped,
    ExpirySet,
    Finished,
    Forced,
    GroupCreated,
    GroupDestroyed,
    GroupMoved,
    Lapsed,
    Passed,
    Ready,
    Redriven,
    Renamed,
    StreamSet,
    StringSet,
    Tally,
    Trimmed,
)
from ..engine.dead_letters import DeadLetter
from ..engine.group import Group
from ..engine.handouts import Consumer
from ..engine.ids import EntryID
from ..engine.keyspace import Keyspace, String, Value
from ..engine.stream import Stream

VERSION = 1

_COUNT_MAX = 2**64 - 1
_ID_BYTES = 16
_LENGTH = Struct("<Q")
_TARGET = Struct("<BQ")  # kind, number
_CREATED = Struct("<BQ?IQ")  # is a stream, db, key length
_RENAMED = Struct("<BQIQIQ")  # old db, old key length, db, key length
_EXPIRY = Struct("<BQ?q")  # has an expiry, unix ms
_STRING = Struct("<BQQ")
_APPENDED = Struct("<BQ16sQ?Q")  # id, listpack bytes, opens, entry length
_IDS = Struct("<BQI")  # how many ids
_TRIMMED = Struct("<BQ16s")
_STREAM_SET = Struct("<BQ16sQ16s")
_GROUP_CREATED = Struct("<BQQ16sQQQ")  # stream, head, entries read, passed, name
_GROUP_MOVED = Struct("<BQ16sQQ")  # head, entries read, passed
_CONSUMER = Struct("<BQQqqQ")  # number, seen, active, name length
_CONSUMER_GONE = Struct("<BQQ")
_DELIVERED = Struct("<BQQ16sQQqI")  # consumer, head, entries read, passed, now, ids
_CLAIMED = Struct("<BQQqI")  # consumer, handed, how many
_TALLY = Struct("<16sQQq")  # id, attempts, deliveries, first ms
_LETTER = Struct("<16sQqqQQQQ")  # id, attempts, first, dead, redriven, 3 lengths

# Kinds are never used again for anything else.
# fmt: off
KINDS: dict[type[Change], int] = {
    Created: 1, Dropped: 2, Renamed: 3, ExpirySet: 4, StringSet: 5, Appended: 6,
    Deleted: 7, Trimmed: 8, StreamSet: 9, GroupCreated: 10, GroupDestroyed: 11,
    GroupMoved: 12, ConsumerCreated: 13, ConsumerDeleted: 14, Delivered: 15,
    Claimed: 16, Forced: 17, Passed: 18, Finished: 19, Died: 20, Redriven: 21,
    Discarded: 22,
}
# fmt: on


class Undecodable(Exception):
    """These bytes are no change, or speak of something that is not there."""


def encode_changes(changes: Iterable[Change]) -> bytes:
    """The changes back to back; those that are not durable are left out."""
    return b"".join([_ENCODE[type(change)](change) for change in changes])


# --- encoding


def _created(c: Created) -> bytes:
    is_stream = isinstance(c.target, Stream)
    return _CREATED.pack(1, c.target.number, is_stream, c.db, len(c.key)) + c.key


def _renamed(c: Renamed) -> bytes:
    lengths = c.old_db, len(c.old_key), c.db, len(c.key)
    return _RENAMED.pack(3, c.target.number, *lengths) + c.old_key + c.key


def _expiry_set(c: ExpirySet) -> bytes:
    has = c.expire_ms is not None
    return _EXPIRY.pack(4, c.target.number, has, c.expire_ms or 0)


def _string_set(c: StringSet) -> bytes:
    return _STRING.pack(5, c.target.number, len(c.data)) + c.data


def _appended(c: Appended) -> bytes:
    entry = c.entry
    id_ = c.id.to_bytes(16, "big")
    return _APPENDED.pack(6, c.target.number, id_, c.size, c.opens, len(entry)) + entry


def _trimmed(c: Trimmed) -> bytes:
    return _TRIMMED.pack(8, c.target.number, _id(c.before))


def _stream_set(c: StreamSet) -> bytes:
    last, deleted = _id(c.last_id), _id(c.max_deleted_id)
    return _STREAM_SET.pack(9, c.target.number, last, c.entries_added, deleted)


def _group_created(c: GroupCreated) -> bytes:
    group = c.target
    counts = _known(c.entries_read), c.passed, len(group.name)
    numbers = group.number, group.stream.number
    return _GROUP_CREATED.pack(10, *numbers, _id(c.head), *counts) + group.name


def _group_moved(c: GroupMoved | Passed) -> bytes:
    read = _known(c.entries_read)
    return _GROUP_MOVED.pack(
        KINDS[type(c)], c.target.number, _id(c.head), read, c.passed
    )


def _consumer_created(c: ConsumerCreated) -> bytes:
    consumer = c.consumer
    times = consumer.seen_ms, consumer.active_ms
    name = consumer.name
    return (
        _CONSUMER.pack(13, c.target.number, consumer.number, *times, len(name)) + name
    )


def _consumer_deleted(c: ConsumerDeleted) -> bytes:
    return _CONSUMER_GONE.pack(14, c.target.number, c.consumer.number)


def _delivered(c: Delivered) -> bytes:
    ids, read = c.ids, c.entries_read
    head = _DELIVERED.pack(
        15,
        c.target.number,
        c.consumer.number,
        c.head.to_bytes(16, "big"),
        0 if read is None else read + 1,
        c.passed,
        c.now_ms,
        len(ids),
    )
    return head + b"".join([id_.to_bytes(16, "big") for id_ in ids])


def _claimed(c: Claimed) -> bytes:
    parts = [
        _CLAIMED.pack(
            16, c.target.number, c.consumer.number, c.handed_ms, len(c.tallies)
        )
    ]
    for id_, tally in c.tallies.items():
        counts = min(tally.attempts, _COUNT_MAX), min(tally.deliveries, _COUNT_MAX)
        parts.append(_TALLY.pack(_id(id_), *counts, tally.first_ms))
    return b"".join(parts)


def _finished(c: Finished) -> bytes:
    ids = c.ids
    head = _IDS.pack(19, c.target.number, len(ids))
    if len(ids) == 1:
        return head + ids[0].to_bytes(16, "big")
    return head + b"".join([id_.to_bytes(16, "big") for id_ in ids])


def _with_ids(c: Deleted | Forced | Redriven | Discarded) -> bytes:
    head = _IDS.pack(KINDS[type(c)], c.target.number, len(c.ids))
    return head + b"".join(map(_id, c.ids))


def _died(c: Died) -> bytes:
    head = _IDS.pack(20, c.target.number, len(c.letters))
    return head + b"".join(map(encode_letter, c.letters))


def _target_only(c: Dropped | GroupDestroyed) -> bytes:
    return _TARGET.pack(KINDS[type(c)], c.target.number)


def _volatile(_: Change) -> bytes:
    return b""


def _id(id_: EntryID) -> bytes:
    return id_.to_bytes(_ID_BYTES, "big")


def _known(count: int | None) -> int:
    return 0 if count is None else count + 1


def encode_letter(letter: DeadLetter) -> bytes:
    texts = letter.cause, letter.reason, letter.consumer
    fixed = _LETTER.pack(
        _id(letter.id),
        min(letter.attempts, _COUNT_MAX),
        letter.first_delivered_ms,
        letter.dead_ms,
        letter.redriven,
        *map(len, texts),
    )
    return fixed + b"".join(texts)


def decode_letter(data: bytes, at: int) -> tuple[DeadLetter, int]:
    """The letter that starts at ``at``, and where it ends."""
    id_, attempts, first_ms, dead_ms, redriven, *lengths = _LETTER.unpack_from(data, at)
    at += _LETTER.size
    texts = []
    for length in lengths:
        texts.append(data[at : at + length])
        at += length
    cause, reason, consumer = texts
    letter = DeadLetter(
        _number(id_), attempts, cause, reason, consumer, first_ms, dead_ms, redriven
    )
    return letter, at


# fmt: off
_ENCODE: dict[type[Change], Callable[[Any], bytes]] = {
    Created: _created, Dropped: _target_only, Renamed: _renamed,
    ExpirySet: _expiry_set, StringSet: _string_set, Appended: _appended,
    Deleted: _with_ids, Trimmed: _trimmed, StreamSet: _stream_set,
    GroupCreated: _group_created, GroupDestroyed: _target_only,
    GroupMoved: _group_moved, ConsumerCreated: _consumer_created,
    ConsumerDeleted: _consumer_deleted, Delivered: _delivered, Claimed: _claimed,
    Forced: _with_ids, Passed: _group_moved, Finished: _finished, Died: _died,
    Redriven: _with_ids, Discarded: _with_ids,
    Lapsed: _volatile, Ready: _volatile,
}
# fmt: on


# --- decoding


class Decoder:
    """Turns bytes into changes of one keyspace's live objects.

    Decode a change only after the one before it was applied.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._values: dict[int, Value] = {}
        self._groups: dict[int, Group] = {}
        self._consumers: dict[tuple[int, int], Consumer] = {}
        for database in keyspace.databases:
            for value in database.values():
                self._learn(value)

    def changes(self, data: bytes) -> Iterator[Change]:
        """Raises Undecodable."""
        at, end = 0, len(data)
        decode = _DECODE
        while at < end:
            try:
                change, at = decode[data[at]](self, data, at)
            except Exception as exc:
                msg = f"byte {at} of the batch: {exc!r}"
                raise Undecodable(msg) from exc
            if at > end:
                msg = "a change goes on past the end of the batch"
                raise Undecodable(msg)
            yield change

    def _learn(self, value: Value) -> None:
        self._values[value.number] = value
        if isinstance(value, Stream):
            for group in value.groups.values():
                self._groups[group.number] = group
                for consumer in group.consumers.values():
                    self._consumers[group.number, consumer.number] = consumer

    def _stream(self, number: int) -> Stream:
        value = self._values[number]
        if not isinstance(value, Stream):
            raise TypeError(number)
        return value

    def _created(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, is_stream, db, length = _CREATED.unpack_from(data, at)
        at += _CREATED.size
        key = data[at : at + length]
        value = (
            Stream(self._keyspace, number, db, key)
            if is_stream
            else String(number, db, key)
        )
        self._values[number] = value
        return Created(value, db, key), at + length

    def _dropped(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number = _TARGET.unpack_from(data, at)
        value = self._values.pop(number)
        if isinstance(value, Stream):
            for group in value.groups.values():
                self._groups.pop(group.number)
        return Dropped(value), at + _TARGET.size

    def _renamed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, old_db, old_length, db, length = _RENAMED.unpack_from(data, at)
        at += _RENAMED.size
        middle, end = at + old_length, at + old_length + length
        old_key, key = data[at:middle], data[middle:end]
        return Renamed(self._values[number], old_db, old_key, db, key), end

    def _expiry_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, has, expire_ms = _EXPIRY.unpack_from(data, at)
        value = self._values[number]
        return ExpirySet(value, expire_ms if has else None), at + _EXPIRY.size

    def _string_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, length = _STRING.unpack_from(data, at)
        value = self._values[number]
        if not isinstance(value, String):
            raise TypeError(number)
        at += _STRING.size
        return StringSet(value, data[at : at + length]), at + length

    def _appended(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, id_, size, opens, length = _APPENDED.unpack_from(data, at)
        at += _APPENDED.size
        end = at + length
        entry = data[at:end]
        stream = self._stream(number)
        return Appended(stream, _number(id_), entry, size, opens), end

    def _deleted(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Deleted(self._stream(number), tuple(ids)), at

    def _trimmed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, before = _TRIMMED.unpack_from(data, at)
        return Trimmed(self._stream(number), _number(before)), at + _TRIMMED.size

    def _stream_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, last, added, deleted = _STREAM_SET.unpack_from(data, at)
        stream = self._stream(number)
        change = StreamSet(stream, _number(last), added, _number(deleted))
        return change, at + _STREAM_SET.size

    def _group_created(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = _GROUP_CREATED.unpack_from(data, at)
        _, number, stream, head, read, passed, length = fields
        at += _GROUP_CREATED.size
        group = Group(self._stream(stream), number, data[at : at + length])
        self._groups[number] = group
        change = GroupCreated(group, _number(head), _unknown(read), passed)
        return change, at + length

    def _group_destroyed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number = _TARGET.unpack_from(data, at)
        return GroupDestroyed(self._groups.pop(number)), at + _TARGET.size

    def _group_moved(self, data: bytes, at: int) -> tuple[Change, int]:
        kind, number, head, read, passed = _GROUP_MOVED.unpack_from(data, at)
        fields = self._groups[number], _number(head), _unknown(read), passed
        change = GroupMoved(*fields) if kind == KINDS[GroupMoved] else Passed(*fields)
        return change, at + _GROUP_MOVED.size

    def _consumer_created(self, data: bytes, at: int) -> tuple[Change, int]:
        _, group, number, seen_ms, active_ms, length = _CONSUMER.unpack_from(data, at)
        at += _CONSUMER.size
        consumer = Consumer(number, data[at : at + length])
        consumer.seen_ms, consumer.active_ms = seen_ms, active_ms
        self._consumers[group, number] = consumer
        return ConsumerCreated(self._groups[group], consumer), at + length

    def _consumer_deleted(self, data: bytes, at: int) -> tuple[Change, int]:
        _, group, number = _CONSUMER_GONE.unpack_from(data, at)
        consumer = self._consumers.pop((group, number))
        return ConsumerDeleted(self._groups[group], consumer), at + _CONSUMER_GONE.size

    def _delivered(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = _DELIVERED.unpack_from(data, at)
        _, number, consumer, head, read, passed, now_ms, count = fields
        ids, end = _id_list(data, at + _DELIVERED.size, count)
        change = Delivered(
            self._groups[number],
            self._consumers[number, consumer],
            ids,
            _number(head),
            _unknown(read),
            passed,
            now_ms,
        )
        return change, end

    def _claimed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, consumer, handed_ms, count = _CLAIMED.unpack_from(data, at)
        at += _CLAIMED.size
        end = at + count * _TALLY.size
        tallies = {
            _number(id_): Tally(*tally)
            for id_, *tally in _TALLY.iter_unpack(data[at:end])
        }
        holder = self._consumers[number, consumer]
        return Claimed(self._groups[number], holder, tallies, handed_ms), end

    def _forced(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Forced(self._groups[number], tuple(ids)), at

    def _finished(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Finished(self._groups[number], ids), at

    def _died(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, count = _IDS.unpack_from(data, at)
        at += _IDS.size
        letters = []
        for _ in range(count):
            letter, at = decode_letter(data, at)
            letters.append(letter)
        return Died(self._groups[number], tuple(letters)), at

    def _redriven(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Redriven(self._groups[number], tuple(ids)), at

    def _discarded(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Discarded(self._groups[number], tuple(ids)), at


def _read_ids(data: bytes, at: int) -> tuple[int, list[EntryID], int]:
    _, number, count = _IDS.unpack_from(data, at)
    ids, end = _id_list(data, at + _IDS.size, count)
    return number, ids, end


def _id_list(data: bytes, at: int, count: int) -> tuple[list[EntryID], int]:
    end = at + count * _ID_BYTES
    return [_number(data[i : i + _ID_BYTES]) for i in range(at, end, _ID_BYTES)], end


def _number(id_: bytes) -> EntryID:
    return int.from_bytes(id_, "big")


def _unknown(count: int) -> int | None:
    return count - 1 if count else None


# fmt: off
_DECODE: dict[int, Callable[[Decoder, bytes, int], tuple[Change, int]]] = {
    KINDS[Created]: Decoder._created, KINDS[Dropped]: Decoder._dropped,
    KINDS[Renamed]: Decoder._renamed, KINDS[ExpirySet]: Decoder._expiry_set,
    KINDS[StringSet]: Decoder._string_set, KINDS[Appended]: Decoder._appended,
    KINDS[Deleted]: Decoder._deleted, KINDS[Trimmed]: Decoder._trimmed,
    KINDS[StreamSet]: Decoder._stream_set,
    KINDS[GroupCreated]: Decoder._group_created,
    KINDS[GroupDestroyed]: Decoder._group_destroyed,
    KINDS[GroupMoved]: Decoder._group_moved, KINDS[Passed]: Decoder._group_moved,
    KINDS[ConsumerCreated]: Decoder._consumer_created,
    KINDS[ConsumerDeleted]: Decoder._consumer_deleted,
    KINDS[Delivered]: Decoder._delivered, KINDS[Claimed]: Decoder._claimed,
    KINDS[Forced]: Decoder._forced, KINDS[Finished]: Decoder._finished,
    KINDS[Died]: Decoder._died, KINDS[Redriven]: Decoder._redriven,
    KINDS[Discarded]: Decoder._discarded,
}
# fmt: on
