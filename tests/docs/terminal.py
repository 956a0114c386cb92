"""What ``redis-cli -3`` shows of a reply, read from the socket.

A test compares it with the real program.
"""

from __future__ import annotations

import shlex
import socket
from io import BufferedReader

from tests.server_process import HOST

REPLY_S = 60.0  # a lost reply fails the test instead of hanging it
_SCALARS = {b"+": "", b"-": "(error) ", b":": "(integer) ", b"_": "(nil)"}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Terminal:
    """One connection, and what its user sees."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), REPLY_S)
        self._replies = self._socket.makefile("rb")
        self.ask("HELLO 3")

    def ask(self, command: str) -> list[str]:
        """The lines that the command prints, without spaces at their ends."""
        words = [word.encode() for word in shlex.split(command)]
        bulks = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._socket.sendall(b"*%d\r\n%b" % (len(words), bulks))
        return [line.rstrip() for line in _shown(self._replies, "").split("\n")]

    def close(self) -> None:
        self._replies.close()
        self._socket.close()


def _shown(replies: BufferedReader, indent: str) -> str:
    """The next reply; lines after its first begin with ``indent``."""
    line = replies.readline()
    assert line.endswith(b"\r\n"), "the server closed the connection"
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"$":
        return _quoted(_bulk(replies, int(rest)))
    if kind == b"*":
        return _array(replies, int(rest), indent)
    if kind == b"%":
        return _map(replies, int(rest), indent)
    if kind == b"=":  # after its kind and a colon
        text = _bulk(replies, int(rest))[4:].decode()
        return text.replace("\r\n", "\n").rstrip()
    return _SCALARS[kind] + rest


def _array(replies: BufferedReader, count: int, indent: str) -> str:
    if not count:
        return "(empty array)"
    width = len(str(count))
    inner = indent + " " * (width + 2)
    items = [f"{at:{width}}) {_shown(replies, inner)}" for at in range(1, count + 1)]
    return f"\n{indent}".join(items)


def _map(replies: BufferedReader, count: int, indent: str) -> str:
    if not count:
        return "(empty hash)"
    width = len(str(count))
    inner = indent + " " * (width + 2)
    lines = []
    for at in range(1, count + 1):
        name = _shown(replies, inner)
        is_nested = replies.peek(1)[:1] in b"*%"
        value = _shown(replies, inner)
        if is_nested and not value.startswith("(empty"):
            value = f"\n{inner}{value}"
        lines.append(f"{at:{width}}# {name} => {value}")
    return f"\n{indent}".join(lines)


def _bulk(replies: BufferedReader, size: int) -> bytes:
    return replies.read(size + 2)[:size]


def _quoted(data: bytes) -> str:
    text = data.decode("latin-1")
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if " " <= char <= "~" else f"\\x{ord(char):02x}"
