"""Changes to bytes: what a journal frame holds. layouts.py has the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    Lost,
    Passed,
    Ready,
    Redriven,
    Renamed,
    StreamSet,
    StringSet,
    Trimmed,
)
from ..engine.dead_letters import DeadLetter
from ..engine.ids import EntryID
from ..engine.stream import Stream
from .layouts import (
    APPENDED,
    CLAIMED,
    CONSUMER,
    CONSUMER_GONE,
    CREATED,
    DELIVERED,
    EXPIRY,
    GROUP_CREATED,
    GROUP_MOVED,
    ID_BYTES,
    IDS,
    KINDS,
    LETTER,
    RENAMED,
    STREAM_SET,
    STRING,
    TALLY,
    TARGET,
    TRIMMED,
)

_COUNT_MAX = 2**64 - 1


def encode_changes(changes: Iterable[Change]) -> bytes:
    """The changes back to back; those that are not durable are left out."""
    return b"".join([_ENCODE[type(change)](change) for change in changes])


def _created(c: Created) -> bytes:
    is_stream = isinstance(c.target, Stream)
    return CREATED.pack(1, c.target.number, is_stream, c.db, len(c.key)) + c.key


def _renamed(c: Renamed) -> bytes:
    lengths = c.old_db, len(c.old_key), c.db, len(c.key)
    return RENAMED.pack(3, c.target.number, *lengths) + c.old_key + c.key


def _expiry_set(c: ExpirySet) -> bytes:
    has = c.expire_ms is not None
    return EXPIRY.pack(4, c.target.number, has, c.expire_ms or 0)


def _string_set(c: StringSet) -> bytes:
    return STRING.pack(5, c.target.number, len(c.data)) + c.data


def _appended(c: Appended) -> bytes:
    entry = c.entry
    id_ = c.id.to_bytes(16, "big")
    return APPENDED.pack(6, c.target.number, id_, c.size, c.opens, len(entry)) + entry


def _trimmed(c: Trimmed) -> bytes:
    return TRIMMED.pack(8, c.target.number, _id(c.before))


def _lost(c: Lost) -> bytes:
    return TRIMMED.pack(KINDS[Lost], c.target.number, _id(c.first))


def _stream_set(c: StreamSet) -> bytes:
    last, deleted = _id(c.last_id), _id(c.max_deleted_id)
    return STREAM_SET.pack(9, c.target.number, last, c.entries_added, deleted)


def _group_created(c: GroupCreated) -> bytes:
    group = c.target
    counts = _known(c.entries_read), c.passed, len(group.name)
    numbers = group.number, group.stream.number
    return GROUP_CREATED.pack(10, *numbers, _id(c.head), *counts) + group.name


def _group_moved(c: GroupMoved | Passed) -> bytes:
    read = _known(c.entries_read)
    return GROUP_MOVED.pack(
        KINDS[type(c)], c.target.number, _id(c.head), read, c.passed
    )


def _consumer_created(c: ConsumerCreated) -> bytes:
    consumer = c.consumer
    times = consumer.seen_ms, consumer.active_ms
    name = consumer.name
    return CONSUMER.pack(13, c.target.number, consumer.number, *times, len(name)) + name


def _consumer_deleted(c: ConsumerDeleted) -> bytes:
    return CONSUMER_GONE.pack(14, c.target.number, c.consumer.number)


def _delivered(c: Delivered) -> bytes:
    ids, read = c.ids, c.entries_read
    head = DELIVERED.pack(
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
        CLAIMED.pack(
            16, c.target.number, c.consumer.number, c.handed_ms, len(c.tallies)
        )
    ]
    for id_, tally in c.tallies.items():
        counts = within(tally.attempts), within(tally.deliveries)
        parts.append(TALLY.pack(_id(id_), *counts, tally.first_ms))
    return b"".join(parts)


def _finished(c: Finished) -> bytes:
    ids = c.ids
    head = IDS.pack(19, c.target.number, len(ids))
    if len(ids) == 1:
        return head + ids[0].to_bytes(16, "big")
    return head + b"".join([id_.to_bytes(16, "big") for id_ in ids])


def _with_ids(c: Deleted | Forced | Redriven | Discarded) -> bytes:
    head = IDS.pack(KINDS[type(c)], c.target.number, len(c.ids))
    return head + b"".join(map(_id, c.ids))


def _died(c: Died) -> bytes:
    head = IDS.pack(20, c.target.number, len(c.letters))
    return head + b"".join(map(encode_letter, c.letters))


def _target_only(c: Dropped | GroupDestroyed) -> bytes:
    return TARGET.pack(KINDS[type(c)], c.target.number)


def _volatile(_: Change) -> bytes:
    return b""


def _id(id_: EntryID) -> bytes:
    return id_.to_bytes(ID_BYTES, "big")


def _known(count: int | None) -> int:
    return 0 if count is None else count + 1


def within(count: int) -> int:
    """A client may set an entry's counts to any integer."""
    return min(max(count, 0), _COUNT_MAX)


def encode_letter(letter: DeadLetter) -> bytes:
    texts = letter.cause, letter.reason, letter.consumer
    fixed = LETTER.pack(
        _id(letter.id),
        within(letter.attempts),
        letter.first_delivered_ms,
        letter.dead_ms,
        letter.redriven,
        *map(len, texts),
    )
    return fixed + b"".join(texts)


# fmt: off
_ENCODE: dict[type[Change], Callable[[Any], bytes]] = {
    Created: _created, Dropped: _target_only, Renamed: _renamed,
    ExpirySet: _expiry_set, StringSet: _string_set, Appended: _appended,
    Deleted: _with_ids, Trimmed: _trimmed, Lost: _lost, StreamSet: _stream_set,
    GroupCreated: _group_created, GroupDestroyed: _target_only,
    GroupMoved: _group_moved, ConsumerCreated: _consumer_created,
    ConsumerDeleted: _consumer_deleted, Delivered: _delivered, Claimed: _claimed,
    Forced: _with_ids, Passed: _group_moved, Finished: _finished, Died: _died,
    Redriven: _with_ids, Discarded: _with_ids,
    Lapsed: _volatile, Ready: _volatile,
}
# fmt: on
