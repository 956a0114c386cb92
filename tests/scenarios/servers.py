"""Where the scenarios on the wire run: a process, or a server in this one.

A site outlives its servers: one started after a kill finds what its store kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from felixresp.config import Settings, Value
from felixresp.storage.memory import Deferred, MemoryStore
from tests.server.running import RunningServer
from tests.server_process import ServerProcess

Running = ServerProcess | RunningServer


class Site(Protocol):
    def start(self, **settings: Value) -> Running: ...


class ProcessSite:
    """The real thing, and its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "data"

    def start(self, **settings: Value) -> ServerProcess:
        flags = [
            word
            for name, value in settings.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        return ServerProcess.start(self._directory, *flags)


class MemorySite:
    def __init__(self, partitions: int = 1, deferred: Deferred | None = None) -> None:
        self._store = MemoryStore(Settings(), partitions, deferred)

    def start(self, **settings: Value) -> RunningServer:
        return RunningServer(self._store, **settings)


SITES: dict[str, Callable[[Path], Site]] = {
    "process": ProcessSite,
    "memory": lambda _: MemorySite(),
    "memory late": lambda _: MemorySite(deferred=Deferred(ticks=3)),
    "memory out of step": lambda _: MemorySite(8, Deferred(ticks=1, spread=4)),
}
