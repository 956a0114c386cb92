"""One timer, at the earliest of everything that has a time.

Claims that lapse, keys that expire, waits that end, lazy changes that must be
on disk, idle clients, the store's own work. A timer that fires too early only
looks again, so it is moved when something comes to be due earlier, never for
what went away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .turn import Turn

Due = Callable[[], int | None]  # on the now_ms clock


class Timer:
    """Calls ``fire`` when the earliest of ``sources`` is due."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        now_ms: Callable[[], int],
        sources: tuple[Due, ...],
        fire: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._turn = turn
        self._now_ms = now_ms
        self._sources = sources
        self._fire = fire
        self.touched = False  # it will look when this turn is over
        self._due_ms: int | None = None
        self._handle: asyncio.Handle | None = None

    def touch(self) -> None:
        """Something may be due earlier now: look when this turn is over."""
        self.touched = True
        self._turn.at_end(self._set)

    def cancel(self) -> None:
        self._sources = ()
        if self._handle is not None:
            self._handle.cancel()

    def _set(self) -> None:
        self.touched = False
        times = [due for source in self._sources if (due := source()) is not None]
        if not times:
            return
        due_ms = min(times)
        if self._due_ms is not None and self._due_ms <= due_ms:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._due_ms = due_ms
        delay_ms = max(0, due_ms - self._now_ms())
        self._handle = self._loop.call_later(delay_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._handle = self._due_ms = None
        self._fire()
        self._set()
