"""Reply values; the encoder turns them into RESP2 or RESP3.

``None`` is the null bulk, ``int`` an integer, ``bytes`` a bulk string, a list
or tuple an array. Everything else is one of the classes below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Error:
    """An error reply; the first word of its text is the error code."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple string such as +OK."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Map:
    """A map: pairs in order; a flat array in RESP2. A key may come twice."""

    pairs: Sequence[tuple[Reply, Reply]]


@dataclass(frozen=True, slots=True)
class Streams:
    """What XREAD answers: a map in RESP3, an array of pairs in RESP2."""

    pairs: Sequence[tuple[bytes, Reply]]


@dataclass(frozen=True, slots=True)
class Set:
    """A set in RESP3, an array in RESP2 (flags in COMMAND)."""

    items: Sequence[Reply]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text: verbatim ``txt`` in RESP3, a bulk string in RESP2 (INFO)."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Push:
    """An out-of-band message: ``>`` in RESP3, an array in RESP2."""

    items: Sequence[Reply]


@dataclass(frozen=True, slots=True)
class Entries:
    """An array of ``count`` entries that are raw RESP already.

    ``parts`` are bytes, or deferred reads that the encoder hands through and
    the server resolves while the socket drains.
    """

    count: int
    parts: Sequence[object]


class NilArray:
    """``*-1`` in RESP2, ``_`` in RESP3."""


class NoReply:
    """Nothing is written at all."""


NIL_ARRAY = NilArray()
NO_REPLY = NoReply()
OK = Simple(b"OK")
QUEUED = Simple(b"QUEUED")
PONG = Simple(b"PONG")

Reply = (
    None
    | int
    | float
    | bool
    | bytes
    | Error
    | Simple
    | Map
    | Streams
    | Set
    | Verbatim
    | Push
    | Entries
    | NilArray
    | NoReply
    | Sequence["Reply"]
)
