"""``python -m conformance.golden``: felixresp beside the recorded replies of 8.8.

The recording script of the golden is run as it is, against felixresp; replies
are paired by section and order. Lines marked ``~`` hold times and are left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from . import divergences, servers
from .divergences import GOLDEN, Divergence, Kind
from .servers import ServerDidNotStart, Target

DEFAULT_GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden"
RECORDING_TIMEOUT_S = 120
PROTOCOLS = (2, 3)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command (or the reply of one blocked client) and its reply."""

    section: str
    command: str
    reply: str
    volatile: bool


def parse(text: str) -> list[Recorded]:
    recorded: list[Recorded] = []
    section = command = ""
    for line in text.splitlines():
        bare = line.removeprefix("~")
        if line.startswith("## "):
            section = line[3:]
        elif bare.startswith("> "):
            command = bare[2:]
        elif bare.startswith("< "):
            recorded.append(Recorded(section, command, bare[2:], bare != line))
        elif line.startswith("   "):
            name, _, reply = line.strip().partition(" < ")
            recorded.append(Recorded(section, name, reply, volatile=False))
    return recorded


def record(directory: Path, port: int, protocol: int) -> list[Recorded]:
    command = [sys.executable, str(directory / "record.py"), str(port), str(protocol)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=RECORDING_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        text = output if isinstance(output, str) else output.decode()
        print(f"the recording did not end in {RECORDING_TIMEOUT_S} s")
        return parse(text)
    if done.returncode:
        print(f"the recording failed: {done.stderr.strip().splitlines()[-1]}")
    return parse(done.stdout)


def compare(
    golden: Sequence[Recorded], ours: Sequence[Recorded], declared: Sequence[Divergence]
) -> Counter[Kind | None]:
    """Count the differing replies per type, printing what is unexplained."""
    counts: Counter[Kind | None] = Counter()
    for wanted, got in zip_longest(_by_place(golden), _by_place(ours)):
        if wanted is None or got is None or wanted[0] != got[0]:
            place = (wanted or got or [("", 0)])[0]
            print(f"unexplained: no reply to compare from {place} on")
            counts[None] += 1
            break
        theirs, mine = wanted[1], got[1]
        if theirs.volatile or theirs.reply == mine.reply:
            continue
        section = f"golden: {theirs.section}"
        found = divergences.explain(declared, section, theirs.command, GOLDEN)
        counts[found.kind if found else None] += 1
        if found is None:
            print(f"unexplained: {theirs.section}\n    {theirs.command}")
            print(f"    8.8:       {theirs.reply[:600]}")
            print(f"    felixresp: {mine.reply[:600]}")
    return counts


def _by_place(
    recorded: Sequence[Recorded],
) -> list[tuple[tuple[str, int, str], Recorded]]:
    """Each reply with its section, its place in it and its command."""
    places: Counter[str] = Counter()
    placed = []
    for one in recorded:
        places[one.section] += 1
        placed.append(((one.section, places[one.section], one.command), one))
    return placed


def run(
    directory: Path,
    target: Target,
    protocols: Sequence[int],
    mode: str = servers.LEASE,
) -> bool:
    """Compare in each protocol; True where nothing is unexplained."""
    declared = divergences.load(mode=mode)
    explained = True
    for protocol in protocols:
        name = f"redis-8.8-resp{protocol}.txt"
        golden = parse((directory / name).read_text())
        counts = compare(golden, record(directory, target.port, protocol), declared)
        fixed = sum(not one.volatile for one in golden)
        words = [f"{counts[kind]} {kind}" for kind in Kind if counts[kind]]
        words.append(f"{counts[None]} unexplained")
        same = fixed - sum(counts.values())
        print(f"RESP{protocol}: {fixed} replies, {same} identical, {', '.join(words)}")
        explained = explained and not counts[None]
    return explained


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.golden", description=__doc__
    )
    parser.add_argument("--golden", type=Path, default=DEFAULT_GOLDEN)
    parser.add_argument("--port", type=int, help="of a running server; else one starts")
    parser.add_argument("--resp", type=int, choices=PROTOCOLS, action="append")
    parser.add_argument("--mode", choices=servers.MODES, default=servers.LEASE)
    options = parser.parse_args(argv)
    if not (options.golden / "record.py").exists():
        parser.error(f"no recording in {options.golden}: name it with --golden DIR")
    try:
        with ExitStack() as stack:
            if options.port:
                target = servers.target("server", "127.0.0.1", options.port)
            else:
                target = stack.enter_context(servers.felixresp(options.mode))
            protocols = options.resp or PROTOCOLS
            explained = run(options.golden, target, protocols, options.mode)
    except ServerDidNotStart as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if explained else 1


if __name__ == "__main__":
    sys.exit(main())
