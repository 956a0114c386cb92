"""The running server: one thread, one keyspace, one store, its connections.

A command runs to its end: dispatched, its changes taken to the committer, its
reply queued, its effects applied, the waiters of what it touched served; only
then the next command of anyone runs.
"""

from __future__ import annotations

import asyncio
import secrets
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from ..commands.context import (
    Answer,
    Block,
    Client,
    Close,
    Context,
    Effect,
    HangUp,
    Kill,
    Monitor,
    Outcome,
    Reset,
    Shutdown,
)
from ..commands.dispatch import dispatch
from ..commands.errors import UNBLOCKED
from ..commands.table import COMMANDS
from ..config import Settings
from ..engine.changes import Change, Renamed
from ..engine.errors import NotResident
from ..engine.group import Group
from ..engine.handouts import HandOut
from ..engine.keyspace import Keyspace
from ..protocol.reply import Error, Reply
from ..storage.base import Failure, Recovered, Store
from . import monitor
from .blocked import Key, Waiter, Waiters
from .cold import Cold
from .committer import Committer
from .connection import Connection
from .info import describe_server
from .listener import Listener
from .log import end_process, say
from .schedule import TICK_MS, Schedule
from .turn import Turn
from .users_file import open_users

_COLD_READS_MAX = 1000  # times one request may be dispatched again
_STOP_S = 5.0  # how long a clean stop waits for replies to become durable
_INTERNAL_ERROR = Error(b"ERR internal error")


class Clock(Protocol):
    def now_ms(self) -> int: ...
    def wall_ms(self) -> int: ...
    def wall_us(self) -> int: ...


class Server:
    """Runs on the event loop it is made in; ``stopped`` is set by SHUTDOWN."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        fatal: Callable[[str], None] = end_process,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings
        self.users, self.users_file = open_users(settings)
        self.random_bytes = secrets.token_bytes
        self.store = store
        self.clock = clock
        self.keyspace, self.recovered = self._open()
        self._turn = Turn(loop)
        self.committer = Committer(store, settings, loop, self._turn, fatal)
        self.waiters = Waiters()
        self.stopped = asyncio.Event()
        self.port = settings.port
        self.started_ms = clock.now_ms()
        self.commands_processed = 0
        self.connections_received = 0
        self.connections_rejected = 0
        self.errors: Counter[str] = Counter()
        self.full = False
        self.now_ms = self._wall_us = 0  # as the running turn sees them
        self._fatal = fatal
        self._loop = loop
        self._connections: dict[int, Connection] = {}
        self._monitors: dict[int, Connection] = {}
        self._client_id = 0
        self._ready: deque[Connection] = deque()
        self._lined_up = False  # the ready ones have their turns when the loop is free
        self._touched: dict[Key, None] = {}
        self._serving = self._stopping = False
        self._listener = Listener(
            self._make_connection, self._begin_turn, self._end_turn
        )
        self.cold = Cold(self)
        self.schedule = Schedule(self, loop, self._turn, fatal)
        self._timer = self.schedule.timer
        store.on_failure = self._on_failure
        self._timer.touch()

    def _open(self) -> tuple[Keyspace, Recovered]:
        """What the store has; the changes of starting again are the first ones."""
        keyspace = Keyspace(self.settings, partial(secrets.randbits, 64))
        recovered = self.store.open(keyspace)
        keyspace.take()
        keyspace.resume(self.clock.now_ms(), crashed=not recovered.clean)
        return keyspace, recovered

    # --- listening

    async def listen(self) -> None:
        """Raises OSError when the address cannot be had."""
        hosts = self.settings.bind.split() or None
        self.port = await self._listener.open(hosts, self.settings.port)

    def _make_connection(self) -> Connection:
        return Connection(self)

    async def stop(self) -> None:
        """A clean stop: no new work, what is held becomes durable and leaves."""
        self._stopping = True
        self._listener.stop()
        self._timer.cancel()
        self.committer.commit()
        loop = self._loop
        give_up = loop.time() + _STOP_S
        while not self.committer.settled and loop.time() < give_up:
            self.store.tick(self.clock.now_ms())
            await asyncio.sleep(0.001)
        for connection in list(self._connections.values()):
            connection.end()
        while self._connections and loop.time() < give_up:
            await asyncio.sleep(0.001)
        for connection in list(self._connections.values()):
            connection.kill()
        self.committer.commit()
        self.store.close()
        self._listener.close()

    # --- connections

    def next_client_id(self) -> int:
        self._client_id += 1
        return self._client_id

    def accept(self, connection: Connection) -> bool:
        if len(self._connections) >= self.settings.maxclients:
            self.connections_rejected += 1
            return False
        self.connections_received += 1
        self._connections[connection.id] = connection
        return True

    def forget(self, connection: Connection) -> None:
        """The client is gone: its wait, its watches, what it was never sent."""
        if self._connections.pop(connection.id, None) is None:
            return
        self._monitors.pop(connection.id, None)
        if connection.waiter is not None:
            self.waiters.remove(connection.waiter)
            connection.waiter = None
        for db, key in connection.watched:
            self.keyspace.watches.unwatch(db, key)
        connection.watched.clear()
        now_ms = self.clock.now_ms()
        self.keyspace.return_claims(connection.drop(), now_ms)
        if not self._stopping:  # whoever goes on afterwards keeps its claims
            self.keyspace.detach(connection.id, now_ms)
        self.settle(now_ms)
        self._serve()
        self._timer.touch()

    def ready(self, connection: Connection) -> None:
        """Give the connection a turn after those that stand in line."""
        if not connection.scheduled:
            connection.scheduled = True
            self._ready.append(connection)
            self._line_up()

    def _begin_turn(self) -> None:
        self._turn.begin()
        self._read_clocks()

    def _end_turn(self) -> None:
        if self.settings.timeout:
            self._timer.touch()  # it may have been set just now
        self._turn.end()
        self.look_for_room()

    def look_for_room(self) -> None:
        """Whether commands that need memory are taken; said when it changes."""
        full = not self.store.writable()
        if full != self.full:
            self.full = full
            if full:
                line = f"{self.store.trouble()}: commands that add data are refused"
            else:
                line = "there is room again: commands that add data are taken"
            say(line)

    def _line_up(self) -> None:
        if self._ready and not self._lined_up:
            self._lined_up = True
            self._loop.call_soon(self._take_turns)

    def _take_turns(self) -> None:
        self._begin_turn()
        for _ in range(len(self._ready)):
            connection = self._ready.popleft()
            connection.scheduled = False
            connection.take_turn()
        self._lined_up = False
        self._line_up()
        self._end_turn()

    # --- one command

    @property
    def in_turn(self) -> bool:
        """The clocks were read when it began."""
        return self._turn.running

    def read_clock(self, ctx: Context) -> int:
        """Bring the context's clocks up to date; keys that expired go."""
        self._read_clocks()
        return self.give_time(ctx)

    def give_time(self, ctx: Context) -> int:
        """The context's clocks show the turn's time."""
        ctx.now_ms = self.now_ms
        ctx.wall_us = self._wall_us
        ctx.wall_ms = self._wall_us // 1000
        return self.now_ms

    def _read_clocks(self) -> None:
        self.now_ms = self.clock.now_ms()
        self._wall_us = self.clock.wall_us()
        expiry_ms = self.keyspace.next_expiry()
        if expiry_ms is not None and expiry_ms <= self._wall_us // 1000:
            self.expire_keys(self.now_ms, self._wall_us // 1000)

    def execute(self, connection: Connection, request: list[bytes]) -> None:
        """Run one request of a connection whose turn it is."""
        self.commands_processed += 1
        connection.last_request = request[:2]  # not all of a large one
        ctx = connection.context
        lines = monitor.feed(self._monitors, ctx, request) if self._monitors else ()
        try:
            answer = dispatch(ctx, request)
        except NotResident as missing:
            answer = self._dispatch_cold(ctx, request, missing)
        except Exception:
            answer = self._report(request)
        keyspace = self.keyspace
        claims = keyspace.handed
        if claims:
            keyspace.handed = []
        if keyspace.changes and not self.settle(ctx.now_ms):
            connection.kill()
            return
        if isinstance(answer, Block):
            connection.park(self.waiters.park(connection, request, answer))
            self._timer.touch()
        elif isinstance(answer, Outcome):
            if not any(isinstance(e, Shutdown | HangUp) for e in answer.effects):
                self._answer(connection, answer.reply, claims)
            for effect in answer.effects:
                self._apply(effect, connection)
        elif isinstance(answer, Error):
            self._answer(connection, answer, claims)
        else:
            connection.reply(answer, claims)
        if lines and connection.monitoring:  # its own come after their replies
            monitor.show(connection, lines)
        if self._touched:
            self._serve()

    def _dispatch(self, ctx: Context, request: Sequence[bytes]) -> Answer:
        try:
            return dispatch(ctx, request)
        except NotResident as missing:
            return self._dispatch_cold(ctx, request, missing)
        except Exception:
            return self._report(request)

    def _dispatch_cold(
        self, ctx: Context, request: Sequence[bytes], missing: NotResident
    ) -> Answer:
        """Read what the request needs from the store, until it has everything."""
        for _ in range(_COLD_READS_MAX):
            try:
                self.load(missing)
                return dispatch(ctx, request)
            except NotResident as more:
                missing = more
            except Exception:
                return self._report(request)
        return _INTERNAL_ERROR

    def _report(self, request: Sequence[bytes]) -> Error:
        """A handler's bug. With changes made by half, memory cannot be trusted."""
        traceback.print_exc()
        name = request[0][:32]
        if self.keyspace.changes:
            self._fatal(f"{name!r} failed after it had changed something")
        say(f"{name!r} failed; nothing changed")
        return _INTERNAL_ERROR

    def _answer(
        self, connection: Connection, reply: Reply, claims: Sequence[HandOut]
    ) -> None:
        if type(reply) is Error:
            self.errors[reply.text.split(b" ", 1)[0][:32].decode("latin-1")] += 1
        connection.reply(reply, claims)

    def settle(self, now_ms: int) -> bool:
        """Take what was changed; note the keys it touched. False when the store
        lost it at once: nothing that saw it may be answered."""
        keyspace = self.keyspace
        changes = keyspace.take()
        while keyspace.notices:
            say(keyspace.notices.pop(0))
        if not changes:
            return True
        self.committer.add(changes, now_ms)
        if self.keyspace is not keyspace:
            return False
        if self.schedule.tick_due_ms is None:
            self.schedule.tick_due_ms = now_ms + TICK_MS
        if not self._timer.touched:
            self._timer.touch()
        if self.waiters.count:
            self._touch(changes)
        return True

    def _take_claims(self) -> Sequence[HandOut]:
        claims, self.keyspace.handed = self.keyspace.handed, []
        return claims

    def _touch(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.WAKES:
                target = change.target
                value = target.stream if isinstance(target, Group) else target
                if (value.db, value.key) in self.waiters:
                    self._touched[value.db, value.key] = None
                if isinstance(change, Renamed):
                    old = change.old_db, change.old_key
                    if old in self.waiters:
                        self._touched[old] = None

    def _serve(self) -> None:
        """Serve waiters until nothing they changed touches another one."""
        if self._serving:
            return
        self._serving = True
        try:
            while self._touched:
                key = next(iter(self._touched))
                del self._touched[key]
                for waiter in self.waiters.in_turn(key):
                    self._try(key, waiter)
        finally:
            self._serving = False

    def _try(self, key: Key, waiter: Waiter) -> None:
        connection = waiter.connection
        ctx = connection.context
        self.read_clock(ctx)
        if not waiter.parked:  # keys expired, and the store failed at that
            return
        ctx.again, ctx.deadline_ms = True, waiter.deadline_ms
        ctx.frozen_ids = waiter.frozen_ids
        ctx.waiters_left = self.waiters.ahead(key, waiter)
        answer = self._dispatch(ctx, waiter.request)
        ctx.again, ctx.deadline_ms, ctx.frozen_ids = False, None, None
        ctx.waiters_left = 1
        claims = self._take_claims()
        if not self.settle(ctx.now_ms) or isinstance(answer, Block):
            return
        self.waiters.remove(waiter)
        reply = answer.reply if isinstance(answer, Outcome) else answer
        self._answer(connection, reply, claims)
        connection.resume()

    # --- effects

    def _apply(self, effect: Effect, connection: Connection) -> None:
        match effect:
            case Close():
                connection.end()
            case HangUp():
                connection.kill()
            case Monitor():
                connection.monitoring = True
                self._monitors[connection.id] = connection
            case Reset():
                connection.monitoring = False
                self._monitors.pop(connection.id, None)
                connection.distrust()
            case Kill():
                self._kill(effect, connection)
            case Shutdown():
                self.stopped.set()

    def _kill(self, effect: Kill, by: Connection) -> None:
        for client_id in effect.client_ids:
            connection = self._connections.get(client_id)
            if connection is by:
                connection.end()
            elif connection is not None:
                connection.kill()

    # --- time

    def end_claims(self, now_ms: int) -> None:
        """Claims whose deadline has come lapse."""
        while True:
            try:
                self.keyspace.expire_claims(now_ms)
                break
            except NotResident as missing:
                self.load(missing)
        self.settle(now_ms)
        self._serve()

    def expire_keys(self, now_ms: int, wall_ms: int) -> None:
        self.keyspace.expire_due(wall_ms)
        self.settle(now_ms)
        self._serve()

    # --- the store

    def load(self, missing: NotResident) -> None:
        self.cold.load(missing)

    def _on_failure(self, failure: Failure) -> None:
        """Batches were lost: so are the replies that saw them, and the memory."""
        word = "may not have been" if failure.unknown else "were not"
        partitions = ", ".join(map(str, failure.partitions))
        say(f"changes of {partitions} {word} written")
        self.committer.abandon()
        self._touched.clear()
        self.keyspace, _ = self._open()
        for connection in list(self._connections.values()):
            connection.context.keyspace = self.keyspace
            if connection.output.waiting or connection.waiter or connection.watched:
                connection.watched.clear()  # of the memory that is gone
                connection.kill()
        self._timer.touch()

    # --- what handlers ask

    def info(self) -> Mapping[str, Mapping[str, object]]:
        return describe_server(self)

    def connections(self) -> Sequence[Connection]:
        return list(self._connections.values())

    def clients(self) -> Sequence[Client]:
        return list(self._connections.values())

    def unblock(self, client_id: int, *, error: bool) -> bool:
        connection = self._connections.get(client_id)
        waiter = connection.waiter if connection is not None else None
        if connection is None or waiter is None:
            return False
        self.waiters.remove(waiter)
        connection.reply(Error(UNBLOCKED) if error else waiter.timeout)
        connection.resume()
        return True

    def reset_statistics(self) -> None:
        self.commands_processed = 0
        self.connections_received = self.connections_rejected = 0
        self.errors.clear()
        self.users.refusals.counts.clear()

    def command_name(self, request: Sequence[bytes]) -> str:
        """As CLIENT LIST shows the last command."""
        command = COMMANDS.get(request[0].lower()) if request else None
        if command is not None and command.subcommands and len(request) > 1:
            command = command.subcommands.get(request[1].lower())
        return command.name.decode() if command is not None else "NULL"
