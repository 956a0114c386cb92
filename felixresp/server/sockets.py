"""Sockets under one inner epoll: asyncio watches a single descriptor.

asyncio's own transports cost several microseconds of Python an event. Here one
turn asks the kernel once, reads every socket that has something, and ends with
the commit that all of its replies wait for. Each socket is an asyncio.Transport
to its protocol, so a connection does not know the difference; where the system
has no epoll, asyncio's own transports serve instead.
"""

from __future__ import annotations

import asyncio
import select
import socket
import traceback
from collections.abc import Callable, Sequence
from typing import Any

AVAILABLE = hasattr(select, "epoll")

_READ_BYTES = 64 * 1024
_EVENTS_MAX = 128  # a turn reads the clock once, so it must be short
_ACCEPTS_MAX = 64  # per turn and listener
_PAUSE_S = 0.1  # after an accept that the system had no room for
_HIGH_WATER_BYTES = 64 * 1024
_LOW_WATER_BYTES = 16 * 1024

if AVAILABLE:
    _IN = select.EPOLLIN
    _OUT = select.EPOLLOUT


class Sockets:
    """Listens, accepts, and runs the turns."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make_protocol: Callable[[], asyncio.Protocol],
        begin_turn: Callable[[], None],
        end_turn: Callable[[], None],
    ) -> None:
        self.loop = loop
        self._make_protocol = make_protocol
        self._begin_turn = begin_turn
        self._end_turn = end_turn
        self.epoll = select.epoll()
        self.transports: dict[int, SocketTransport] = {}
        self._listeners: dict[int, socket.socket] = {}
        loop.add_reader(self.epoll.fileno(), self._turn)

    def listen(self, listeners: Sequence[socket.socket]) -> None:
        for listener in listeners:
            listener.setblocking(False)
            self._listeners[listener.fileno()] = listener
            self.epoll.register(listener.fileno(), _IN)

    def stop_listening(self) -> None:
        for fd, listener in self._listeners.items():
            self.epoll.unregister(fd)
            listener.close()
        self._listeners.clear()

    def close(self) -> None:
        self.stop_listening()
        self.loop.remove_reader(self.epoll.fileno())
        self.epoll.close()

    def _turn(self) -> None:
        self._begin_turn()
        transports = self.transports
        for fd, event in self.epoll.poll(0, _EVENTS_MAX):
            transport = transports.get(fd)
            try:
                if transport is None:
                    if fd in self._listeners:
                        self._accept(self._listeners[fd])
                elif event == _IN:
                    transport.read()
                else:
                    transport.handle(event)
            except Exception:  # one client's failure is not the others'
                traceback.print_exc()
                if transport is not None:
                    transport.abort()
        self._end_turn()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTS_MAX):
            try:
                sock, _ = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # out of descriptors, or of memory for buffers
                self._pause_accepts(listener)
                return
            try:
                sock.setblocking(False)
                if sock.family in (socket.AF_INET, socket.AF_INET6):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                SocketTransport(self, sock, self._make_protocol())
            except OSError:  # it is gone already
                self.transports.pop(sock.fileno(), None)
                sock.close()

    def _pause_accepts(self, listener: socket.socket) -> None:
        """Those that wait are tried later: the epoll would speak of them at once."""
        self.epoll.modify(listener.fileno(), 0)
        self.loop.call_later(_PAUSE_S, self._accept_again, listener)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener.fileno() in self._listeners:
            self.epoll.modify(listener.fileno(), _IN)


class SocketTransport(asyncio.Transport):
    """One socket; calls its protocol as asyncio's transports do."""

    def __init__(
        self, sockets: Sockets, sock: socket.socket, protocol: asyncio.Protocol
    ) -> None:
        super().__init__()
        self._sockets = sockets
        self._socket = sock
        self._fd = sock.fileno()
        self._receive = sock.recv
        self._protocol = protocol
        self._unsent = bytearray()
        self._events = _IN
        self._closing = False
        self._paused_protocol = False
        sockets.transports[self._fd] = self
        sockets.epoll.register(self._fd, _IN)
        protocol.connection_made(self)

    # --- what the epoll says

    def read(self) -> None:
        if not self._events & _IN:
            return  # paused after the kernel had told us
        try:
            data = self._receive(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._protocol.data_received(data)
        elif not self._closing:
            self._watch(self._events & ~_IN)
            if not self._protocol.eof_received():
                self.close()

    def handle(self, event: int) -> None:
        """Anything but plain readability."""
        if event & _OUT:
            self._send_rest()
        if event & ~_OUT and self._fd in self._sockets.transports:
            if self._events & _IN:
                self.read()
            elif event & (select.EPOLLHUP | select.EPOLLERR):
                self._lose(ConnectionResetError())

    # --- asyncio.Transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._unsent:
            self._unsent += data
        else:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            self._unsent += memoryview(data)[sent:]
            self._watch(self._events | _OUT)
        if len(self._unsent) > _HIGH_WATER_BYTES and not self._paused_protocol:
            self._paused_protocol = True
            self._protocol.pause_writing()

    def close(self) -> None:
        """Close once everything written has left."""
        if not self._closing:
            self._closing = True
            self._watch(self._events & ~_IN)
            if not self._unsent:
                self._lose(None)

    def abort(self) -> None:
        self._closing = True
        self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._watch(self._events & ~_IN)

    def resume_reading(self) -> None:
        if not self._closing:
            self._watch(self._events | _IN)

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        try:
            match name:
                case "socket":
                    return self._socket
                case "peername":
                    return self._socket.getpeername()
                case "sockname":
                    return self._socket.getsockname()
                case _:
                    pass
        except OSError:
            pass
        return default

    # ---

    def _send_rest(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._watch(self._events & ~_OUT)
            if self._closing:
                self._lose(None)
                return
        if self._paused_protocol and len(self._unsent) <= _LOW_WATER_BYTES:
            self._paused_protocol = False
            self._protocol.resume_writing()

    def _watch(self, events: int) -> None:
        if events != self._events and self._fd in self._sockets.transports:
            self._events = events
            self._sockets.epoll.modify(self._fd, events)

    def _lose(self, error: Exception | None) -> None:
        """Forget the socket; the protocol is told when its caller is done."""
        self._closing = True
        if self._sockets.transports.pop(self._fd, None) is None:
            return
        self._sockets.epoll.unregister(self._fd)
        self._sockets.loop.call_soon(self._finish, error)

    def _finish(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)
        self._socket.close()
