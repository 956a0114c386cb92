"""A server as a process of its own, for the tests that kill it.

``start`` returns when the server has said that it listens, never before. What the
server prints is kept in ``lines``: a thread reads it, so a full pipe cannot stop it.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

HOST = "127.0.0.1"
START_TIMEOUT_S = 120.0  # a recovery under strace on a busy machine
_ADDRESS = re.compile(r"127\.0\.0\.1:(\d+)")
_REDIS_READY = "Ready to accept connections"


class DidNotStart(Exception):
    """The process ended, or said nothing in time; holds what it printed."""


class ServerProcess:
    """One running server. Ends it when the ``with`` block is left."""

    def __init__(self, command: Sequence[str], ready: re.Pattern[str]) -> None:
        self.lines: list[str] = []
        self.port = 0
        began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            text=True,
            errors="replace",
        )
        assert self.process.stdout is not None
        self._ready: queue.SimpleQueue[re.Match[str] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=self._read, args=(self.process.stdout, ready), daemon=True
        )
        self._reader.start()
        self._wait_until_ready(command)
        self.start_s = time.monotonic() - began

    @classmethod
    def start(
        cls,
        directory: Path,
        *flags: str,
        port: int = 0,
        wrapper: Sequence[str] = (),
    ) -> Self:
        """felixresp on ``directory``; ``wrapper`` goes before it (strace -D ...)."""
        command = [*wrapper, sys.executable, "-m", "felixresp"]
        command += ["--port", str(port), "--dir", str(directory), *flags]
        return cls(command, _ADDRESS)

    @classmethod
    def start_redis(cls, directory: Path, *flags: str, port: int = 0) -> Self:
        """Debian's redis-server, every write synced. Needs it on the PATH."""
        port = port or free_port()
        command = ["redis-server", "--port", str(port), "--dir", str(directory)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        server = cls([*command, *flags], re.compile(_REDIS_READY))
        server.port = port
        return server

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    def kill(self) -> None:
        """SIGKILL, as a crash; back when the process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM, as an orderly stop; the exit status."""
        return self._end(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def _end(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait()
        # The pipe ends when its last holder does, a wrapper's tracer included.
        self._reader.join()
        return status

    def _read(self, output: IO[str], ready: re.Pattern[str]) -> None:
        with output:
            for line in output:
                self.lines.append(line.rstrip("\n"))
                if self.port == 0 and (found := ready.search(line)):
                    self._ready.put(found)
        self._ready.put(None)

    def _wait_until_ready(self, command: Sequence[str]) -> None:
        try:
            found = self._ready.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            found = None
        if found is None:
            self._end(signal.SIGKILL)
            msg = "\n".join([" ".join(command), *self.lines])
            raise DidNotStart(msg)
        if found.groups():
            self.port = int(found[1])


def missing(*programs: str) -> str:
    """A line for pytest.skip naming what is not installed, or an empty string."""
    absent = [name for name in programs if shutil.which(name) is None]
    return f"needs {' and '.join(absent)}" if absent else ""


def free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        number: int = server.getsockname()[1]
        return number


def _environment() -> dict[str, str]:
    """This one, without settings for felixresp that a developer may have set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FELIX_")}
    return kept | {"PYTHONUNBUFFERED": "1"}
