"""Changes to bytes: what a journal frame holds. layouts.py has the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any, Literal

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
    Due,
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
    Ready,
    Redriven,
    Renamed,
    Sought,
    StreamSet,
    StringSet,
    Tally,
    Trimmed,
)
from ..engine.dead_letters import DeadLetter
from ..engine.ids import EntryID
from ..engine.stream import Stream
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

_WIDTH = repeat(ID_BYTES)  # of ids, for int.to_bytes
_ORDER: repeat[Literal["big"]] = repeat("big")
_COUNT_MAX = 2**64 - 1
_TIME_MIN, _TIME_MAX = -(2**63), 2**63 - 1


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
    return EXPIRY.pack(4, c.target.number, has, within_time(c.expire_ms or 0))


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
    ids, read, member = c.ids, c.entries_read, c.member
    user = member.user
    head = DELIVERED.pack(
        15,
        c.target.number,
        member.consumer.number,
        c.head.to_bytes(16, "big"),
        0 if read is None else read + 1,
        c.passed,
        c.now_ms,
        c.deadline_ms,
        c.nonce,
        len(user),
        len(ids),
    )
    return head + b"".join(map(int.to_bytes, ids, _WIDTH, _ORDER)) + user


def _claimed(c: Claimed) -> bytes:
    user = c.member.user
    head = CLAIMED.pack(
        16,
        c.target.number,
        c.member.consumer.number,
        within_time(c.handed_ms),
        within_time(c.began_ms),
        within_time(c.deadline_ms),
        c.nonce,
        len(user),
        len(c.how),
        len(c.tallies),
    )
    return b"".join((head, *_tallies(c.tallies), user, c.how))


def _extended(c: Extended) -> bytes:
    times = within_time(c.handed_ms), within_time(c.deadline_ms)
    head = EXTENDED.pack(24, c.target.number, *times, len(c.ids))
    return head + b"".join(map(_id, c.ids))


def _lapsed(c: Lapsed) -> bytes:
    ids = c.ids
    head = LAPSED.pack(23, c.target.number, c.now_ms, len(c.how), len(ids))
    return b"".join((head, *map(_id, ids), c.how))


def _handed_back(c: HandedBack) -> bytes:
    lengths = len(c.how), len(c.reason), len(c.untils), len(c.tallies)
    head = HANDED_BACK.pack(25, c.target.number, c.now_ms, *lengths)
    untils = [UNTIL.pack(_id(id_), within_time(at)) for id_, at in c.untils.items()]
    return b"".join((head, *untils, *_tallies(c.tallies), c.how, c.reason))


def _sought(c: Sought) -> bytes:
    read = _known(c.entries_read)
    return SOUGHT.pack(26, c.target.number, _id(c.head), read, c.passed, c.now_ms)


def _configured(c: Configured) -> bytes:
    times = within_time(c.learned_visibility_ms), within_time(c.deadline_ms)
    head = CONFIGURED.pack(27, c.target.number, c.paused, *times, len(c.own))
    return head + encode_settings(c.own)


def _finished(c: Finished) -> bytes:
    ids = c.ids
    head = IDS.pack(19, c.target.number, len(ids))
    if len(ids) == 1:
        return head + ids[0].to_bytes(16, "big")
    return head + b"".join(map(int.to_bytes, ids, _WIDTH, _ORDER))


def _with_ids(c: Deleted | Forced | Redriven | Discarded) -> bytes:
    head = IDS.pack(KINDS[type(c)], c.target.number, len(c.ids))
    return head + b"".join(map(_id, c.ids))


def _died(c: Died) -> bytes:
    head = DIED.pack(20, c.target.number, len(c.how), len(c.letters))
    return b"".join((head, *map(encode_letter, c.letters), c.how))


def _target_only(c: Dropped | GroupDestroyed) -> bytes:
    return TARGET.pack(KINDS[type(c)], c.target.number)


def _volatile(_: Change) -> bytes:
    return b""


def _id(id_: EntryID) -> bytes:
    return id_.to_bytes(ID_BYTES, "big")


def _known(count: int | None) -> int:
    return 0 if count is None else count + 1


def _tallies(tallies: Mapping[EntryID, Tally]) -> list[bytes]:
    return [TALLY.pack(_id(id_), *within_tally(t)) for id_, t in tallies.items()]


def within(count: int) -> int:
    """A client may set an entry's counts to any integer."""
    return min(max(count, 0), _COUNT_MAX)


def within_time(unix_ms: int) -> int:
    """A client may set an idle time or a delay to any integer."""
    return min(max(unix_ms, _TIME_MIN), _TIME_MAX)


def within_tally(tally: Tally) -> tuple[int, int, int]:
    attempts, deliveries, first_ms = tally
    return within(attempts), within(deliveries), within_time(first_ms)


def encode_settings(settings: Mapping[str, str]) -> bytes:
    parts: list[bytes] = []
    for words in settings.items():
        name, value = (word.encode(errors="surrogateescape") for word in words)
        parts += (SETTING.pack(len(name), len(value)), name, value)
    return b"".join(parts)


def encode_letter(letter: DeadLetter) -> bytes:
    texts = letter.cause, letter.reason, letter.consumer
    fixed = LETTER.pack(
        _id(letter.id),
        within(letter.attempts),
        within_time(letter.first_delivered_ms),
        within_time(letter.dead_ms),
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
    Extended: _extended, Forced: _with_ids, Passed: _group_moved,
    Finished: _finished, Died: _died, Redriven: _with_ids, Discarded: _with_ids,
    Lapsed: _lapsed, HandedBack: _handed_back, Sought: _sought,
    Configured: _configured, Due: _volatile, Ready: _volatile,
}
# fmt: on
