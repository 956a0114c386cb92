"""What is put off to the end of a turn: the commit first, the timer after it.

A turn reads every socket that has something. Whoever has work for its end says
so, once or often; outside a turn the end comes when the loop is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Turn:
    """Collects callbacks and runs each once, in the order they came."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._at_end: dict[Callable[[], None], None] = {}
        self.running = False
        self._promised = False

    def begin(self) -> None:
        self.running = True

    def end(self) -> None:
        self.running = False
        while self._at_end:
            callback = next(iter(self._at_end))
            del self._at_end[callback]
            callback()

    def at_end(self, callback: Callable[[], None]) -> None:
        self._at_end[callback] = None
        if not self.running and not self._promised:
            self._promised = True
            self._loop.call_soon(self._keep_promise)

    def _keep_promise(self) -> None:
        self._promised = False
        self.end()
