"""``python -m tests.crash kill | worker | verbs``: crash runs, and what they saw."""

from __future__ import annotations

import argparse
import sys

from tests.crash import kill, verbs, worker_killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    runs = parser.add_subparsers(dest="run", required=True)
    killed = runs.add_parser("kill", help="kill the server under load")
    killed.add_argument("--kills", type=int, default=50)
    killed.add_argument("--producers", type=int, default=4)
    killed.add_argument("--workers", type=int, default=4)
    killed.add_argument("--seed", type=int, default=0)
    runs.add_parser("worker", help="kill a worker that holds 100 entries")
    used = runs.add_parser("verbs", help="kill it while every verb is in use")
    used.add_argument("--minutes", type=float, default=10)
    used.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.run == "worker":
        print("\n".join(worker_killed.run().lines()))
        return 0
    if options.run == "verbs":
        outcome = verbs.run(60 * options.minutes, options.seed)
        print("\n".join(outcome.lines()))
        return 1 if outcome.verdict.broken else 0
    try:
        report = kill.run(
            options.kills, options.producers, options.workers, options.seed
        )
    except kill.Broken as broken:
        print(f"violation: {broken}")
        return 1
    print("\n".join(report.lines()))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
