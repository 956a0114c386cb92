"""``python -m tests.simulation 20000`` runs so many examples, in parallel;
``python -m tests.simulation mutants`` shows that ten planted bugs are found."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.simulation import mutants
from tests.simulation.promises import Promise
from tests.simulation.runs import MACHINES, Report, as_json, run_here, run_many, summed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=__doc__
    )
    parser.add_argument("what", help="how many examples, or: mutants, or: one")
    parser.add_argument("--machine", choices=MACHINES, default="group", help="of one")
    parser.add_argument("--examples", type=int, default=5000, help="at most, of a hunt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", action="store_true", help="of one")
    options = parser.parse_args()
    seed, workers = options.seed, options.workers
    if options.what == "one":
        ran = run_here(options.machine, options.examples, seed, shrink=options.shrink)
        print(as_json(ran))
        return 0
    if options.what == "mutants":
        return _mutants(options.examples, seed, workers)
    return _many(int(options.what), seed, workers)


def _many(examples: int, seed: int, workers: int) -> int:
    reports: list[Report] = []
    for report in run_many(examples, seed, workers):
        reports.append(report)
        if report.broken:
            print(f"{report.machine}, seed {report.seed}: {report.broken}")
            print(report.told)
    for name, number in summed(reports).items():
        print(f"{name}: {number}")
    failures = sum(bool(report.broken) for report in reports)
    print(f"examples: {sum(r.examples for r in reports)}, failures: {failures}")
    return 1 if failures else 0


def _mutants(examples: int, seed: int, workers: int) -> int:
    missed = 0
    with ThreadPoolExecutor(workers) as pool:
        hunts = pool.map(lambda m: mutants.hunt(m, examples, seed), mutants.MUTANTS)
        for mutant, report in zip(mutants.MUTANTS, hunts, strict=True):
            by = "NOT FOUND"
            if report.broken in Promise.__members__:
                by = f"{report.broken}: {Promise[report.broken].value}"
            elif report.broken:
                by = f"NOT BY A PROMISE: {report.told}"
            missed += report.broken not in Promise.__members__
            print(f"{mutant.bug}: {report.examples} examples, {by}", flush=True)
    print(f"{len(mutants.MUTANTS)} bugs, {missed} not found by a promise")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
