"""The addresses that the server listens on.

asyncio resolves and binds them. Where there is an epoll, the sockets are then
served by our own turns; elsewhere by asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from .sockets import AVAILABLE, Sockets

_BACKLOG = 511


class Listener:
    """Makes a protocol for each client that connects."""

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.Protocol],
        begin_turn: Callable[[], None],
        end_turn: Callable[[], None],
    ) -> None:
        self._make_protocol = make_protocol
        self._begin_turn = begin_turn
        self._end_turn = end_turn
        self._bound: asyncio.Server | None = None
        self._sockets: Sockets | None = None

    async def open(self, hosts: Sequence[str] | None, port: int) -> int:
        """The port, which was free where 0 was asked for. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._bound = await loop.create_server(
            self._make_protocol, hosts, port, backlog=_BACKLOG, start_serving=False
        )
        listening = [sock.dup() for sock in self._bound.sockets]
        port = listening[0].getsockname()[1]
        if AVAILABLE:
            for sock in listening:
                sock.listen(_BACKLOG)
            self._sockets = Sockets(
                loop, self._make_protocol, self._begin_turn, self._end_turn
            )
            self._sockets.listen(listening)
        else:
            for sock in listening:
                sock.close()
            await self._bound.start_serving()
        return port

    def stop(self) -> None:
        """No new clients; the others stay."""
        if self._bound is not None:
            self._bound.close()
        if self._sockets is not None:
            self._sockets.stop_listening()

    def close(self) -> None:
        self.stop()
        if self._sockets is not None:
            self._sockets.close()
