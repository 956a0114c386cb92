"""How each change is laid out in a journal frame.

A change is its kind (one byte) and fixed fields, then what varies in length.
Streams, strings, groups and consumers are written as numbers. Integers are
little-endian, ids 16 bytes big-endian. Any difference in what is written here
needs a new ``FRAME_VERSION`` (in frames.py).
"""

from __future__ import annotations

from struct import Struct

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
    Lost,
    Passed,
    Redriven,
    Renamed,
    StreamSet,
    StringSet,
    Trimmed,
)

ID_BYTES = 16
TARGET = Struct("<BQ")  # kind, number
CREATED = Struct("<BQ?IQ")  # is a stream, db, key length
RENAMED = Struct("<BQIQIQ")  # old db, old key length, db, key length
EXPIRY = Struct("<BQ?q")  # has an expiry, unix ms
STRING = Struct("<BQQ")
APPENDED = Struct("<BQ16sQ?Q")  # id, listpack bytes, opens, entry length
IDS = Struct("<BQI")  # how many ids
TRIMMED = Struct("<BQ16s")  # and of what was lost: the node's first id
STREAM_SET = Struct("<BQ16sQ16s")
GROUP_CREATED = Struct("<BQQ16sQQQ")  # stream, head, entries read, passed, name
GROUP_MOVED = Struct("<BQ16sQQ")  # head, entries read, passed
CONSUMER = Struct("<BQQqqQ")  # number, seen, active, name length
CONSUMER_GONE = Struct("<BQQ")
DELIVERED = Struct("<BQQ16sQQqI")  # consumer, head, entries read, passed, now, ids
CLAIMED = Struct("<BQQqI")  # consumer, handed, how many
TALLY = Struct("<16sQQq")  # id, attempts, deliveries, first ms
LETTER = Struct("<16sQqqQQQQ")  # id, attempts, first, dead, redriven, 3 lengths

# Kinds are never used again for anything else.
# fmt: off
KINDS: dict[type[Change], int] = {
    Created: 1, Dropped: 2, Renamed: 3, ExpirySet: 4, StringSet: 5, Appended: 6,
    Deleted: 7, Trimmed: 8, StreamSet: 9, GroupCreated: 10, GroupDestroyed: 11,
    GroupMoved: 12, ConsumerCreated: 13, ConsumerDeleted: 14, Delivered: 15,
    Claimed: 16, Forced: 17, Passed: 18, Finished: 19, Died: 20, Redriven: 21,
    Discarded: 22, Lost: 40,
}
# fmt: on
