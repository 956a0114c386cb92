"""Bytes to requests: RESP arrays of bulk strings, and inline commands.

However the bytes are cut, the requests and the error are the same. A run of
whole requests in their canonical form is hiredis's work; what is unusual or not
complete yet goes to the exact path, one request at a time. Both hold Redis's
limits, and a length is checked as soon as its line is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import hiredis

from ..config import Settings

INLINE_BYTES_MAX = LINE_BYTES_MAX = 64 * 1024
_MULTIBULK_MAX = 2**31 - 1
_UNAUTHENTICATED_MULTIBULK_MAX = 10
_UNAUTHENTICATED_BULK_MAX = 16384
_ARGUMENT_OVERHEAD_BYTES = 40  # what an argument costs beside its bytes

_COUNT_LINE_BYTES = 7  # of a count that hiredis may allocate for
_UNUSUAL = re.compile(rb"\*\d{6}|~\d")  # a large count; a set, which it makes a list
# what its reader raises; a map whose key is a list or a map is a TypeError
_REFUSED = (hiredis.HiredisError, TypeError, ValueError)
_INTEGER = re.compile(rb"0|-?[1-9]\d{0,18}")
_STAR = ord("*")

_BAD_COUNT = b"invalid multibulk length"
_UNAUTHENTICATED_COUNT = b"unauthenticated multibulk length"
_BAD_SIZE = b"invalid bulk length"
_UNAUTHENTICATED_SIZE = b"unauthenticated bulk length"
_BIG_INLINE = b"too big inline request"
_UNBALANCED = b"unbalanced quotes in request"
_NO_REPLY = b""

# One inline argument: plain bytes, then at most one quoted part that ends it.
_ARGUMENT = re.compile(
    rb"""([^ \t\r\n"']*)"""
    rb"""(?:"((?:\\.|[^"\\])*+)"(?=\s|\Z)"""
    rb"""|'((?:\\'|[^'])*+)'(?=\s|\Z)"""
    rb"""|(?=[ \t\r\n]|\Z))""",
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class ProtocolError(Exception):
    """The connection cannot go on; the text is the reply, empty for none."""

    def __init__(self, reason: bytes) -> None:
        super().__init__(reason)
        self.text = b"ERR Protocol error: " + reason if reason else b""


class Parser:
    """One connection's input.

    ``error`` is to be answered after the requests that came before it; from
    then on nothing is read. While ``trusted`` is False (not authenticated)
    the limits are tight, and each ``feed`` gives at most one request, because
    that one may be AUTH: while there is ``more``, feed ``b""`` for the next.
    """

    __slots__ = (
        "_args",
        "_args_bytes",
        "_bulk_bytes",
        "_data",
        "_missing",
        "_pieces",
        "_pieces_bytes",
        "_pos",
        "_settings",
        "error",
        "more",
        "trusted",
    )

    def __init__(self, settings: Settings, *, trusted: bool = True) -> None:
        self._settings = settings
        self.trusted = trusted
        self.error: ProtocolError | None = None
        self.more = False
        self._data = b""
        self._pos = 0
        self._args: list[bytes] | None = None  # the request that is not complete
        self._args_bytes = 0
        self._missing = 0  # arguments
        self._bulk_bytes = -1  # of the argument being read; -1: its header is next
        self._pieces: list[bytes] = []  # of that argument
        self._pieces_bytes = 0

    def feed(self, data: bytes) -> list[list[bytes]]:
        """The requests that ``data`` completes."""
        requests: list[list[bytes]] = []
        whole = self.trusted  # tried once: it looks at all that is left
        if whole and self._args is None and not self._data and self.error is None:
            whole = False
            left = _take_whole(data, requests)
            if not left:
                return requests
            data = data[-left:]
        elif self.error is not None:
            return requests
        if data:
            self._data = self._data[self._pos :] + data if self._data else data
            self._pos = 0
        try:
            self._parse(requests, whole=whole)
        except ProtocolError as error:
            self.error = error
            self.more = False
            self._data, self._args, self._pieces = b"", None, []
            return requests
        self.more = bool(requests) and not self.trusted and self._pos < len(self._data)
        if self._pos and not self.more:  # else it is cut when bytes are added
            self._data = self._data[self._pos :]
            self._pos = 0
        return requests

    def _parse(self, requests: list[list[bytes]], *, whole: bool) -> None:
        """The exact path; ``whole``: back to the other when a request is done."""
        while self._pos < len(self._data):
            if self._args is None:
                if self._data[self._pos] != _STAR:
                    step = self._inline(requests)
                elif whole:
                    whole = False
                    left = _take_whole(self._data[self._pos :], requests)
                    self._pos = len(self._data) - left
                    continue
                else:
                    step = self._multibulk()
            elif self._bulk_bytes < 0:
                step = self._bulk_header()
            else:
                step = self._bulk(requests)
            if not step or (requests and not self.trusted):
                break
        self._check_size()

    def _multibulk(self) -> bool:
        line = self._line(b"too big mbulk count string")
        if line is None:
            return False
        count = _parse_integer(line[1:])
        if count is None or count > _MULTIBULK_MAX:
            raise ProtocolError(_BAD_COUNT)
        if not self.trusted and count > _UNAUTHENTICATED_MULTIBULK_MAX:
            raise ProtocolError(_UNAUTHENTICATED_COUNT)
        if count > 0:
            self._args, self._args_bytes, self._missing = [], 0, count
        return True

    def _bulk_header(self) -> bool:
        line = self._line(b"too big bulk count string")
        if line is None:
            return False
        if line[:1] != b"$":
            raise ProtocolError(b"expected '$', got '%b'" % (line[:1] or b" "))
        size = _parse_integer(line[1:])
        if size is None or not 0 <= size <= self._settings.proto_max_bulk_len:
            raise ProtocolError(_BAD_SIZE)
        if not self.trusted and size > _UNAUTHENTICATED_BULK_MAX:
            raise ProtocolError(_UNAUTHENTICATED_SIZE)
        self._bulk_bytes = size
        return True

    def _bulk(self, requests: list[list[bytes]]) -> bool:
        """Take what is here of the argument, which two bytes of line end follow."""
        needed = self._bulk_bytes + 2 - self._pieces_bytes
        start = self._pos
        piece = self._data[start : start + needed]
        self._pos += len(piece)
        if len(piece) < needed:
            self._pieces.append(piece)
            self._pieces_bytes += len(piece)
            return False
        if self._pieces:
            piece = b"".join((*self._pieces, piece))
            self._pieces, self._pieces_bytes = [], 0
        assert self._args is not None
        self._args.append(piece[:-2])
        self._args_bytes += self._bulk_bytes + _ARGUMENT_OVERHEAD_BYTES
        self._bulk_bytes = -1
        self._missing -= 1
        if not self._missing:
            requests.append(self._args)
            self._args = None
        return True

    def _inline(self, requests: list[list[bytes]]) -> bool:
        start = self._pos
        end = self._data.find(b"\n", start, start + INLINE_BYTES_MAX + 1)
        if end < 0:
            if len(self._data) - start > INLINE_BYTES_MAX:
                raise ProtocolError(_BIG_INLINE)
            return False
        self._pos = end + 1
        args = split_inline(self._data[start:end].removesuffix(b"\r"))
        if args is None:
            raise ProtocolError(_UNBALANCED)
        if args:
            requests.append(args)
        return True

    def _line(self, too_big: bytes) -> bytes | None:
        start = self._pos
        end = self._data.find(b"\r", start, start + LINE_BYTES_MAX + 1)
        if end < 0 and len(self._data) - start > LINE_BYTES_MAX:
            raise ProtocolError(too_big)
        if end < 0 or end + 2 > len(self._data):
            return None
        self._pos = end + 2  # as in Redis: whatever byte stands for the line feed
        return self._data[start:end]

    def _check_size(self) -> None:
        buffered = len(self._data) - self._pos + self._pieces_bytes
        if self._args is not None:
            buffered += self._args_bytes
        if buffered > self._settings.client_query_buffer_limit:
            raise ProtocolError(_NO_REPLY)


def split_inline(line: bytes) -> list[bytes] | None:
    """The arguments of an inline command; None when its quotes do not match."""
    args: list[bytes] = []
    pos = 0
    while True:
        while line[pos : pos + 1].isspace():
            pos += 1
        if pos == len(line):
            return args
        found = _ARGUMENT.match(line, pos)
        if found is None:
            return None
        plain, double, single = found.groups()
        if double is not None:
            plain += _ESCAPE.sub(_unescape, double)
        elif single is not None:
            plain += single.replace(b"\\'", b"'")
        args.append(plain)
        pos = found.end()


def _unescape(found: re.Match[bytes]) -> bytes:
    digits, letter = found.groups()
    return bytes((int(digits, 16),)) if digits else _ESCAPED.get(letter, letter)


class _WholeRequests:
    """hiredis, for bytes that are whole requests in their canonical form.

    It takes more than a request may be and does not say where it stands, so
    what it found counts only if it is arrays of bytes, and if the data shows as
    many bulk headers as there are arguments, with no other strings that payloads
    which look like headers make up for. It allocates what a count says, so a large
    one is not for it.
    """

    def __init__(self) -> None:
        self._reader = hiredis.Reader()  # empty between two calls

    def take(self, data: bytes, requests: list[list[bytes]]) -> int:
        """Take the requests at the start of ``data``; the bytes that are left."""
        if not data.startswith(b"*"):
            return len(data)
        # by far the most common: one request, perhaps with the ID * in it
        if (
            data.count(b"*") - data.count(b"\n*\r\n") == 1
            and data.find(b"\r", 1, _COUNT_LINE_BYTES) > 0
        ):
            reader = self._reader
            reader.feed(data)
            try:
                request = reader.gets()
            except _REFUSED:
                request = None
            if not reader.has_data() and _are_requests((request,), data, len(data)):
                requests.append(request)
                return 0
            self._reader = hiredis.Reader()
        return self._take_several(data, requests)

    def _take_several(self, data: bytes, requests: list[list[bytes]]) -> int:
        if _UNUSUAL.search(data):
            return len(data)
        reader = self._reader
        reader.feed(data)
        found: list[list[bytes]] = []
        try:
            while (request := reader.gets()) is not False:
                found.append(request)
        except _REFUSED:
            found = []
        end = len(data)
        complete = bool(found) and data.endswith(_last_bulk(found[-1]))
        if not complete:
            end = sum(map(_canonical_bytes, found))
        accepted = _are_requests(found, data, end)
        if not (complete and accepted):
            self._reader = hiredis.Reader()  # it may be in the middle of a request
        if not accepted:
            return len(data)
        requests += found
        return len(data) - end


_take_whole = _WholeRequests().take


def _are_requests(found: Sequence[object], data: bytes, end: int) -> bool:
    arguments = 0
    for request in found:
        if type(request) is not list or not request:
            return False
        try:
            b"".join(request)  # the fastest way to see that all are bytes
        except TypeError:
            return False
        arguments += len(request)
    if data.count(b"\r\n$", 0, end) != arguments:
        return False
    # what else it makes bytes of; or an argument that begins so, as XRANGE's +
    if (
        data.find(b"\r\n+", 0, end) < 0
        and data.find(b"\r\n=", 0, end) < 0
        and data.find(b"\r\n(", 0, end) < 0
    ):
        return True
    return data[:end] == b"".join(map(_canonical, found))  # type: ignore[arg-type]


def _last_bulk(request: object) -> bytes:
    """What the data ends with when this request is its last and complete."""
    if type(request) is not list or not request or type(request[-1]) is not bytes:
        return b"*"  # no request ends with this
    return b"$%d\r\n%b\r\n" % (len(request[-1]), request[-1])


def _canonical(request: Sequence[bytes]) -> bytes:
    """The request written the one usual way."""
    bulks = [b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in request]
    return b"*%d\r\n%b" % (len(request), b"".join(bulks))


def _canonical_bytes(request: object) -> int:
    """What a request takes when it is written the one usual way."""
    if type(request) is not list:
        return 0
    total = len(b"*%d\r\n" % len(request))
    for argument in request:
        size = len(argument) if type(argument) is bytes else 0
        total += len(b"$%d\r\n\r\n" % size) + size
    return total


def _parse_integer(digits: bytes) -> int | None:
    return int(digits) if _INTEGER.fullmatch(digits) else None
