"""Bytes to changes: journal frames, read in recovery.

Numbers become the live objects of the keyspace that is being recovered, so a
change can be read only after the one before it was applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..engine.changes import (
    Appended,
    Change,
    Claimed,
    Configured,
    ConsumerCreated,
    ConsumerDeleted,
    Created,
    Deleted,
    Delivered,
    Died,
    Discarded,
    Dropped,
    ExpirySet,
    Extended,
    Finished,
    Forced,
    GroupCreated,
    GroupDestroyed,
    GroupMoved,
    HandedBack,
    Lapsed,
    Lost,
    Passed,
    Redriven,
    Renamed,
    Sought,
    StreamSet,
    StringSet,
    Tally,
    Trimmed,
)
from ..engine.dead_letters import DeadLetter
from ..engine.group import Group
from ..engine.handouts import Consumer, Member
from ..engine.ids import EntryID
from ..engine.keyspace import Keyspace
from ..engine.stream import Stream
from ..engine.values import String, Value
from .layouts import (
    APPENDED,
    CLAIMED,
    CONFIGURED,
    CONSUMER,
    CONSUMER_GONE,
    CREATED,
    DELIVERED,
    DIED,
    EXPIRY,
    EXTENDED,
    GROUP_CREATED,
    GROUP_MOVED,
    HANDED_BACK,
    ID_BYTES,
    IDS,
    KINDS,
    LAPSED,
    LETTER,
    RENAMED,
    SETTING,
    SOUGHT,
    STREAM_SET,
    STRING,
    TALLY,
    TARGET,
    TRIMMED,
    UNTIL,
)


class Undecodable(Exception):
    """These bytes are no change, or speak of something that is not there."""


def decode_letter(data: bytes, at: int) -> tuple[DeadLetter, int]:
    """The letter that starts at ``at``, and where it ends."""
    id_, attempts, first_ms, dead_ms, redriven, *lengths = LETTER.unpack_from(data, at)
    (cause, reason, consumer), at = read_texts(data, at + LETTER.size, lengths)
    letter = DeadLetter(
        _number(id_), attempts, cause, reason, consumer, first_ms, dead_ms, redriven
    )
    return letter, at


def decode_settings(data: bytes, at: int, count: int) -> tuple[dict[str, str], int]:
    """The settings that start at ``at``, and where they end."""
    settings = {}
    for _ in range(count):
        lengths = SETTING.unpack_from(data, at)
        words, at = read_texts(data, at + SETTING.size, lengths)
        name, value = (word.decode(errors="surrogateescape") for word in words)
        settings[name] = value
    return settings, at


def read_texts(
    data: bytes, at: int, lengths: Iterable[int]
) -> tuple[Sequence[bytes], int]:
    """Texts of these lengths from ``at`` on, and where the last one ends."""
    texts = []
    for length in lengths:
        texts.append(data[at : at + length])
        at += length
    return texts, at


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

    def _member(self, group: int, consumer: int, user: bytes) -> Member:
        return self._consumers[group, consumer].member(user)

    def _stream(self, number: int) -> Stream:
        value = self._values[number]
        if not isinstance(value, Stream):
            raise TypeError(number)
        return value

    def _created(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, is_stream, db, length = CREATED.unpack_from(data, at)
        at += CREATED.size
        key = data[at : at + length]
        value = (
            Stream(self._keyspace, number, db, key)
            if is_stream
            else String(number, db, key)
        )
        self._values[number] = value
        return Created(value, db, key), at + length

    def _dropped(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number = TARGET.unpack_from(data, at)
        value = self._values.pop(number)
        if isinstance(value, Stream):
            for group in value.groups.values():
                self._groups.pop(group.number)
        return Dropped(value), at + TARGET.size

    def _renamed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, old_db, old_length, db, length = RENAMED.unpack_from(data, at)
        at += RENAMED.size
        middle, end = at + old_length, at + old_length + length
        old_key, key = data[at:middle], data[middle:end]
        return Renamed(self._values[number], old_db, old_key, db, key), end

    def _expiry_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, has, expire_ms = EXPIRY.unpack_from(data, at)
        value = self._values[number]
        return ExpirySet(value, expire_ms if has else None), at + EXPIRY.size

    def _string_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, length = STRING.unpack_from(data, at)
        value = self._values[number]
        if not isinstance(value, String):
            raise TypeError(number)
        at += STRING.size
        return StringSet(value, data[at : at + length]), at + length

    def _appended(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, id_, size, opens, length = APPENDED.unpack_from(data, at)
        at += APPENDED.size
        end = at + length
        entry = data[at:end]
        stream = self._stream(number)
        return Appended(stream, _number(id_), entry, size, opens), end

    def _deleted(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Deleted(self._stream(number), tuple(ids)), at

    def _trimmed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, before = TRIMMED.unpack_from(data, at)
        return Trimmed(self._stream(number), _number(before)), at + TRIMMED.size

    def _lost(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, first = TRIMMED.unpack_from(data, at)
        return Lost(self._stream(number), _number(first)), at + TRIMMED.size

    def _stream_set(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, last, added, deleted = STREAM_SET.unpack_from(data, at)
        stream = self._stream(number)
        change = StreamSet(stream, _number(last), added, _number(deleted))
        return change, at + STREAM_SET.size

    def _group_created(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = GROUP_CREATED.unpack_from(data, at)
        _, number, stream, head, read, passed, length = fields
        at += GROUP_CREATED.size
        group = Group(self._stream(stream), number, data[at : at + length])
        self._groups[number] = group
        change = GroupCreated(group, _number(head), _unknown(read), passed)
        return change, at + length

    def _group_destroyed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number = TARGET.unpack_from(data, at)
        return GroupDestroyed(self._groups.pop(number)), at + TARGET.size

    def _group_moved(self, data: bytes, at: int) -> tuple[Change, int]:
        kind, number, head, read, passed = GROUP_MOVED.unpack_from(data, at)
        fields = self._groups[number], _number(head), _unknown(read), passed
        change = GroupMoved(*fields) if kind == KINDS[GroupMoved] else Passed(*fields)
        return change, at + GROUP_MOVED.size

    def _consumer_created(self, data: bytes, at: int) -> tuple[Change, int]:
        _, group, number, seen_ms, active_ms, length = CONSUMER.unpack_from(data, at)
        at += CONSUMER.size
        consumer = Consumer(number, data[at : at + length])
        consumer.seen_ms, consumer.active_ms = seen_ms, active_ms
        self._consumers[group, number] = consumer
        return ConsumerCreated(self._groups[group], consumer), at + length

    def _consumer_deleted(self, data: bytes, at: int) -> tuple[Change, int]:
        _, group, number = CONSUMER_GONE.unpack_from(data, at)
        consumer = self._consumers.pop((group, number))
        return ConsumerDeleted(self._groups[group], consumer), at + CONSUMER_GONE.size

    def _delivered(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = DELIVERED.unpack_from(data, at)
        _, number, consumer, head, read, passed, *claim, user, count = fields
        ids, at = _id_list(data, at + DELIVERED.size, count)
        member = self._member(number, consumer, data[at : at + user])
        counts = _number(head), _unknown(read), passed
        change = Delivered(self._groups[number], member, ids, *counts, *claim)
        return change, at + user

    def _claimed(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = CLAIMED.unpack_from(data, at)
        _, number, consumer, handed_ms, began_ms, deadline_ms, nonce, *lengths = fields
        user, how, count = lengths
        tallies, at = _read_tallies(data, at + CLAIMED.size, count)
        (named, ended), at = read_texts(data, at, (user, how))
        group, member = self._groups[number], self._member(number, consumer, named)
        times = handed_ms, began_ms, deadline_ms
        return Claimed(group, member, tallies, *times, nonce, ended), at

    def _extended(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, handed_ms, deadline_ms, count = EXTENDED.unpack_from(data, at)
        ids, end = _id_list(data, at + EXTENDED.size, count)
        return Extended(self._groups[number], tuple(ids), handed_ms, deadline_ms), end

    def _lapsed(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, now_ms, length, count = LAPSED.unpack_from(data, at)
        ids, at = _id_list(data, at + LAPSED.size, count)
        how = data[at : at + length]
        return Lapsed(self._groups[number], tuple(ids), now_ms, how), at + length

    def _handed_back(self, data: bytes, at: int) -> tuple[Change, int]:
        fields = HANDED_BACK.unpack_from(data, at)
        _, number, now_ms, how, reason, count, counted = fields
        at += HANDED_BACK.size
        end = at + count * UNTIL.size
        found = UNTIL.iter_unpack(data[at:end])
        untils = {_number(id_): until_ms for id_, until_ms in found}
        tallies, at = _read_tallies(data, end, counted)
        texts, at = read_texts(data, at, (how, reason))
        group = self._groups[number]
        return HandedBack(group, untils, tallies, now_ms, *texts), at

    def _sought(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, head, read, passed, now_ms = SOUGHT.unpack_from(data, at)
        counts = _number(head), _unknown(read), passed
        return Sought(self._groups[number], *counts, now_ms), at + SOUGHT.size

    def _configured(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, paused, *times, count = CONFIGURED.unpack_from(data, at)
        own, at = decode_settings(data, at + CONFIGURED.size, count)
        return Configured(self._groups[number], own, paused, *times), at

    def _forced(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Forced(self._groups[number], tuple(ids)), at

    def _finished(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Finished(self._groups[number], ids), at

    def _died(self, data: bytes, at: int) -> tuple[Change, int]:
        _, number, length, count = DIED.unpack_from(data, at)
        at += DIED.size
        letters = []
        for _ in range(count):
            letter, at = decode_letter(data, at)
            letters.append(letter)
        how = data[at : at + length]
        return Died(self._groups[number], tuple(letters), how), at + length

    def _redriven(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Redriven(self._groups[number], tuple(ids)), at

    def _discarded(self, data: bytes, at: int) -> tuple[Change, int]:
        number, ids, at = _read_ids(data, at)
        return Discarded(self._groups[number], tuple(ids)), at


def _read_ids(data: bytes, at: int) -> tuple[int, list[EntryID], int]:
    _, number, count = IDS.unpack_from(data, at)
    ids, end = _id_list(data, at + IDS.size, count)
    return number, ids, end


def _id_list(data: bytes, at: int, count: int) -> tuple[list[EntryID], int]:
    end = at + count * ID_BYTES
    return [_number(data[i : i + ID_BYTES]) for i in range(at, end, ID_BYTES)], end


def _read_tallies(data: bytes, at: int, count: int) -> tuple[dict[EntryID, Tally], int]:
    end = at + count * TALLY.size
    found = TALLY.iter_unpack(data[at:end])
    return {_number(id_): Tally(*tally) for id_, *tally in found}, end


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
    KINDS[Lost]: Decoder._lost, KINDS[StreamSet]: Decoder._stream_set,
    KINDS[GroupCreated]: Decoder._group_created,
    KINDS[GroupDestroyed]: Decoder._group_destroyed,
    KINDS[GroupMoved]: Decoder._group_moved, KINDS[Passed]: Decoder._group_moved,
    KINDS[ConsumerCreated]: Decoder._consumer_created,
    KINDS[ConsumerDeleted]: Decoder._consumer_deleted,
    KINDS[Delivered]: Decoder._delivered, KINDS[Claimed]: Decoder._claimed,
    KINDS[Extended]: Decoder._extended, KINDS[Lapsed]: Decoder._lapsed,
    KINDS[HandedBack]: Decoder._handed_back, KINDS[Sought]: Decoder._sought,
    KINDS[Configured]: Decoder._configured,
    KINDS[Forced]: Decoder._forced, KINDS[Finished]: Decoder._finished,
    KINDS[Died]: Decoder._died, KINDS[Redriven]: Decoder._redriven,
    KINDS[Discarded]: Decoder._discarded,
}
# fmt: on
