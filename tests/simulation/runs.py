"""Many examples of the simulation: in this process, or in several at once.

Each chunk has a seed of its own, so that it can be run again by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from traceback import format_exc

from hypothesis import Phase, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    run_state_machine_as_test,
)

from tests.simulation.promises import Broken

ROOT = Path(__file__).parents[2]
MACHINES = {
    "group": "test_machine:GroupMachine",
    "memory": "test_memory:MemoryMachine",
    "deferred": "test_memory:DeferredMachine",
    "journal": "test_journal:JournalMachine",
}
SHARES = {"group": 6, "memory": 2, "deferred": 1, "journal": 1}  # of ten examples
CHUNK = 250
STEPS = 50


@dataclass
class Report:
    """What a chunk of examples came to."""

    machine: str
    seed: int
    examples: int = 0
    broken: str = ""  # the promise's name; "crash" for any other failure
    told: str = ""
    counts: Counter[str] = field(default_factory=Counter)


def run_here(machine: str, examples: int, seed_: int, *, shrink: bool) -> Report:
    """Stops at the first failure; shrinking it takes much longer."""
    module, _, name = MACHINES[machine].partition(":")
    base = getattr(import_module(f"tests.simulation.{module}"), name)
    report = Report(machine, seed_)

    class Counted(base):  # type: ignore[misc, valid-type]
        def setup(self, *args: object) -> None:
            if not report.broken:
                report.examples += 1
            super().setup(*args)

        @invariant()
        def is_counted(self) -> None:
            report.counts["steps"] += 1
            report.counts.update(self.seen())

    found: type[RuleBasedStateMachine] = seed(seed_)(Counted)
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    wanted = settings(
        base.TestCase.settings,
        max_examples=examples,
        stateful_step_count=STEPS,
        phases=phases,
        database=None,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(found, settings=wanted)
    except Broken as broken:
        report.broken, report.told = broken.promise.name, _tell(broken)
    except Exception as crash:
        report.broken, report.told = "crash", _tell(crash) + format_exc()
    return report


def run_apart(
    machine: str, examples: int, seed_: int, root: Path = ROOT, *, shrink: bool = False
) -> Report:
    """The same in a process of its own, on the source tree at ``root``."""
    words = ["--machine", machine, "--examples", str(examples), "--seed", str(seed_)]
    words += ["--shrink"] * shrink
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "one", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return Report(machine, seed_, broken="crash", told=done.stderr[-4000:])
    told = json.loads(done.stdout.splitlines()[-1])
    return Report(**{**told, "counts": Counter(told["counts"])})


def run_many(examples: int, first_seed: int, workers: int) -> Iterator[Report]:
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(
            lambda chunk: run_apart(*chunk), _chunks(examples, first_seed)
        )


def as_json(report: Report) -> str:
    return json.dumps(vars(report))


def _chunks(examples: int, first_seed: int) -> Sequence[tuple[str, int, int]]:
    chunks: list[tuple[str, int, int]] = []
    for machine, share in SHARES.items():
        left = examples * share // sum(SHARES.values())
        while left > 0:
            chunks.append((machine, min(left, CHUNK), first_seed + len(chunks)))
            left -= CHUNK
    return chunks


def _tell(failure: BaseException) -> str:
    notes: Sequence[str] = getattr(failure, "__notes__", ())
    return "\n".join([f"{type(failure).__name__}: {failure}", *notes])


def summed(reports: Sequence[Report]) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update({f"{report.machine} examples": report.examples})
        counts.update(report.counts)
    return counts
