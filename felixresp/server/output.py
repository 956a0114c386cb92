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

from ..config import MiB
from ..engine.handouts import HandOut
from ..engine.nodes import Slice
from ..storage.base import StoreError

if TYPE_CHECKING:
    from .committer import Committer

_CHUNK_BYTES = 64 * 1024  # of deferred parts given to the transport at once
_FLUSH_BYTES = MiB  # and so much until the others have had their turn

Part = bytes | Slice


class Held:
    """Replies that wait for the same change, and for those before them."""

    __slots__ = ("claims", "parts", "seq")

    def __init__(
        self, seq: int, parts: Sequence[Part], claims: Sequence[HandOut]
    ) -> None:
        self.seq = seq
        self.parts = deque(parts)
        self.claims = claims


class Output:
    """The queue between the encoder and one transport.

    Its newest replies, where they are all bytes, are ``_parts`` and wait for
    ``_seq``; what has to stay apart from them is in ``_queue`` before them.
    """

    __slots__ = (
        "_claims",
        "_close",
        "_committer",
        "_on_room",
        "_parts",
        "_paused",
        "_queue",
        "_read_slice",
        "_seq",
        "_transport",
        "_yielded",
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
        self._seq = committer.watermark
        self._parts: list[bytes] = []
        self._claims: list[HandOut] = []  # handed out in _parts
        self._queue: deque[Held] = deque()
        self._paused = False
        self._yielded = False  # others have their turn first
        self._close = False
        self.queued_bytes = 0

    @property
    def empty(self) -> bool:
        return not self._queue and not self._parts

    @property
    def may_leave(self) -> bool:
        """The newest reply need not wait for a commit."""
        return self._seq <= self._committer.durable

    @property
    def waiting(self) -> bool:
        """Some reply's changes are not durable yet."""
        newest = self._seq if self._parts else self._queue[-1].seq if self._queue else 0
        return newest > self._committer.durable

    @property
    def holds_claims(self) -> bool:
        """Some reply that has not left hands entries out."""
        return bool(self._claims) or any(held.claims for held in self._queue)

    def size_bytes(self) -> int:
        return self.queued_bytes + self._transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        """Queue a reply that is bytes and hands nothing out."""
        if not self._parts or self._seq != self._committer.watermark:
            self._begin()
        self._parts.append(data)
        self.queued_bytes += len(data)

    def put_parts(self, parts: Sequence[object], claims: Sequence[HandOut]) -> None:
        """Queue a reply of several parts, some of them deferred perhaps."""
        try:
            data = b"".join(cast(Sequence[bytes], parts))
        except TypeError:  # some are deferred
            self._begin()
            self._set_apart()
            held = Held(self._seq, cast(Sequence[Part], parts), claims)
            self._queue.append(held)
            self.queued_bytes += sum(map(_bytes_of, held.parts))
        else:
            self.put(data)
            self._claims += claims

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
        durable = self._committer.durable
        if self._queue and not self._yielded:
            self._flush_queue(durable)
        if (
            self._parts
            and self._seq <= durable
            and not (self._queue or self._paused or self._transport.is_closing())
        ):
            parts = self._parts
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            self._parts = []
            if self._claims:
                self._claims = []
            self.queued_bytes -= len(data)
            self._transport.write(data)
            if self.full:
                self._on_room()
        if self._close and self.empty and not self._transport.is_closing():
            self._transport.close()

    def drop(self) -> list[HandOut]:
        """Forget everything; the claims whose bytes never left."""
        self._set_apart()
        claims: list[HandOut] = []
        for held in self._queue:
            claims += held.claims
            for part in held.parts:
                if isinstance(part, Slice):
                    part.release()
        self._queue.clear()
        self.queued_bytes = 0
        return claims

    def _begin(self) -> None:
        """What is put now waits for the newest must-wait change."""
        committer = self._committer
        seq = committer.watermark
        if seq != self._seq or not self._parts:
            self._set_apart()
            self._seq = seq
            if seq > committer.durable:
                committer.hold(seq, self)

    def _set_apart(self) -> None:
        if self._parts:
            self._queue.append(Held(self._seq, self._parts, self._claims))
            self._parts, self._claims = [], []

    def _flush_queue(self, durable: int) -> None:
        queue = self._queue
        sent = 0
        while queue and queue[0].seq <= durable:
            if self._paused or self._transport.is_closing():
                return
            if sent >= _FLUSH_BYTES:
                self._yielded = True
                asyncio.get_running_loop().call_soon(self._go_on)
                return
            held = queue[0]
            held.claims = ()  # from here on their bytes are on the way
            chunks: list[bytes] = []
            size = 0
            while held.parts and size < _CHUNK_BYTES:
                part = held.parts.popleft()
                self.queued_bytes -= _bytes_of(part)
                if isinstance(part, Slice):
                    try:
                        part = self._read_slice(part)
                    except StoreError:  # the reply cannot be what it began as
                        self._transport.abort()
                        return
                chunks.append(part)
                size += len(part)
            if not held.parts:
                queue.popleft()
            self._transport.write(b"".join(chunks))
            sent += size
            if self.full:
                self._on_room()

    def _go_on(self) -> None:
        self._yielded = False
        self.flush()


def _bytes_of(part: Part) -> int:
    """What is in memory of it: of a deferred part, all but what it will read."""
    return part.kept_bytes if isinstance(part, Slice) else len(part)
