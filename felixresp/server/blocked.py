"""Clients that wait: parked by Block, served in the order of blocking.

After each command or EXEC, before anyone's next command, every touched key
serves its waiters: the same request is dispatched again. One that still finds
nothing stays at its place, with its first deadline. All XREAD waiters are
tried; of one group's waiters no more once one has found nothing. Those with NOACK
are a line of their own, since they are served where the cap stops the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING

from ..commands.context import Block
from ..engine.due import Due

if TYPE_CHECKING:
    from .connection import Connection

Key = tuple[int, bytes]  # database, key
Line = tuple[bytes, bool] | None  # group and whether NOACK; None: XREAD


class Waiter:
    """One parked request."""

    __slots__ = (
        "connection",
        "deadline_ms",
        "frozen_ids",
        "keys",
        "line",
        "order",
        "parked",
        "request",
        "timeout",
    )

    def __init__(
        self, order: int, connection: Connection, request: Sequence[bytes], block: Block
    ) -> None:
        self.order = order
        self.connection = connection
        self.request = request
        self.keys = [(connection.db, key) for key in dict.fromkeys(block.keys)]
        self.deadline_ms = block.deadline_ms
        self.frozen_ids = block.frozen_ids
        self.line: Line = None
        if block.group is not None:
            self.line = block.group, block.no_ack
        self.timeout = block.timeout
        self.parked = True


Queue = dict[int, Waiter]  # by order of blocking


class Waiters:
    """Every parked request: by key and group, and by deadline."""

    def __init__(self) -> None:
        self._queues: dict[Key, dict[Line, Queue]] = {}
        self._deadlines = Due[Waiter](lambda _, waiter: waiter.parked)
        self._order = 0
        self.count = 0

    @property
    def key_count(self) -> int:
        return len(self._queues)

    @property
    def group_key_count(self) -> int:
        """Keys that also wake someone when they go away."""
        return sum(queues.keys() != {None} for queues in self._queues.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._queues

    def park(
        self, connection: Connection, request: Sequence[bytes], block: Block
    ) -> Waiter:
        self._order += 1
        waiter = Waiter(self._order, connection, request, block)
        for key in waiter.keys:
            queue = self._queues.setdefault(key, {}).setdefault(waiter.line, {})
            queue[waiter.order] = waiter
        if waiter.deadline_ms is not None:
            self._deadlines.push(waiter.deadline_ms, waiter)
        self.count += 1
        return waiter

    def remove(self, waiter: Waiter) -> None:
        waiter.parked = False
        self.count -= 1
        for key in waiter.keys:
            queues = self._queues[key]
            queue = queues[waiter.line]
            del queue[waiter.order]
            if not queue:
                del queues[waiter.line]
            if not queues:
                del self._queues[key]

    def in_turn(self, key: Key) -> Iterator[Waiter]:
        """Those to try now. A waiter that stays ends its group's turn."""
        queues = self._queues.get(key, {})
        turns = [
            _everyone(queue) if line is None else _while_served(queue)
            for line, queue in queues.items()
        ]
        for waiter in merge(*turns, key=attrgetter("order")):
            if waiter.parked:
                yield waiter

    def ahead(self, key: Key, waiter: Waiter) -> int:
        """How many wait on this key and group, this one too."""
        group = waiter.line and waiter.line[0]
        lines = self._queues[key].items()
        return sum(len(queue) for line, queue in lines if (line and line[0]) == group)

    def next_deadline(self) -> int | None:
        return self._deadlines.next_ms()

    def pop_due(self, now_ms: int) -> Waiter | None:
        """A waiter whose deadline has come; it is removed."""
        waiter = self._deadlines.pop(now_ms)
        if waiter is not None:
            self.remove(waiter)
        return waiter


def _everyone(queue: Queue) -> Iterator[Waiter]:
    yield from list(queue.values())


def _while_served(queue: Queue) -> Iterator[Waiter]:
    while queue:
        waiter = next(iter(queue.values()))
        yield waiter
        if waiter.parked:
            return
