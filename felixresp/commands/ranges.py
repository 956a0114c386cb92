"""The ends of an interval of IDs, as XRANGE and XPENDING take them.

``-`` and ``+`` are the lowest and the highest ID, ``(`` excludes the ID after
it; without a sequence number a start means the first of its millisecond, an end
the last.
"""

from __future__ import annotations

from ..engine.ids import MAX_ID, MIN_ID, SEQ_MAX, EntryID
from .args import entry_id
from .errors import INVALID_END, INVALID_START, CommandError


def start_id(word: bytes) -> EntryID:
    if word[:1] == b"(":
        first = entry_id(word[1:])
        if first == MAX_ID:
            raise CommandError(INVALID_START)
        return first + 1
    return loose_id(word)


def end_id(word: bytes) -> EntryID:
    if word[:1] == b"(":
        last = entry_id(word[1:], SEQ_MAX)
        if last == MIN_ID:
            raise CommandError(INVALID_END)
        return last - 1
    return loose_id(word, SEQ_MAX)


def loose_id(word: bytes, default_seq: int = 0) -> EntryID:
    """An ID, or ``-`` or ``+``."""
    if word == b"-":
        return MIN_ID
    if word == b"+":
        return MAX_ID
    return entry_id(word, default_seq)
