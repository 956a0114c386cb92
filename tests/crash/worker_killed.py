"""A worker is killed while it holds 100 entries; another one only waits.

It sends one XREADGROUP BLOCK 0 and nothing else: the claims end by themselves.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.server_process import ServerProcess
from tests.wire import Wire, entry_ids

STREAM, GROUP = "worker:stream", "worker:group"
ENTRIES = 100
VISIBILITY_MS = 1000


@dataclass(frozen=True, slots=True)
class Report:
    added: list[bytes]
    received: list[bytes]
    pending: dict[bytes, tuple[bytes, int]]  # id: consumer, deliveries
    killed_ms: float  # since the worker had its entries
    received_ms: float  # likewise

    def lines(self) -> list[str]:
        return [
            f"{0:8.1f} ms  the worker holds {len(self.added)} entries",
            f"{self.killed_ms:8.1f} ms  the worker is gone (SIGKILL)",
            f"{VISIBILITY_MS:8.1f} ms  its claims lapse, give or take the hand-out",
            f"{self.received_ms:8.1f} ms  the waiting one has {len(self.received)}",
            f"in order: {self.received == self.added}",
            f"deliveries: {sorted({count for _, count in self.pending.values()})}",
        ]


def run() -> Report:
    flags = (f"--group-visibility-timeout-ms={VISIBILITY_MS}",)
    with (
        tempfile.TemporaryDirectory() as directory,
        ServerProcess.start(Path(directory), *flags) as server,
        Wire(server.port) as wire,
    ):
        wire.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
        add = ("XADD", STREAM, "*", "field", "value")
        added = wire.call_many([add] * ENTRIES)
        killed_ms, held_at = _killed_worker(server.port)
        received = entry_ids(wire.call(*_poll("second"), "BLOCK", 0, *_NEW))
        received_ms = (time.monotonic() - held_at) * 1000
        rows = wire.call("XPENDING", STREAM, GROUP, "-", "+", 2 * ENTRIES)
    pending = {row[0]: (row[1], row[3]) for row in rows}
    return Report(added, received, pending, killed_ms, received_ms)


_NEW = ("STREAMS", STREAM, ">")


def _poll(consumer: str) -> tuple[str | int, ...]:
    return ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", ENTRIES)


def _killed_worker(port: int) -> tuple[float, float]:
    """A worker process polls once, says so, and is killed; when, and held since."""
    command = [sys.executable, "-m", "tests.crash.worker_killed", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        held_at = time.monotonic()
        worker.kill()
        worker.wait()
    return (time.monotonic() - held_at) * 1000, held_at


def hold(port: int) -> None:
    """The worker process: takes what there is and never lets go."""
    with Wire(port) as wire:
        wire.call(*_poll("first"), *_NEW)
        print("holding", flush=True)
        signal.pause()


if __name__ == "__main__":
    hold(int(sys.argv[1]))
