"""Reply values to bytes, in the connection's RESP version.

Dispatch is by exact type through one table, so that the common replies cost a
dict look-up and a format. What an Entries reply brings is bytes already, or a
deferred read that is handed through for the server to resolve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .reply import (
    Entries,
    Error,
    Map,
    NilArray,
    NoReply,
    Push,
    Reply,
    Set,
    Simple,
    Streams,
    Verbatim,
)

Parts = list[object]
_Writer = Callable[[Any, int, Parts], None]
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
_INTEGRAL_MAX = 1e17  # from here on Redis writes an exponent


def encode(reply: Reply, resp: int) -> bytes:
    """The bytes of a reply that holds no deferred part."""
    parts: Parts = []
    encode_parts(reply, resp, parts)
    return b"".join(parts)  # type: ignore[arg-type]


def encode_parts(reply: Reply, resp: int, parts: Parts) -> None:
    """Append the reply's bytes, and its deferred parts, to ``parts``."""
    _writer(reply)(reply, resp, parts)


def encode_short(reply: bytes | int) -> bytes:
    """A bulk string or an integer: what XADD and XACK answer."""
    if isinstance(reply, bytes):
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    return b":%d\r\n" % reply


def _writer(reply: Reply) -> _Writer:
    return _WRITERS.get(type(reply)) or _inherited(reply)


def _inherited(reply: Reply) -> _Writer:
    """The writer of a subclass, such as a named tuple."""
    for kind in type(reply).__mro__:
        if kind in _WRITERS:
            return _WRITERS[kind]
    if isinstance(reply, Sequence) and not isinstance(reply, str):
        return _array
    msg = f"not a reply: {type(reply).__name__}"
    raise TypeError(msg)


def _null(_reply: None, resp: int, parts: Parts) -> None:
    parts.append(b"$-1\r\n" if resp == 2 else b"_\r\n")


def _nil_array(_reply: NilArray, resp: int, parts: Parts) -> None:
    parts.append(b"*-1\r\n" if resp == 2 else b"_\r\n")


def _nothing(_reply: NoReply, _resp: int, _parts: Parts) -> None:
    pass


def _bulk(reply: bytes, _resp: int, parts: Parts) -> None:
    parts.append(encode_short(reply))


def _integer(reply: int, _resp: int, parts: Parts) -> None:
    parts.append(encode_short(reply))


def _bool(reply: bool, resp: int, parts: Parts) -> None:
    if resp == 2:
        parts.append(b":1\r\n" if reply else b":0\r\n")
    else:
        parts.append(b"#t\r\n" if reply else b"#f\r\n")


def _float(reply: float, resp: int, parts: Parts) -> None:
    text = _format_float(reply)
    if resp == 2:
        _bulk(text, resp, parts)
    else:
        parts.append(b",%b\r\n" % text)


def _format_float(number: float) -> bytes:
    if number.is_integer() and abs(number) < _INTEGRAL_MAX:
        return b"%d" % number
    return repr(number).encode()


def _simple(reply: Simple, _resp: int, parts: Parts) -> None:
    parts.append(b"+%b\r\n" % reply.text)


def _error(reply: Error, _resp: int, parts: Parts) -> None:
    parts.append(b"-%b\r\n" % reply.text.translate(_LINE_ENDS))


def _verbatim(reply: Verbatim, resp: int, parts: Parts) -> None:
    if resp == 2:
        _bulk(reply.text, resp, parts)
    else:
        parts.append(b"=%d\r\ntxt:%b\r\n" % (len(reply.text) + 4, reply.text))


def _array(reply: Sequence[Reply], resp: int, parts: Parts) -> None:
    parts.append(b"*%d\r\n" % len(reply))
    _items(reply, resp, parts)


def _set(reply: Set, resp: int, parts: Parts) -> None:
    parts.append(b"%b%d\r\n" % (b"*" if resp == 2 else b"~", len(reply.items)))
    _items(reply.items, resp, parts)


def _push(reply: Push, resp: int, parts: Parts) -> None:
    parts.append(b"%b%d\r\n" % (b"*" if resp == 2 else b">", len(reply.items)))
    _items(reply.items, resp, parts)


def _map(reply: Map, resp: int, parts: Parts) -> None:
    count = len(reply.pairs)
    parts.append(b"*%d\r\n" % (2 * count) if resp == 2 else b"%%%d\r\n" % count)
    for pair in reply.pairs:
        _items(pair, resp, parts)


def _streams(reply: Streams, resp: int, parts: Parts) -> None:
    parts.append(b"%b%d\r\n" % (b"*" if resp == 2 else b"%", len(reply.pairs)))
    pair = b"*2\r\n" if resp == 2 else b""
    for key, value in reply.pairs:
        parts.append(b"%b$%d\r\n%b\r\n" % (pair, len(key), key))
        _writer(value)(value, resp, parts)


def _entries(reply: Entries, _resp: int, parts: Parts) -> None:
    parts.append(b"*%d\r\n" % reply.count)
    parts.extend(reply.parts)


def _items(items: Sequence[Reply], resp: int, parts: Parts) -> None:
    for item in items:
        _writer(item)(item, resp, parts)


_WRITERS: dict[type, _Writer] = {
    type(None): _null,
    bool: _bool,
    bytes: _bulk,
    float: _float,
    int: _integer,
    list: _array,
    tuple: _array,
    Entries: _entries,
    Error: _error,
    Map: _map,
    NilArray: _nil_array,
    NoReply: _nothing,
    Push: _push,
    Set: _set,
    Simple: _simple,
    Streams: _streams,
    Verbatim: _verbatim,
}
