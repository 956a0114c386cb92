"""A stream of millions of entries: memory, start times, reads at random places."""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.load import Shape, build, run
from tests.server_process import ServerProcess
from tests.wire import Wire, named

KEY = "memory"
FLAGS = ("--durability=always",)
READS = 2000
READ_COUNT = 100
SETTLE_MAX_S = 90.0


def measure(entries: int, seed: int = 0) -> Iterator[str]:
    """Lines to print, as they become known."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        program = build(directory)
        data = directory / "data"
        shape = Shape("xadd", producers=4, pipeline=500, messages=entries)
        with ServerProcess.start(data, *FLAGS) as server:
            loaded = run(program, server.port, KEY, shape)
            yield f"loaded {entries} entries in {loaded.seconds:.1f} s"
            yield f"just loaded: {_memory(server.pid)}"
            _settle(server.pid)
            yield f"settled: {_memory(server.pid)}"
            started = time.monotonic()
            server.terminate()
            yield f"clean stop: {time.monotonic() - started:.2f} s"
            yield f"on disk: {_disk_mb(data):.0f} MB"
        with ServerProcess.start(data, *FLAGS) as server:
            yield f"start after a clean stop: {_start(server)}"
            _touch(server)  # something new, so that there is a tail to replay
        with ServerProcess.start(data, *FLAGS) as server:
            yield f"start after kill -9: {_start(server)}"
            yield f"started: {_memory(server.pid)}"
            _warm(data)
            yield from _reads(server, random.Random(seed))
            yield f"after the reads: {_memory(server.pid)}"


def _start(server: ServerProcess) -> str:
    began = time.monotonic()
    with Wire(server.port) as wire:
        wire.call("PING")
        ping_s = time.monotonic() - began
        length = wire.call("XLEN", KEY)
    return (
        f"{server.start_s:.2f} s to the start line,"
        f" {server.start_s + ping_s:.2f} s to the first PING; XLEN {length}"
    )


def _touch(server: ServerProcess) -> None:
    add = ("XADD", KEY, "*", "f", b"v" * 100)
    with Wire(server.port) as wire:
        for _ in range(100):
            wire.call_many([add] * 1000)


def _reads(server: ServerProcess, dice: random.Random) -> Iterator[str]:
    with Wire(server.port) as wire:
        stream = named(wire.call("XINFO", "STREAM", KEY))
        first = int(stream["first-entry"][0].split(b"-")[0])
        last = int(stream["last-generated-id"].split(b"-")[0])
        places = [dice.randint(first, last) for _ in range(READS)]
        times_ms = sorted(_read_ms(wire, place) for place in places)
    p99 = times_ms[len(times_ms) * 99 // 100]
    yield (
        f"XRANGE of {READ_COUNT} at {READS} random places:"
        f" p50 {statistics.median(times_ms):.2f} p99 {p99:.2f}"
        f" max {times_ms[-1]:.2f} ms"
    )


def _warm(directory: Path) -> None:
    """Read every file, so that the page cache holds what memory can hold."""
    for path in directory.rglob("*"):
        if path.is_file():
            left = path.stat().st_blocks * 512  # a sparse file may look endless
            with path.open("rb") as file:
                while left > 0 and (piece := file.read(1024 * 1024)):
                    left -= len(piece)


def _read_ms(wire: Wire, place: int) -> float:
    began = time.perf_counter()
    wire.call("XRANGE", KEY, place, "+", "COUNT", READ_COUNT)
    return (time.perf_counter() - began) * 1000


def _settle(pid: int) -> None:
    """Until the process has used no CPU to speak of for three seconds."""
    give_up_at = time.monotonic() + SETTLE_MAX_S
    quiet, before = 0, _cpu_ticks(pid)
    while quiet < 3 and time.monotonic() < give_up_at:
        time.sleep(1)
        now = _cpu_ticks(pid)
        quiet = quiet + 1 if now - before <= 2 else 0
        before = now


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _memory(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.findall(r"(RssAnon|RssFile|VmHWM):\s+(\d+) kB", status)
    return ", ".join(f"{name} {int(kb) / 1024:.0f} MB" for name, kb in found)


def _disk_mb(directory: Path) -> float:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files) / 1024**2
