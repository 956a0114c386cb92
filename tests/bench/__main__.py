"""``python -m tests.bench loop | memory | engine``: prints numbers, asserts nothing."""

from __future__ import annotations

import argparse
import sys

from tests.bench import engine, loop, memory
from tests.bench.load import Shape
from tests.server_process import missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    runs = parser.add_subparsers(dest="run")
    parser.set_defaults(run="loop")
    looped = runs.add_parser("loop", help="beside redis-server: XADD, XREADGROUP, XACK")
    for group in (parser, looped):
        group.add_argument("--mode", choices=("loop", "xadd"), default="loop")
        group.add_argument("--producers", type=int, default=40)
        group.add_argument("--consumers", type=int, default=10)
        group.add_argument("--count", type=int, default=10)
        group.add_argument("--pipeline", type=int, default=1)
        group.add_argument("--messages", type=int, default=100_000)
        group.add_argument("--rounds", type=int, default=5)
    filled = runs.add_parser("memory", help="a stream of millions of entries")
    filled.add_argument("--entries", type=int, default=5_000_000)
    runs.add_parser("engine", help="poll and ack in the group engine alone")
    options = parser.parse_args()
    if options.run == "engine":
        for line in engine.measure():
            print(line, flush=True)
        return 0
    needs = ["gcc", "redis-server"] if options.run == "loop" else ["gcc"]
    if line := missing(*needs):
        print(line, file=sys.stderr)
        return 2
    if options.run == "memory":
        lines = memory.measure(options.entries)
    else:
        shape = Shape(
            mode=options.mode,
            producers=options.producers,
            consumers=options.consumers,
            count=options.count,
            pipeline=options.pipeline,
            messages=options.messages,
        )
        lines = loop.compare(shape, options.rounds)
    for line in lines:
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
