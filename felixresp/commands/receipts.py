"""Receipts: ``ID:nonce``, which name one very claim, beside plain IDs."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.group import Group
from ..engine.ids import EntryID, format_id
from ..engine.settle import by_receipt
from .args import entry_id
from .errors import INVALID_ID, CommandError

_NONCE_DIGITS = 16
_HEX = frozenset(b"0123456789abcdef")

Mark = tuple[EntryID, int]  # nonce 0: a plain ID


def receipt(id_: EntryID, nonce: int) -> bytes:
    return b"%b:%016x" % (format_id(id_), nonce)


def settled_mark(word: bytes) -> Mark:
    """An ID or a receipt. Raises CommandError."""
    id_, colon, digits = word.partition(b":")
    if not colon:
        return entry_id(word), 0
    if len(digits) != _NONCE_DIGITS or not _HEX.issuperset(digits):
        raise CommandError(INVALID_ID)
    # no claim has the nonce 0: as a receipt it stands for none
    return entry_id(id_), int(digits, 16) or -1


def standing_ids(group: Group, marks: Sequence[Mark], now_ms: int) -> Sequence[EntryID]:
    """The plain IDs, and those whose receipt is good, in the order given."""
    receipts = [mark for mark in marks if mark[1]]
    if not receipts:
        return [id_ for id_, _ in marks]
    good = set(by_receipt(group, receipts, now_ms))
    return [id_ for id_, nonce in marks if not nonce or id_ in good]
