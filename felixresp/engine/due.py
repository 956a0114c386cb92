"""What is due when, earliest first.

An item that moved, or went away, leaves what it had pushed behind. That is
thrown out when it comes to be due, or when it may be half of all: so the size
follows what stands, however often and however far ahead items are moved.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_SPARE_MAX = 64


class Due(Generic[T]):
    """``stands`` says whether an item is still due at the time it was pushed for."""

    __slots__ = ("_items", "_limit", "_rank", "_stands")

    def __init__(self, stands: Callable[[int, T], bool]) -> None:
        self._stands = stands
        self._items: list[tuple[int, int, T]] = []
        self._rank = 0  # breaks ties, first come first
        self._limit = _SPARE_MAX

    def __len__(self) -> int:
        """Those that stand, and those not thrown out yet."""
        return len(self._items)

    def push(self, due_ms: int, item: T) -> None:
        self._rank += 1
        heappush(self._items, (due_ms, self._rank, item))
        if len(self._items) > self._limit:
            self._items = [i for i in self._items if self._stands(i[0], i[2])]
            heapify(self._items)
            self._limit = 2 * len(self._items) + _SPARE_MAX

    def next_ms(self) -> int | None:
        """When the first one is due."""
        while self._items and not self._stands(self._items[0][0], self._items[0][2]):
            heappop(self._items)
        return self._items[0][0] if self._items else None

    def first(self, now_ms: int) -> T | None:
        """The first one, if it is due by now; it stays."""
        due_ms = self.next_ms()
        return self._items[0][2] if due_ms is not None and due_ms <= now_ms else None

    def pop(self, now_ms: int) -> T | None:
        """The first one, if it is due by now; it is taken out."""
        item = self.first(now_ms)
        if item is not None:
            heappop(self._items)
        return item
