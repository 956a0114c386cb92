"""What MONITOR shows: every command that runs, before it does; its own after.

Commands of an open MULTI are shown when EXEC runs them. Passwords, commands of
administrators and what is refused for want of rights are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..commands.command import Flags, find
from ..commands.context import Context
from ..commands.errors import CommandError
from ..commands.permission import is_refused
from ..commands.table import COMMANDS
from ..protocol.reply import Simple

if TYPE_CHECKING:
    from .connection import Connection

_REDACTED = b"(redacted)"
_ESCAPES = {
    **{byte: b"\\x%02x" % byte for byte in range(256)},
    **{byte: bytes((byte,)) for byte in range(0x20, 0x7F)},
    **{ord(c): b"\\" + c.encode() for c in '\\"'},
    **dict(zip(b"\n\r\t\a\b", rb"\n \r \t \a \b".split(), strict=True)),
}


def feed(
    monitors: Mapping[int, Connection], ctx: Context, request: Sequence[bytes]
) -> Sequence[Simple]:
    """Show a request that is about to run to all but the client it is from."""
    lines = list(_lines(ctx, request))
    for monitor in list(monitors.values()):
        if monitor is not ctx.client:
            show(monitor, lines)
    return lines


def show(monitor: Connection, lines: Sequence[Simple]) -> None:
    for line in lines:
        monitor.reply(line)
    monitor.output.flush()
    settings = monitor.context.settings
    if monitor.output.size_bytes() > settings.client_output_buffer_bytes:
        monitor.kill()


def _lines(ctx: Context, request: Sequence[bytes]) -> Iterator[Simple]:
    """The lines for one request that is about to run."""
    client = ctx.client
    try:
        command = find(COMMANDS, request)
    except CommandError:
        return
    if Flags.ADMIN in command.flags or is_refused(ctx, command, request):
        return
    if client.queued is not None:
        if not command.immediate:
            return
        if command.name == b"exec" and not client.queue_failed:
            for queued in client.queued:
                yield _line(ctx, queued)
    yield _line(ctx, request)


def _line(ctx: Context, request: Sequence[bytes]) -> Simple:
    words = b" ".join(b'"%b"' % _quote(word) for word in _redact(request))
    seconds, us = divmod(ctx.wall_us, 1_000_000)
    client = ctx.client
    where = b"%d %b" % (client.db, client.address)
    return Simple(b"%d.%06d [%b] %b" % (seconds, us, where, words))


def _redact(request: Sequence[bytes]) -> Sequence[bytes]:
    name = request[0].upper()
    words = list(request)
    if name == b"AUTH":
        words[1:] = [_REDACTED] * (len(words) - 1)
    elif name == b"HELLO":
        upper = [word.upper() for word in words]
        if b"AUTH" in upper[2:]:
            place = upper.index(b"AUTH", 2) + 1
            secret = words[place : place + 2]
            words[place : place + 2] = [_REDACTED] * len(secret)
    return words


def _quote(word: bytes) -> bytes:
    return b"".join([_ESCAPES[byte] for byte in word])
