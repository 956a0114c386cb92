"""Entry IDs: 128-bit integers, ``ms << 64 | seq``.

One integer compares, hashes and steps (``id + 1``) in C, and takes half the
memory of a tuple. On the wire an ID is ``ms-seq``.
"""

from __future__ import annotations

EntryID = int

MIN_ID = 0
MAX_ID = 2**128 - 1
SEQ_MAX = MS_MAX = 2**64 - 1
_TEXT_BYTES_MAX = 127
_SHORT_BYTES = 21  # with a dash and a digit at least on its other side


class InvalidID(ValueError):
    """Not an entry ID of the form ``ms`` or ``ms-seq``."""


def parse_id(text: bytes, default_seq: int = 0) -> EntryID:
    """Read ``ms`` or ``ms-seq``. Raises InvalidID."""
    ms, dash, seq = text.partition(b"-")
    if (  # no part can be out of range: by far the most common
        len(text) <= _SHORT_BYTES and ms.isdigit() and seq.isdigit()
    ):
        return int(ms) << 64 | int(seq)
    if not dash:
        return _part(ms) << 64 | default_seq
    return _part(ms) << 64 | _part(seq)


def format_id(id_: EntryID) -> bytes:
    return b"%d-%d" % (id_ >> 64, id_ & SEQ_MAX)


def make_id(ms: int, seq: int) -> EntryID:
    return ms << 64 | seq


def _part(digits: bytes) -> int:
    # isdigit() alone would let a number of any length through
    if not digits.isdigit() or len(digits) > _TEXT_BYTES_MAX:
        raise InvalidID
    value = int(digits)
    if value > MS_MAX:
        raise InvalidID
    return value
