"""Entries that are not in memory: read when a command or a reply needs them.

A node that cannot be read is lost: a loud line, a counter, and its entries are
gone from the stream, so that whoever wanted them goes on with the next ones. A
reply that had already promised them ends with its connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..engine.errors import NotResident
from ..engine.ids import format_id
from ..engine.losses import lose
from ..engine.nodes import Node, Slice
from ..engine.stream import Stream
from ..storage.base import Unreadable
from .log import say

if TYPE_CHECKING:
    from .server import Server


class Cold:
    """Reads the server's store."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.entries_lost = 0

    def load(self, missing: NotResident) -> None:
        """Bring the nodes in; one that is damaged is not missed any more."""
        try:
            self._server.store.read_groups(missing.groups)
            self._read(missing.stream, missing.nodes)
        except Unreadable as damage:
            self._lose(missing.stream, damage)

    def read_slice(self, part: Slice) -> bytes:
        """The bytes of a deferred part, which is done with then, also when it
        raises Unreadable."""
        try:
            if not part.node.resident:
                self._read(part.stream, [part.node])
            return part.bytes()
        except Unreadable as damage:
            self._lose(part.stream, damage)
            self._server.settle(self._server.clock.now_ms())
            raise
        finally:
            part.release()

    def _read(self, stream: Stream, nodes: Iterable[Node]) -> None:
        """Soon the store brings the cache to its size again."""
        self._server.store.read(stream, nodes)
        self._server.schedule.tick_soon()

    def _lose(self, stream: Stream, damage: Unreadable) -> None:
        node, key = damage.node, stream.key.decode("latin-1")
        line = str(damage)
        held = self._server.keyspace.get(stream.db, stream.key) is stream
        if held and lose(stream, node):
            self.entries_lost += node.live
            first, last = format_id(node.first), format_id(node.last)
            line += (
                f"; {node.live} entries of {key!r} in database {stream.db},"
                f" from {first.decode()} to {last.decode()}, are lost and skipped"
            )
        say(line)
