"""felixresp beside redis-server, both durable, in turns.

Both run all the time; each round loads one, then the other, on a key of its own. What
counts is the median of the ratios of single rounds: a slow disk or a busy machine
hits both halves of a round.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.load import Measured, Shape, build, run
from tests.server_process import ServerProcess
from tests.wire import Wire


def compare(shape: Shape, rounds: int) -> Iterator[str]:
    """Lines to print, one as soon as each run has ended."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        program = build(directory)
        ours, theirs = directory / "felixresp", directory / "redis"
        theirs.mkdir()
        with (
            # Rewriting its file in the middle of a run would cost Redis rounds.
            ServerProcess.start_redis(
                theirs, "--auto-aof-rewrite-percentage", "0"
            ) as redis,
            ServerProcess.start(ours, "--durability=always") as felixresp,
        ):
            yield from _rounds(program, shape, rounds, redis.port, felixresp.port)


def _rounds(
    program: Path, shape: Shape, rounds: int, redis_port: int, felixresp_port: int
) -> Iterator[str]:
    yield f"{shape}"
    ratios = []
    for number in range(1, rounds + 1):
        redis = _load(program, shape, redis_port, number)
        yield _line(number, "redis-server", redis)
        felixresp = _load(program, shape, felixresp_port, number)
        ratios.append(felixresp.rate / redis.rate)
        yield f"{_line(number, 'felixresp', felixresp)}  ratio {ratios[-1]:.2f}"
    yield f"felixresp to redis-server, median ratio: {statistics.median(ratios):.2f}"


def _load(program: Path, shape: Shape, port: int, number: int) -> Measured:
    key = f"bench:{number}"
    with Wire(port) as wire:
        wire.call("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    return run(program, port, key, shape)


def _line(number: int, server: str, measured: Measured) -> str:
    line = (
        f"round {number}  {server:<12} {measured.rate:>8.0f} msgs/s"
        f"  XADD p50 {measured.add_p50_us:>6.0f} p99 {measured.add_p99_us:>6.0f} us"
    )
    if measured.trip_p50_us:
        line += (
            f"  XADD to delivery p50 {measured.trip_p50_us:>6.0f}"
            f" p99 {measured.trip_p99_us:>6.0f} us"
        )
    return line
