"""Glob patterns as Redis matches them: ``*`` ``?`` ``[a-z]`` ``[^a]`` ``\\``.

Only the newest ``*`` is ever tried again, so the time is at most the product of
both lengths, whatever the pattern.
"""

from __future__ import annotations


def matches(pattern: bytes, text: bytes) -> bool:
    if not text:
        return pattern in (b"", b"*")  # Redis: not ** either
    place, at = 0, 0
    star, star_at = -1, 0  # where to go on when the text after a * differs
    while at < len(text):
        if place < len(pattern) and pattern[place] == 0x2A:  # *
            star, star_at = place, at
            place += 1
            continue
        after = _match_one(pattern, place, text[at]) if place < len(pattern) else -1
        if after >= 0:
            place, at = after, at + 1
        elif star >= 0:
            star_at += 1
            place, at = star + 1, star_at
        else:
            return False
    return not pattern[place:].strip(b"*")


def _match_one(pattern: bytes, place: int, byte: int) -> int:
    """Where the pattern goes on after it took ``byte``, or -1."""
    match pattern[place]:
        case 0x3F:  # ?
            return place + 1
        case 0x5B:  # [
            return _match_class(pattern, place + 1, byte)
        case 0x5C if place + 1 < len(pattern):  # \
            place += 1
    return place + 1 if pattern[place] == byte else -1


def _match_class(pattern: bytes, place: int, byte: int) -> int:
    """``place`` is after the ``[``. A class that is not closed ends the pattern."""
    negated = pattern[place : place + 1] == b"^"
    place += negated
    found = False
    while place < len(pattern) and pattern[place] != 0x5D:  # ]
        low = pattern[place]
        if low == 0x5C and place + 1 < len(pattern):  # \
            place += 1
            found |= pattern[place] == byte
        elif pattern[place + 1 : place + 2] == b"-" and place + 2 < len(pattern):
            high = pattern[place + 2]
            found |= min(low, high) <= byte <= max(low, high)
            place += 2
        else:
            found |= low == byte
        place += 1
    if found == negated:
        return -1
    return min(place + 1, len(pattern))
