"""What is due when: the sources of the server's one timer, and what they do."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from .timers import Timer
from .turn import Turn

if TYPE_CHECKING:
    from .server import Server

TICK_MS = 10  # after a change, when the store had nothing to do before
_UNSETTLED_MS = 100  # while the store has not been given everything
_IDLE_CHECK_MS = 1000
_EVICTION_MS = 60_000  # between two looks for groups that nobody uses


class Schedule:
    """Lapses, expiries, ends of waits, lazy changes, the store, idle clients."""

    def __init__(
        self,
        server: Server,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        fatal: Callable[[str], None],
    ) -> None:
        self._server = server
        self._fatal = fatal
        self.tick_due_ms: int | None = server.started_ms  # of the store
        self._idle_check_ms = server.started_ms
        self._eviction_ms = server.started_ms + _EVICTION_MS
        self.timer = Timer(
            loop,
            turn,
            server.clock.now_ms,
            (
                self._next_lapse,
                self._next_expiry,
                server.waiters.next_deadline,
                lambda: server.committer.lazy_due_ms,
                lambda: self.tick_due_ms,
                self._next_idle_check,
                lambda: self._eviction_ms,
            ),
            self._ring,
        )

    def tick_soon(self) -> None:
        """The store has something to do before long."""
        due_ms = self._server.clock.now_ms() + TICK_MS
        if self.tick_due_ms is None or self.tick_due_ms > due_ms:
            self.tick_due_ms = due_ms
            self.timer.touch()

    def _ring(self) -> None:
        try:
            self._on_time()
        except Exception:  # it would fail again at once, and for ever
            traceback.print_exc()
            self._fatal("work that was due failed")
            raise

    def _on_time(self) -> None:
        server = self._server
        now_ms = server.clock.now_ms()
        server.expire_keys(now_ms, server.clock.wall_ms())
        deadline_ms = server.keyspace.next_deadline()
        if deadline_ms is not None and deadline_ms <= now_ms:
            server.end_claims(now_ms)
        while waiter := server.waiters.pop_due(now_ms):
            waiter.connection.reply(waiter.timeout)
            waiter.connection.resume()
        lazy_due_ms = server.committer.lazy_due_ms
        if lazy_due_ms is not None and lazy_due_ms <= now_ms:
            server.committer.commit()
        if self.tick_due_ms is not None and self.tick_due_ms <= now_ms:
            delay_ms = server.store.tick(now_ms, settled=server.committer.settled)
            if delay_ms is None and not server.committer.settled:
                delay_ms = _UNSETTLED_MS
            server.look_for_room()
            self.tick_due_ms = None if delay_ms is None else now_ms + delay_ms
        if self._eviction_ms <= now_ms:
            self._eviction_ms = now_ms + _EVICTION_MS
            server.store.evict_groups(now_ms)
        idle_check_ms = self._next_idle_check()
        if idle_check_ms is not None and idle_check_ms <= now_ms:
            self._close_idle(now_ms)

    def _next_lapse(self) -> int | None:
        return self._server.keyspace.next_deadline()

    def _next_expiry(self) -> int | None:
        """The wall clock's next expiry on the clock of the timer."""
        server = self._server
        expiry_ms = server.keyspace.next_expiry()
        if expiry_ms is None:
            return None
        return expiry_ms - server.clock.wall_ms() + server.clock.now_ms()

    def _next_idle_check(self) -> int | None:
        return self._idle_check_ms if self._server.settings.timeout else None

    def _close_idle(self, now_ms: int) -> None:
        self._idle_check_ms = now_ms + _IDLE_CHECK_MS
        latest_ms = now_ms - self._server.settings.timeout * 1000
        for connection in self._server.connections():
            if connection.active_ms < latest_ms and not (
                connection.blocked or connection.monitoring
            ):
                connection.end()
