"""One connection's replies, in order, and what each of them waits for.

A reply may leave when every change it could have seen is durable: when the
committer's ``durable`` has reached the ``watermark`` of its encoding. Replies
are one queue, so whatever comes behind a held one (an error, a MONITOR line,
the close after QUIT) waits with it. Claims that a reply hands out stay with
its bytes until these are given to the transport.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ..engine.handouts import HandOut
from ..engine.nodes import Slice

if TYPE_CHECKING:
    from .committer import Committer

_CHUNK_BYTES = 64 * 1024  # of deferred parts given to the transport at once

Part = bytes | Slice


class Held:
    """Replies that wait for the same change, or for room in the socket."""

    __slots__ = ("claims", "deferred", "parts", "seq")

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.parts: deque[Part] = deque()
        self.claims: list[HandOut] = []
        self.deferred = False  # some part is a Slice


class Output:
    """The queue between the encoder and one transport."""

    __slots__ = (
        "_claims",
        "_close",
        "_committer",
        "_direct",
        "_on_room",
        "_paused",
        "_queue",
        "_read_slice",
        "_transport",
        "full",
        "queued_bytes",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        committer: Committer,
        read_slice: Callable[[Slice], bytes],
        on_room: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._committer = committer
        self._read_slice = read_slice
        self._on_room = on_room
        self.full = False  # the connection stands still until on_room is called
        self._direct: list[bytes] = []  # waits for nothing but the turn's end
        self._claims: list[HandOut] = []  # handed out in _direct
        self._queue: deque[Held] = deque()
        self._paused = False
        self._close = False
        self.queued_bytes = 0

    @property
    def empty(self) -> bool:
        return not self._queue and not self._direct

    @property
    def waiting(self) -> bool:
        """Some reply's changes are not durable yet."""
        return bool(self._queue) and self._queue[-1].seq > self._committer.durable

    @property
    def holds_claims(self) -> bool:
        """Some reply that has not left hands entries out."""
        return bool(self._claims) or any(held.claims for held in self._queue)

    def size_bytes(self) -> int:
        return self.queued_bytes + self._transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        """Queue a reply that is bytes and hands nothing out."""
        committer = self._committer
        if (
            committer.watermark <= committer.durable
            and not self._queue
            and not self._paused
        ):
            self._direct.append(data)
        else:
            self._held().parts.append(data)
        self.queued_bytes += len(data)

    def put_parts(self, parts: Sequence[object], claims: Sequence[HandOut]) -> None:
        """Queue a reply of several parts, some of them deferred perhaps."""
        deferred = False
        for part in parts:
            if type(part) is bytes:
                self.queued_bytes += len(part)
            else:
                deferred = True
        committer = self._committer
        if (
            deferred
            or self._queue
            or self._paused
            or committer.watermark > committer.durable
        ):
            held = self._held()
            held.parts.extend(cast(Sequence[Part], parts))
            held.claims.extend(claims)
            held.deferred |= deferred
        else:
            self._direct.extend(cast(Sequence[bytes], parts))
            self._claims.extend(claims)

    def close(self) -> None:
        """Close the transport once everything queued has left."""
        self._close = True
        self.flush()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.flush()

    def flush(self) -> None:
        """Give the transport what may leave."""
        if self._transport.is_closing():
            return
        if self._direct or (
            self._queue and self._queue[0].seq <= self._committer.durable
        ):
            self._write()
            if self.full:
                self._on_room()
        if self._close and self.empty:
            self._transport.close()

    def drop(self) -> list[HandOut]:
        """Forget everything; the claims whose bytes never left."""
        claims = self._claims
        for held in self._queue:
            claims += held.claims
            for part in held.parts:
                if isinstance(part, Slice):
                    part.release()
        self._direct, self._claims = [], []
        self._queue.clear()
        self.queued_bytes = 0
        return claims

    def _held(self) -> Held:
        committer = self._committer
        seq = committer.watermark
        if not self._queue or self._queue[-1].seq != seq:
            self._queue.append(Held(seq))
            if seq > committer.durable:
                committer.hold(seq, self)
        return self._queue[-1]

    def _write(self) -> None:
        chunks, self._direct, self._claims = self._direct, [], []
        queue = self._queue
        durable = self._committer.durable
        while queue and queue[0].seq <= durable and not self._paused:
            held = queue[0]
            if held.deferred:
                self._send(chunks)
                chunks = []
                if not self._write_deferred(held):
                    return
            else:
                chunks.extend(cast(deque[bytes], held.parts))
            queue.popleft()
        self._send(chunks)

    def _send(self, chunks: list[bytes]) -> None:
        if chunks:
            data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            self.queued_bytes -= len(data)
            self._transport.write(data)

    def _write_deferred(self, held: Held) -> bool:
        """Read and send until the socket is full; True when all was sent."""
        parts = held.parts
        while parts and not self._paused:
            chunks: list[bytes] = []
            size = 0
            while parts and size < _CHUNK_BYTES:
                part = parts.popleft()
                if isinstance(part, Slice):
                    part = self._read_slice(part)
                    self.queued_bytes += len(part)
                chunks.append(part)
                size += len(part)
            self._send(chunks)
        return not parts
