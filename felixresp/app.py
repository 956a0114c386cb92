"""The composition root: settings, clock, store and server, put together.

Everything is checked before the port opens: a server that says it is ready has
its directory, its last state and its address.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from . import __version__
from .clock import SystemClock
from .config import Settings
from .server.server import Server
from .server.users_file import UsersFileError
from .storage.base import Recovered, StoreError
from .storage.journal import JournalStore

_RESERVED_FILES = 64  # the journal, the database, listeners, and what comes and goes


class StartError(Exception):
    """The server cannot start; the text is one line that says what to do."""


def run(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or SHUTDOWN. Raises StartError."""
    asyncio.run(_serve(settings, announce))


async def _serve(settings: Settings, announce: Callable[[str], None]) -> None:
    _make_room(settings)
    clock = SystemClock()
    began_ms = clock.now_ms()
    server = _open(settings, clock)
    try:
        await server.listen()
    except OSError as error:
        await server.stop()
        raise StartError(_address_problem(settings, error)) from None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopped.set)
    gc.collect()
    gc.freeze()  # what was loaded stays; later collections need not look at it
    announce(_ready_line(server, clock.now_ms() - began_ms))
    await server.stopped.wait()
    await server.stop()


def _make_room(settings: Settings) -> None:
    """Clients must never take the descriptors that the journal needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.maxclients + _RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            settings.maxclients = max(soft - _RESERVED_FILES, 1)
            print(
                f"felixresp: maxclients is {settings.maxclients}, because the system"
                f" lets a process open {soft} files (ulimit -n)",
                file=sys.stderr,
                flush=True,
            )


def _open(settings: Settings, clock: SystemClock) -> Server:
    try:
        return Server(settings, JournalStore(Path(settings.dir), settings), clock)
    except (StoreError, UsersFileError) as error:
        raise StartError(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        msg = f"cannot use the directory {settings.dir}: {reason}; pass another --dir"
        raise StartError(msg) from None


def _address_problem(settings: Settings, error: OSError) -> str:
    address = f"{settings.bind}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{address} is in use; stop what listens there or pass another --port"
    if error.errno == errno.EACCES:
        return f"{address} needs more rights; pass a --port above 1023"
    reason = error.strerror or str(error)
    return f"cannot listen on {address}: {reason}; pass another --bind or --port"


def _ready_line(server: Server, took_ms: int) -> str:
    settings = server.settings
    return (
        f"felixresp {__version__} ready on {settings.bind}:{server.port},"
        f" data in {settings.dir}, durability {settings.durability};"
        f" {_recovery(server.recovered)} in {took_ms / 1000:.2f} s"
    )


def _recovery(found: Recovered) -> str:
    line = (
        f"recovered {found.streams} streams, {found.groups} groups,"
        f" {found.entries} entries (replayed {found.changes_replayed} changes)"
    )
    if found.torn_bytes:
        line += f", cut {found.torn_bytes} bytes of an unfinished write"
    return line
