"""RESP over one socket, read as raw bytes and as a tree.

Nothing here interprets a reply: the raw bytes are what is compared, the tree
only serves to mask what may differ between two runs.
"""

from __future__ import annotations

import re
import select
import socket
import time
from dataclasses import dataclass
from typing import Self

REPLY_TIMEOUT_S = 5.0
BLOB_KINDS = b"$=!"
LIST_KINDS = b"*~>"
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")

# What XINFO STREAM tells since Redis 8.6 and 8.8, and ACL LOG since 7.2, whose
# client-info grows with every version; and what only describes the shape of Redis's
# own tree.
NEWER_FIELDS = frozenset(
    b"idmp-duration idmp-maxsize pids-tracked iids-tracked iids-added"
    b" iids-duplicates nacked-count"
    b" client-info entry-id timestamp-created timestamp-last-updated".split()
)
SHAPE_FIELD = b"radix-tree-nodes"


class ConnectionClosed(Exception):
    """The server closed the connection."""


class NoReply(Exception):
    """The server sent nothing in time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its bytes, and either its text or its parts."""

    raw: bytes
    text: bytes = b""
    parts: tuple[Reply, ...] | None = None

    @property
    def kind(self) -> bytes:
        return self.raw[:1]

    @property
    def is_error(self) -> bool:
        return self.kind in (b"-", b"!")


class Connection:
    """A client that sends exactly what it is told."""

    def __init__(self, host: str, port: int, protocol: int = 2) -> None:
        self._socket = socket.create_connection((host, port), REPLY_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = bytearray()
        if protocol == 3:
            self.call(b"HELLO", b"3")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, *args: bytes) -> None:
        self.send_raw(
            b"*%d\r\n" % len(args)
            + b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in args)
        )

    def send_raw(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ConnectionClosed from error

    def call(self, *args: bytes) -> Reply:
        self.send(*args)
        return self.read()

    def has_reply(self) -> bool:
        """Whether bytes (or the end of the connection) have arrived."""
        return bool(self._unread) or bool(select.select([self._socket], [], [], 0)[0])

    def read(self, timeout_s: float = REPLY_TIMEOUT_S) -> Reply:
        return self._read_reply(time.monotonic() + timeout_s)

    def _read_reply(self, deadline: float) -> Reply:
        line = self._take_line(deadline)
        kind = line[:1]
        if kind in BLOB_KINDS:
            length = int(line[1:])
            if length < 0:
                return Reply(line)
            body = self._take(length + 2, deadline)
            return Reply(line + body, body[:-2])
        if kind in LIST_KINDS or kind == b"%":
            count = int(line[1:])
            if count < 0:
                return Reply(line)
            count *= 2 if kind == b"%" else 1
            parts = tuple(self._read_reply(deadline) for _ in range(count))
            return Reply(line + b"".join(part.raw for part in parts), parts=parts)
        return Reply(line, line[1:-2])

    def _take_line(self, deadline: float) -> bytes:
        while (end := self._unread.find(b"\r\n")) < 0:
            self._receive(deadline)
        return self._take(end + 2, deadline)

    def _take(self, length: int, deadline: float) -> bytes:
        while len(self._unread) < length:
            self._receive(deadline)
        taken = bytes(self._unread[:length])
        del self._unread[:length]
        return taken

    def _receive(self, deadline: float) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise NoReply
        self._socket.settimeout(left_s)
        try:
            data = self._socket.recv(1 << 16)
        except TimeoutError as error:
            raise NoReply from error
        except OSError as error:
            raise ConnectionClosed from error
        if not data:
            raise ConnectionClosed
        self._unread += data


def canonical(reply: Reply, marks: str, fields: tuple[str, ...] = ()) -> bytes:
    """The bytes to compare, after what the marks allow to differ is masked.

    ``~`` numbers, ``=`` the order of parts, ``?`` everything but the type, ``@``
    a COMMAND INFO row: name, arity, flags, key positions and categories remain;
    ``%`` leaves NEWER_FIELDS out and masks the number of SHAPE_FIELD.
    """
    if reply.is_error:
        return reply.raw
    if "%" in marks:
        reply = _without_newer(reply)
    if fields:
        return _chosen_fields(reply.text, fields)
    if "?" in marks:
        return reply.kind
    if "@" in marks:
        return _command_rows(reply)
    return _masked(reply, marks) if marks else reply.raw


def _without_newer(reply: Reply) -> Reply:
    if reply.parts is None:
        return reply
    kept: list[Reply] = []
    parts = iter(reply.parts)
    for part in parts:
        if part.text in NEWER_FIELDS:
            next(parts)
            continue
        kept.append(_without_newer(part))
        if part.text == SHAPE_FIELD:
            number = next(parts)
            kept.append(Reply(number.kind + b"#\r\n", b"#"))
    count = len(kept) // 2 if reply.kind == b"%" else len(kept)
    head = reply.kind + b"%d\r\n" % count
    return Reply(head + b"".join(part.raw for part in kept), parts=tuple(kept))


def _masked(reply: Reply, marks: str) -> bytes:
    if reply.parts is None:
        if "~" not in marks or reply.is_error:
            return reply.raw
        return reply.kind + NUMBER.sub(b"#", reply.text) + b"\r\n"
    parts = [_masked(part, marks) for part in reply.parts]
    if reply.kind == b"%":
        parts = [
            key + value for key, value in zip(parts[::2], parts[1::2], strict=True)
        ]
    if "=" in marks:
        parts.sort()
    return reply.kind + b"%d\r\n" % len(parts) + b"".join(parts)


def _chosen_fields(text: bytes, fields: tuple[str, ...]) -> bytes:
    """``name`` must be there; of ``name=`` the value is compared, numbers masked."""
    lines = []
    for field in fields:
        name, compared, _ = field.partition("=")
        found = re.search(rb"(?:^|\s)%b[:=](\S*)" % re.escape(name.encode()), text)
        if found is None:
            lines.append(f"{name} absent")
        elif compared:
            lines.append(f"{name} {NUMBER.sub(b'#', found[1]).decode()}")
        else:
            lines.append(f"{name} present")
    return "\n".join(lines).encode()


def _command_rows(reply: Reply) -> bytes:
    rows = []
    for row in reply.parts or ():
        if row.parts is None:
            rows.append(row.raw.strip())
            continue
        name, arity, flags, first, last, step, categories = row.parts[:7]
        rows.append(
            b" ".join(
                [
                    name.text,
                    *(part.text for part in (arity, first, last, step)),
                    *sorted(part.text for part in flags.parts or ()),
                    *sorted(part.text for part in categories.parts or ()),
                ]
            )
        )
    return b"\n".join(rows)
