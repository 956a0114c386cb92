"""A checkpoint: a consistent cut, read in slices, then written by a thread.

The cut is the state at one position of the journal. The loop reads it a slice
at a time (the engine reads a value at once when a command is about to change
it), then the thread writes all of it in one transaction with the position. What
could not be written is kept, and written again later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Thread

from ..engine.ids import EntryID
from ..engine.keyspace import Keyspace
from ..engine.nodes import Node
from ..engine.snapshots import NodeSnapshot, StreamSnapshot
from ..engine.stream import Stream
from ..engine.values import String
from .base import Unreadable
from .database import Database, WriteFailed
from .records import State

_SLICE = 400  # records that are read at once: about a millisecond
_PAUSE_S = 0.001


class Checkpoint:
    """One cut, from its start until it is written."""

    def __init__(self, keyspace: Keyspace, database: Database, state: State) -> None:
        self.state = state
        self.failure: WriteFailed | None = None
        self.garbage_left = False
        self._keyspace = keyspace
        self._database = database
        self._values: list[StreamSnapshot | String] = []
        self._complete = False
        self._hurry = Event()
        self._thread: Thread | None = None
        self._dropped: list[tuple[int, bool]] = []
        for value in keyspace.cut():
            self._dropped.append((value.number, isinstance(value, Stream)))
            if isinstance(value, Stream):
                self._rescue(value, value.nodes)

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def running(self) -> bool:
        """The thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def read_slice(self) -> bool:
        """Read a bit of the cut; True when all of it is read."""
        left = _SLICE
        while left > 0 and not self._complete:
            value = self._keyspace.next_snapshot()
            if value is None:
                self._complete = True
                break
            left -= 1
            self._values.append(value)
            if isinstance(value, StreamSnapshot):
                self._rescue(value.stream, value.dropped_nodes)
                left -= len(value.nodes) + len(value.dropped_nodes)
                left -= sum(len(group.pending) for group in value.groups)
        return self._complete

    def start(self) -> None:
        """Write what was read, on a thread; again after a failure."""
        self.failure = None
        self._thread = Thread(target=self._write, name="checkpoint", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Do what is left of it now. Look at ``failure`` then."""
        self._hurry.set()
        while not self.read_slice():
            pass
        if self._thread is not None:
            self._thread.join()
        if self._thread is None or self.failure is not None:
            self.failure = None
            self._write()

    def settle(self) -> None:
        """It is written: its nodes may leave memory."""
        stored: list[Node] = []
        for value in self._values:
            if isinstance(value, StreamSnapshot) and self._stands(value.stream):
                nodes = value.stream.nodes
                stored += [n.node for n in value.nodes if _still_in_place(nodes, n)]
        self._keyspace.cache.stored(stored)

    def _rescue(self, stream: Stream, nodes: Iterable[Node]) -> None:
        """A reply on its way still needs these: their records are about to go."""
        for node in nodes:
            if node.pins and not node.resident:
                # one that is damaged is its reader's trouble, when it comes to it
                with suppress(Unreadable):
                    self._database.read(stream.number, [node], self._keyspace.cache)

    def _stands(self, stream: Stream) -> bool:
        return self._keyspace.get(stream.db, stream.key) is stream

    def _write(self) -> None:
        try:
            self.garbage_left = self._database.write(
                self.state, self._values, self._dropped, self._pause
            )
        except WriteFailed as exc:
            self.failure = exc

    def _pause(self) -> None:
        """Leave the interpreter and the disk to the loop for a moment."""
        self._hurry.wait(_PAUSE_S)


def _still_in_place(nodes: list[Node], snapshot: NodeSnapshot) -> bool:
    """Whether the stored payload is the whole one of a node of the stream."""
    node = snapshot.node
    if snapshot.payload is None or node.payload is not snapshot.payload:
        return False  # stored before, or open when it was read, or gone
    at = bisect_left(nodes, node.first, key=_first)
    return at < len(nodes) and nodes[at] is node


def _first(node: Node) -> EntryID:
    return node.first
