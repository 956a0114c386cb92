"""How each change is laid out in a journal frame.

A change is its kind (one byte) and fixed fields, then what varies in length.
Streams, strings, groups and consumers are written as numbers. Integers are
little-endian, ids 16 bytes big-endian, texts last and in the order of their
lengths. Any difference in what is written here needs a new ``FRAME_VERSION`` (in
frames.py).
"""

from __future__ import annotations

from struct import Struct

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
# consumer, head, entries read, passed, now, deadline, nonce, user length, ids
DELIVERED = Struct("<BQQ16sQQqqQII")
# consumer, handed, began, deadline, nonce, user and how length, tallies
CLAIMED = Struct("<BQQqqqQIII")
TALLY = Struct("<16sQQq")  # id, attempts, deliveries, first ms
EXTENDED = Struct("<BQqqI")  # handed, deadline, ids
LAPSED = Struct("<BQqII")  # now, how length, ids
# now, how and reason length, untils, tallies
HANDED_BACK = Struct("<BQqIIII")
UNTIL = Struct("<16sq")  # id, unix ms
DIED = Struct("<BQII")  # how length, letters
LETTER = Struct("<16sQqqQQQQ")  # id, attempts, first, dead, redriven, 3 lengths
SOUGHT = Struct("<BQ16sQQq")  # head, entries read, passed, now
CONFIGURED = Struct("<BQ?qqI")  # paused, learned ms, deadline, settings
SETTING = Struct("<II")  # name length, value length

# Kinds are never used again for anything else.
# fmt: off
KINDS: dict[type[Change], int] = {
    Created: 1, Dropped: 2, Renamed: 3, ExpirySet: 4, StringSet: 5, Appended: 6,
    Deleted: 7, Trimmed: 8, StreamSet: 9, GroupCreated: 10, GroupDestroyed: 11,
    GroupMoved: 12, ConsumerCreated: 13, ConsumerDeleted: 14, Delivered: 15,
    Claimed: 16, Forced: 17, Passed: 18, Finished: 19, Died: 20, Redriven: 21,
    Discarded: 22, Lapsed: 23, Extended: 24, HandedBack: 25, Sought: 26,
    Configured: 27, Lost: 40,
}
# fmt: on
