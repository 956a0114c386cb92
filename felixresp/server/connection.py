"""One client: its input, its turn, its place in CLIENT LIST.

A turn is at most 128 commands or one millisecond; what is left takes its next
turn after the others. While a request is parked the ones behind it wait. Bytes
that cannot be taken yet are kept as they came, and parsed when it is their turn.
"""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..commands.context import Context
from ..config import MiB
from ..engine.handouts import HandOut
from ..protocol.encoder import encode_parts, encode_short
from ..protocol.parser import Parser, ProtocolError
from ..protocol.reply import Error, Reply
from .output import Output

if TYPE_CHECKING:
    from .blocked import Waiter
    from .server import Server

_TURN_COMMANDS_MAX = 128
_TURN_MS_MAX = 1
_CLOCK_COMMANDS = 16  # the clock is read again after so many
_BACKLOG_BYTES_MAX = MiB  # unread input kept for a client that is not parked


class Connection(asyncio.Protocol):
    """The transport's protocol, and the Client that handlers see."""

    output: Output
    _transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = Parser(server.settings)
        self._requests: deque[list[bytes]] = deque()
        self._backlog: deque[bytes] = deque()  # bytes not parsed yet
        self._backlog_bytes = 0
        self._reading = True
        self._at_rest = False  # see _rest
        self._ended = False  # the peer will send no more
        self._closing = False
        self.scheduled = False  # stands in the server's ready queue
        self.monitoring = False
        self.waiter: Waiter | None = None
        self.blocked = False
        self.last_request: Sequence[bytes] = ()

        now_ms = server.clock.now_ms()
        self.id = server.next_client_id()
        self.db = 0
        self.resp = 2
        self.user = server.users.newcomer()
        self.name = self.lib_name = self.lib_version = b""
        self.no_evict = self.no_touch = False
        self.address = self.local_address = b"?:0"
        self.created_ms = self.active_ms = now_ms
        self.queued: list[list[bytes]] | None = None
        self.queued_bytes = 0
        self.queue_failed = False
        self.watched: dict[tuple[int, bytes], int] = {}
        self.context = Context(server.keyspace, server.settings, server, self)

    # --- the transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        server = self._server
        self.output = Output(
            self._transport, server.committer, server.cold.read_slice, self._output_left
        )
        self.address = _address(transport.get_extra_info("peername"))
        self.local_address = _address(transport.get_extra_info("sockname"))
        _keep_alive(transport.get_extra_info("socket"), server.settings.tcp_keepalive)
        if not server.accept(self):
            self.reply(Error(b"ERR max number of clients reached"))
            self.end()

    def data_received(self, data: bytes) -> None:
        if self._at_rest:  # nothing before it: by far the most common
            requests = self._parser.feed(data)
            if len(requests) == 1 and self._parser.error is None:
                self._take_one(requests[0])
            else:
                self._requests.extend(requests)
                self.take_turn()
            return
        if self._closing:
            return
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        if self.waiter is None and not self.scheduled and not self.output.full:
            self.take_turn()
        else:
            self._bound_input()

    def eof_received(self) -> bool:
        """A parked wait ends at once, and entries go to nobody who is gone;
        otherwise what was asked before is answered."""
        self._ended = True
        if self.waiter is not None or self.output.holds_claims:
            self._server.forget(self)
            return False
        if not self.busy:
            self.end()
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        self._server.forget(self)

    def pause_writing(self) -> None:
        self.output.pause()

    def resume_writing(self) -> None:
        self.output.resume()
        if self.output.full:
            self._output_left()

    # --- turns

    @property
    def busy(self) -> bool:
        """There is input to go on with."""
        return not self._closing and bool(
            self._requests or self._backlog or self._parser.error
        )

    def take_turn(self) -> None:
        """Run what the turn allows; the rest stands in line again."""
        self._at_rest = False
        try:
            self._run()
        except Exception:  # a bug here must not take the other clients' turns
            traceback.print_exc()
            self.kill()
            return
        self._bound_input()
        if self._ended and not (self.blocked or self.output.full or self.busy):
            self.end()
        self._rest()

    def _take_one(self, request: list[bytes]) -> None:
        """A turn of one command, with nothing before or behind it."""
        server, output = self._server, self.output
        if not server.in_turn:
            server.read_clock(self.context)
        elif self.context.now_ms != server.now_ms:
            server.give_time(self.context)
        self.active_ms = server.now_ms
        try:
            server.execute(self, request)
            if output.may_leave:
                output.flush()
        except Exception:  # as in take_turn
            traceback.print_exc()
            self.kill()
            return
        if output.queued_bytes > server.settings.client_output_buffer_bytes:
            output.full = True
            self._bound_input()
        if output.full or self.waiter is not None or self._closing:
            self._at_rest = False

    def _rest(self) -> None:
        """Nothing is left to do: the next bytes may be taken at once."""
        self._at_rest = not (
            self._requests
            or self._backlog
            or self._closing
            or self.scheduled
            or self.output.full
            or self.waiter is not None
            or self.user is self._server.users.guest
            or self._parser.error
        )

    def _run(self) -> None:
        server, output = self._server, self.output
        requests = self._requests
        output_bytes_max = server.settings.client_output_buffer_bytes
        left = _TURN_COMMANDS_MAX
        started_ms = server.read_clock(self.context)
        self.active_ms = started_ms
        while not self._closing and (requests or self._parse()):
            if left % _CLOCK_COMMANDS == 0:
                server.read_clock(self.context)
            if not left or self.context.now_ms - started_ms > _TURN_MS_MAX:
                server.ready(self)
                break
            left -= 1
            server.execute(self, requests.popleft())
            if self.waiter is not None:
                break
            if output.size_bytes() > output_bytes_max:
                output.full = True
                break
        output.flush()

    def park(self, waiter: Waiter) -> None:
        self.waiter = waiter
        self.blocked = True

    def resume(self) -> None:
        """The parked request was answered: send it, and go on behind it."""
        self.waiter = None
        self.blocked = False
        self.output.flush()
        if self.busy:
            self._server.ready(self)
        self._rest()

    def _output_left(self) -> None:
        """Output was sent: input that stood still because of it goes on."""
        output_bytes_max = self._server.settings.client_output_buffer_bytes
        if self.output.size_bytes() <= output_bytes_max:
            self.output.full = False
            if self.waiter is None:
                self._server.ready(self)
            else:
                self._bound_input()

    def _parse(self) -> bool:
        """Make requests of the bytes that came; False when there are none."""
        parser = self._parser
        parser.trusted = self._server.users.in_force(self) is not None
        while not parser.error:
            data = b""
            if not parser.more:
                if not self._backlog:
                    return False
                data = self._backlog.popleft()
                self._backlog_bytes -= len(data)
            found = parser.feed(data)
            if found:
                self._requests.extend(found)
                return True
        self._refuse(parser.error)
        return False

    def _refuse(self, error: ProtocolError) -> None:
        if error.text:
            self.reply(Error(error.text))
        self.end()

    def _bound_input(self) -> None:
        """Stop reading while there is enough to do; a parked client's end must
        be seen, so its input is bounded by its limit instead."""
        settings = self._server.settings
        if self._backlog_bytes > settings.client_query_buffer_limit:
            self.kill()
            return
        reading = self._backlog_bytes <= _BACKLOG_BYTES_MAX or self.waiter is not None
        if self.output.full:
            reading = False
        if reading != self._reading and not self._transport.is_closing():
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # --- output

    def reply(self, reply: Reply, claims: Sequence[HandOut] = ()) -> None:
        """Queue a reply, encoded now, under the newest change's number."""
        if type(reply) is bytes or type(reply) is int:
            self.output.put(encode_short(reply))
            return
        parts: list[object] = []
        encode_parts(reply, self.resp, parts)
        if len(parts) == 1 and not claims and type(parts[0]) is bytes:
            self.output.put(parts[0])
        elif parts:
            self.output.put_parts(parts, claims)

    def end(self) -> None:
        """Close after what is queued has left; nothing more is read."""
        self._closing, self._at_rest = True, False
        self._requests.clear()
        self._backlog.clear()
        self.output.close()

    def distrust(self) -> None:
        """It may have to sign in again: requests are taken one by one until then."""
        self._at_rest = False

    def kill(self) -> None:
        """Close now; what is queued is dropped."""
        self._server.forget(self)
        self._transport.abort()

    def drop(self) -> list[HandOut]:
        """The connection is gone: the claims that never left with it."""
        self._closing, self._at_rest = True, False
        self._requests.clear()
        self._backlog.clear()
        self._parser = Parser(self._server.settings)  # what it held is free at once
        return self.output.drop()

    # --- what CLIENT shows

    def describe(self, now_ms: int) -> bytes:
        flags = "O" if self.monitoring else "b" if self.blocked else ""
        flags += "x" if self.queued is not None else ""
        flags += "e" if self.no_evict else ""
        flags += "T" if self.no_touch else ""
        sock = self._transport.get_extra_info("socket")
        name = self.name.decode("latin-1")
        lib_name = self.lib_name.decode("latin-1")
        lib_version = self.lib_version.decode("latin-1")
        user = self.user.name.decode("latin-1")
        return (
            f"id={self.id} addr={self.address.decode()}"
            f" laddr={self.local_address.decode()} fd={sock.fileno()} name={name}"
            f" age={(now_ms - self.created_ms) // 1000}"
            f" idle={max(0, now_ms - self.active_ms) // 1000}"
            f" flags={flags or 'N'} db={self.db} sub=0 psub=0 ssub=0"
            f" multi={-1 if self.queued is None else len(self.queued)}"
            f" qbuf={self._backlog_bytes} qbuf-free=0 argv-mem=0"
            f" multi-mem={self.queued_bytes} rbs=0 rbp=0 obl=0 oll=0"
            f" omem={self.output.size_bytes()} tot-mem=0 events=r"
            f" cmd={self._server.command_name(self.last_request)}"
            f" user={user} redir=-1 resp={self.resp}"
            f" lib-name={lib_name} lib-ver={lib_version}"
        ).encode("latin-1")


def _address(name: object) -> bytes:
    if isinstance(name, tuple):
        host, port = name[:2]
        return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
    return b"?:0"


def _keep_alive(sock: socket.socket, seconds: int) -> None:
    if not seconds:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", seconds),
        ("TCP_KEEPINTVL", max(1, seconds // 3)),
        ("TCP_KEEPCNT", 3),
    ):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
