"""The case files as data: families of cases, cases of steps.

A file is one family. ``== sentence`` starts a case; each other line is a step:

    XADD s 1-1 f v              a command on connection ``a``
    b> XLEN s                   ... on connection ``b``
    ~ XADD s * f v              a mark: what is not compared (wire.canonical)
    b blocks: XREAD BLOCK 0 STREAMS s $
                                go on once the server says that b is blocked
    b waits                     it is blocked still
    b gets                      its reply has come
    a sends 2: "PING\\r\\nPING\\r\\n"    raw bytes; two replies are read
    b is closed                 by the server
      -ERR syntax error         the error the command above must give (on 8.2)
      own -ERR syntax error     ... or felixresp, where 8.2 does not know the command
      fields loading= uptime_in_seconds     compare only these fields of the text above

Arguments are split at spaces; "..." holds any bytes (\\n \\r \\t \\" \\\\ \\xHH).
``{id:b}`` is the client id of ``b``, ``{now_s+60}`` and ``{now_ms+60000}`` are
times, ``{x*130}`` is 130 times x.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

CASES = Path(__file__).parent / "cases"

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]\S*')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "0": "\0"}
PLACEHOLDER = re.compile(r"\{(\w+)(?:([:*+-])(\w+))?\}")

MARKS = r"(?:(?P<marks>[~=?@%]+) +)?"
FORMS = (
    ("blocks", re.compile(MARKS + r"(?P<name>\w+) blocks: (?P<text>.+)")),
    ("gets", re.compile(MARKS + r"(?P<name>\w+) gets")),
    ("waits", re.compile(MARKS + r"(?P<name>\w+) waits")),
    ("closed", re.compile(MARKS + r"(?P<name>\w+) is closed")),
    ("raw", re.compile(MARKS + r'(?P<name>\w+) sends (?P<count>\d+): (?P<text>".*")')),
    ("command", re.compile(MARKS + r"(?:(?P<name>\w+)> )?(?P<text>.+)")),
)


class Action(Enum):
    """What a step does; the values are the words of the case files."""

    COMMAND = "command"
    BLOCKS = "blocks"
    GETS = "gets"
    WAITS = "waits"
    CLOSED = "closed"
    RAW = "raw"


class BadScript(Exception):
    """A case file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a case."""

    action: Action
    connection: str
    text: str
    marks: str = ""
    replies: int = 1
    error: str | None = None  # the authority's
    own_error: str | None = None  # felixresp's
    fields: tuple[str, ...] = ()
    line: int = 0

    def arguments(self, value_of: Callable[[str, str, str], bytes]) -> list[bytes]:
        return [argument(token, value_of) for token in TOKEN.findall(self.text)]

    @property
    def words(self) -> list[str]:
        """The command's arguments as written, quotes removed."""
        return [token.strip('"') for token in TOKEN.findall(self.text)]

    @property
    def label(self) -> str:
        if self.action in (Action.COMMAND, Action.BLOCKS):
            return self.text
        if self.action is Action.RAW:
            return f"sends {self.text}"
        return f"{self.connection} {self.action.value}"


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence and the steps that show it, from an empty server."""

    family: str
    sentence: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return f"{self.family}: {self.sentence}"


def argument(token: str, value_of: Callable[[str, str, str], bytes]) -> bytes:
    if token.startswith('"'):
        return unescape(token[1:-1])
    return filled(token, value_of)


def filled(text: str, value_of: Callable[[str, str, str], bytes]) -> bytes:
    """The text with its placeholders replaced by their values."""

    def one(found: re.Match[str]) -> str:
        return value_of(found[1], found[2] or "", found[3] or "").decode("latin-1")

    return PLACEHOLDER.sub(one, text).encode("latin-1")


def unescape(text: str) -> bytes:
    def one(found: re.Match[str]) -> str:
        code = found[1]
        if len(code) == 3:
            return chr(int(code[1:], 16))
        return ESCAPED.get(code, code)

    return ESCAPE.sub(one, text).encode("latin-1")


def load(directory: Path = CASES) -> list[Case]:
    cases = [case for path in sorted(directory.glob("*.txt")) for case in parse(path)]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise BadScript(f"two cases are called '{name}'")  # noqa: EM102
    return cases


def parse(path: Path) -> list[Case]:
    cases: list[Case] = []
    sentence: str | None = None
    steps: list[Step] = []

    def end_case() -> None:
        if sentence is not None:
            cases.append(Case(path.stem, sentence, tuple(steps)))

    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            end_case()
            sentence, steps = line[3:].strip(), []
        elif line.startswith("  ") and steps:
            steps[-1] = _with_note(steps[-1], line.strip())
        elif sentence is None or line.startswith(" "):
            raise BadScript(f"{path.name}:{number}: a step outside a case")  # noqa: EM102
        else:
            steps.append(_step(line.rstrip(), number))
    end_case()
    return cases


def _with_note(step: Step, note: str) -> Step:
    word, _, rest = note.partition(" ")
    if word == "fields":
        return replace(step, fields=tuple(rest.split()))
    if word == "own":
        return replace(step, own_error=rest)
    return replace(step, error=note)


def _step(line: str, number: int) -> Step:
    for action, form in FORMS:
        found = form.fullmatch(line)
        if found:
            groups = found.groupdict()
            return Step(
                action=Action(action),
                connection=groups["name"] or "a",
                text=groups.get("text") or "",
                marks=groups["marks"] or "",
                replies=int(groups.get("count") or 1),
                line=number,
            )
    raise BadScript(line)


def commands(cases: Sequence[Case]) -> list[list[str]]:
    """Every command line of every case, as words."""
    return [
        step.words
        for case in cases
        for step in case.steps
        if step.action in (Action.COMMAND, Action.BLOCKS)
    ]
