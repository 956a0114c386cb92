"""The declared differences: divergences.toml, read and looked up.

A difference that no declaration covers is a defect. ``against`` limits a
declaration to one reference (a version's beginning, or ``golden``), ``mode`` to
felixresp with groups of that mode: what a lease does differently, mode redis may not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

DIVERGENCES = Path(__file__).parent / "divergences.toml"
GOLDEN = "golden"


class Kind(StrEnum):
    """Why a reply differs."""

    LEASE_MODE = "lease-mode"  # felixresp's contract, on purpose
    NOT_YET = "not-yet"  # a later version of felixresp has it
    VERSION = "version"  # the reference is older than what felixresp follows


@dataclass(frozen=True, slots=True)
class Divergence:
    """One declared difference; ``case`` and ``command`` are whole-text patterns."""

    kind: Kind
    case: re.Pattern[str]
    command: re.Pattern[str]
    against: tuple[str, ...]
    mode: str  # of the groups; empty: both
    reason: str

    def covers(self, case: str, command: str, against: str) -> bool:
        return (
            (not self.against or against.startswith(self.against))
            and self.case.fullmatch(case) is not None
            and self.command.fullmatch(command) is not None
        )


def load(path: Path = DIVERGENCES, mode: str = "") -> list[Divergence]:
    """Those that hold in this mode; without one, all."""
    rows = tomllib.loads(path.read_text()).get("divergence", [])
    declared = [
        Divergence(
            kind=Kind(row["type"]),
            case=re.compile(row.get("case", ".*"), re.DOTALL),
            command=re.compile(row.get("command", ".*"), re.DOTALL),
            against=tuple(row.get("against", ())),
            mode=row.get("mode", ""),
            reason=row["reason"],
        )
        for row in rows
    ]
    return [d for d in declared if not mode or d.mode in ("", mode)]


def explain(
    declared: Iterable[Divergence], case: str, command: str, against: str
) -> Divergence | None:
    """The first declaration that covers a difference."""
    for divergence in declared:
        if divergence.covers(case, command, against):
            return divergence
    return None
