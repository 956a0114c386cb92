"""Ten bugs, planted one at a time in a copy of the sources: each must be found.

A bug is an exact piece of source text, or several, and what stands there instead.
A piece that is not there exactly once any more is an error, so that no bug is
planted nowhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.simulation.runs import ROOT, Report, run_apart

ENGINE = Path("felixresp") / "engine"
ROUND = 500  # examples with one seed


class Edit(NamedTuple):
    file: str  # of the engine
    right: str
    wrong: str


class Mutant(NamedTuple):
    bug: str
    edits: Sequence[Edit]


MUTANTS = (
    Mutant(
        "cursor over a gap",
        [
            Edit(
                "group.py",
                "stop = min(stop, order[low] - 1)",
                "stop = min(stop, order[low])",
            )
        ],
    ),
    Mutant(
        "attempt not counted on a nack",
        [
            Edit(
                "settle.py",
                "if wish.mode == SILENT:",
                "if wish.mode in (SILENT, FAIL):",
            )
        ],
    ),
    Mutant(
        "stale receipt accepted",
        [Edit("settle.py", "and handout.nonce == nonce", "and handout.nonce != 0")],
    ),
    Mutant(
        "dead letter recorded after the cursor passed",
        [
            Edit(  # the frame has the end of the entry, the next one its letter
                "keyspace.py",
                "        changes = self.changes\n        self.changes = []\n",
                """\
        from .changes import Died, Finished, HandedBack

        changes = self.__dict__.pop("late", [])
        for change in self.changes:
            if type(change) is not Died:
                changes.append(change)
                continue
            for letter in change.letters:
                known = {letter.id: 0}, {}, letter.dead_ms, change.how, letter.reason
                changes.append(HandedBack(change.target, *known))
                changes.append(Finished(change.target, [letter.id]))
            self.__dict__.setdefault("late", []).append(change)
        self.changes = []
""",
            ),
            Edit("group.py", "if id_ not in listed:", "if id_ not in self.stories:"),
            Edit(
                "applying.py",
                "if group.is_claimed(letter.id):",
                "if letter.id in group.pending and group.is_claimed(letter.id):",
            ),
        ],
    ),
    Mutant(
        "redriven forgotten on restart",
        [
            Edit(
                "recovery.py",
                "    group.deadlines.clear()\n",
                """\
    if group.dead_letters.redriven:
        group.finish(list(group.dead_letters.redriven))
    group.deadlines.clear()
""",
            )
        ],
    ),
    Mutant(
        "delay lost on restart",
        [
            Edit(
                "recovery.py",
                "group.delay(id_, min(until_ms, latest_ms))",
                "group.owe([id_])",
            )
        ],
    ),
    Mutant(
        "reserved entry given twice",
        [
            Edit(
                "members.py",
                "        if reserved.get(id_) == client_id:\n",
                "        if id_ in group.pending:\n",
            ),
            Edit(
                "members.py",
                "while kept and reserved.get(kept[-1]) != client_id:",
                "while kept and kept[-1] not in group.pending:",
            ),
        ],
    ),
    Mutant(
        "lapse ignored while a waiter waits",
        [
            Edit(
                "changes.py",
                """\
    how: bytes  # empty: the reply never left, there was no attempt
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = True
""",
                """\
    how: bytes
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = False
""",
            )
        ],
    ),
    Mutant(
        "seek keeping claims",
        [
            Edit(
                "applying.py",
                '''\
    """Dead letters stay; redriven entries go out once more, as owed."""
    group.touch()
''',
                """\
    group.touch()
    group.head = group.cursor = change.head
    group.entries_read, group.passed = change.entries_read, change.passed
    group.reorder()
    return
""",
            )
        ],
    ),
    Mutant(
        "cap off by one",
        [Edit("poll.py", "        room = left\n", "        room = left + 1\n")],
    ),
)


def hunt(mutant: Mutant, examples: int, first_seed: int) -> Report:
    """Run the machine on the mutant until a promise breaks; counts all examples."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        plant(mutant, root)
        run = 0
        while True:
            count = min(ROUND, examples - run)
            report = run_apart("group", count, first_seed, root)
            run += report.examples
            if report.broken or run >= examples or not report.examples:
                report.examples = run
                return report
            first_seed += 1


def plant(mutant: Mutant, root: Path) -> None:
    """Copy the sources to ``root``, with the bug in them."""
    without = shutil.ignore_patterns("__pycache__", ".*")
    for package in ("felixresp", "tests"):
        shutil.copytree(ROOT / package, root / package, ignore=without)
    for edit in mutant.edits:
        file = root / ENGINE / edit.file
        source = file.read_text()
        if source.count(edit.right) != 1:
            msg = f"{mutant.bug}: {edit.file} has not this text once:\n{edit.right}"
            raise LookupError(msg)
        file.write_text(source.replace(edit.right, edit.wrong))
