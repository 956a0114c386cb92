"""A cursor over a request's words.

A handler reads left to right; arity is already checked, so the words that the
grammar asks for are there. The busiest handlers index ``words`` themselves:
``words[0]`` is the command, and ``place`` is where the arguments begin.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence

from ..engine.ids import EntryID, InvalidID, parse_id
from .errors import INVALID_ID, NOT_AN_INTEGER, SYNTAX, CommandError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# int() alone would take b"1_0", b"+1", b" 1" and b"01"
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def integer(word: bytes, error: bytes = NOT_AN_INTEGER) -> int:
    """A signed 64-bit integer in its one spelling."""
    if _INTEGER.fullmatch(word):
        value = int(word)
        if INT64_MIN <= value <= INT64_MAX:
            return value
    raise CommandError(error)


def entry_id(word: bytes, default_seq: int = 0) -> EntryID:
    """``ms`` or ``ms-seq``."""
    try:
        return parse_id(word, default_seq)
    except InvalidID:
        raise CommandError(INVALID_ID) from None


class Args:
    __slots__ = ("place", "words")

    def __init__(self, words: Sequence[builtins.bytes], place: builtins.int) -> None:
        self.words = words
        self.place = place

    def __bool__(self) -> bool:
        return self.place < len(self.words)

    def remaining(self) -> builtins.int:
        return len(self.words) - self.place

    def rest(self) -> Sequence[builtins.bytes]:
        """The words not read yet; they are read now."""
        rest = self.words[self.place :]
        self.place = len(self.words)
        return rest

    def peek(self) -> builtins.bytes:
        """The next word, which must be there."""
        return self.words[self.place]

    def bytes(self) -> builtins.bytes:
        place = self.place
        if place >= len(self.words):
            raise CommandError(SYNTAX)
        self.place = place + 1
        return self.words[place]

    def int(self, *, error: builtins.bytes = NOT_AN_INTEGER) -> builtins.int:
        return integer(self.bytes(), error)

    def id(self, default_seq: builtins.int = 0) -> EntryID:
        return entry_id(self.bytes(), default_seq)

    def token(self) -> builtins.bytes:
        """An option's name, in upper case."""
        return self.bytes().upper()
