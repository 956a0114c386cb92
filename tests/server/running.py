"""A server in this process, on its own thread, and the means to look inside.

``look`` runs a function on the server's loop, between its turns, so a test sees
a state that stands still; ``until`` waits for one. ``stopped`` keeps the loop
busy while a test sends, so that everything it sent is there at once.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from felixresp.clock import SystemClock
from felixresp.config import Settings, Value
from felixresp.server.server import Server
from felixresp.storage.base import Store
from felixresp.storage.journal import JournalStore
from felixresp.storage.memory import Deferred, MemoryStore
from tests.wire import Wire

T = TypeVar("T")
WAIT_S = 30.0  # a condition that never comes fails the test


def _journal(directory: Path) -> JournalStore:
    return JournalStore(directory, Settings(journal_segment_bytes=1 << 20))


def _memory(_: Path) -> MemoryStore:
    return MemoryStore(Settings())


def _late(_: Path) -> MemoryStore:
    return MemoryStore(Settings(), deferred=Deferred(ticks=2))


def _out_of_step(_: Path) -> MemoryStore:
    """A batch of a low partition often finishes after a later one of a high one."""
    return MemoryStore(Settings(), partitions=8, deferred=Deferred(1, spread=4))


STORES: dict[str, Callable[[Path], JournalStore | MemoryStore]] = {
    "journal": _journal,
    "memory": _memory,
    "memory late": _late,
    "memory out of step": _out_of_step,
}


class Peer(Wire):
    """A client that can also look whether anything came."""

    def has_reply(self) -> bool:
        """Bytes, or the end, are there to be read now."""
        return bool(self._connection.can_read(timeout=0))


class RunningServer:
    def __init__(self, store: Store, **settings: Value) -> None:
        self._settings = Settings(port=0, **settings)
        self._store = store
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._wires: list[Any] = []
        self._killed = False
        self.deaths: list[str] = []  # what ended the process, had it been one
        self.server: Server

    @property
    def port(self) -> int:
        return self.server.port

    def connect(self) -> Peer:
        peer = Peer(self.port)
        self._wires.append(peer)
        return peer

    def connect_raw(self, received_bytes: int = 0) -> socket.socket:
        """With ``received_bytes``, that is all it takes without reading."""
        sock = socket.socket()
        self._wires.append(sock)
        if received_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received_bytes)
        sock.settimeout(WAIT_S)
        sock.connect(("127.0.0.1", self.port))
        return sock

    def look(self, function: Callable[[Server], T]) -> T:
        async def call() -> T:
            return function(self.server)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(WAIT_S)

    def until(self, holds: Callable[[Server], object]) -> None:
        give_up = time.monotonic() + WAIT_S
        while not self.look(holds):
            assert time.monotonic() < give_up
            time.sleep(0.001)

    def until_processed(self, count: int) -> None:
        self.until(lambda server: server.commands_processed >= count)

    def until_blocked(self, count: int) -> None:
        self.until(lambda server: server.waiters.count == count)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The loop stands still inside."""
        go_on, standing = threading.Event(), threading.Event()

        def stand() -> None:
            standing.set()
            go_on.wait(WAIT_S)

        self._loop.call_soon_threadsafe(stand)
        standing.wait(WAIT_S)
        try:
            yield
        finally:
            go_on.set()

    def kill(self) -> None:
        """A crash: nothing more is written or answered."""
        self._killed = True
        self._loop.call_soon_threadsafe(self.server.stopped.set)
        self._thread.join(WAIT_S)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for wire in self._wires:
            wire.close()
        with suppress(RuntimeError):  # the loop is closed: it stopped by itself
            self._loop.call_soon_threadsafe(self.server.stopped.set)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.server = Server(
            self._settings, self._store, SystemClock(), self.deaths.append
        )
        await self.server.listen()
        self._ready.set()
        await self.server.stopped.wait()
        if self._killed:
            self.server._timer.cancel()
            self.server._listener.close()
            for connection in self.server.connections():
                connection.kill()
            await asyncio.sleep(0)  # their sockets are closed
        else:
            await self.server.stop()


def read_to_end(sock: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = bytearray()
    while chunk := sock.recv(65536):
        data += chunk
    return bytes(data)
