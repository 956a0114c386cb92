"""Builds and runs the load generator, load.c."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

VALUE_BYTES = 100


@dataclass(frozen=True, slots=True)
class Shape:
    """What the clients do; ``mode`` is xadd or loop."""

    mode: str = "loop"
    producers: int = 40
    consumers: int = 10
    count: int = 10
    pipeline: int = 1
    messages: int = 100_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Latencies in microseconds; a trip is from the XADD to the delivery."""

    messages: int
    seconds: float
    add_p50_us: float
    add_p99_us: float
    trip_p50_us: float
    trip_p99_us: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


def build(directory: Path) -> Path:
    """Compile the generator into ``directory``. Needs gcc."""
    program = directory / "load"
    source = Path(__file__).with_name("load.c")
    subprocess.run(["gcc", "-O2", "-o", str(program), str(source)], check=True)
    return program


def run(program: Path, port: int, key: str, shape: Shape) -> Measured:
    """One run; in mode loop the group ``g`` of ``key`` has to be there."""
    numbers = (shape.producers, shape.consumers, shape.count, shape.pipeline)
    words = [str(port), key, shape.mode, *map(str, numbers)]
    words += [str(shape.messages), str(VALUE_BYTES)]
    said = subprocess.run(
        [str(program), *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    found = dict(zip(said[::2], map(float, said[1::2]), strict=True))
    return Measured(int(found.pop("messages")), **found)
