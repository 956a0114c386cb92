"""The simulation notices bugs: two of those that mutants.py can plant, and that
every one of them still can be planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, hunt, plant
from tests.simulation.promises import Promise

QUICK = {"stale receipt accepted": "RECEIPT_STALE", "cap off by one": "CAP"}


@pytest.mark.parametrize("bug", QUICK)
def test_a_planted_bug_is_found_by_the_promise_it_breaks(bug: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.bug == bug)

    report = hunt(mutant, 1000, 1)

    assert report.broken == QUICK[bug], report.told
    assert report.broken in Promise.__members__


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_every_bug_can_be_planted(mutant: Mutant, tmp_path: Path) -> None:
    plant(mutant, tmp_path)

    for edit in mutant.edits:
        assert edit.wrong in (tmp_path / "felixresp/engine" / edit.file).read_text()
