"""The sessions in the documents: parsed, run, compared, printed anew.

A session is a block fenced as ``console``, and those fenced as ``console continued``
that follow it. Its lines are

    $ felixresp --group-max-attempts 2 &     starts a server, again on the same data
    $ kill -9 %1                             ends it; without -9 an orderly stop
    alice> XACK jobs workers 1-0             typed at alice's redis-cli -3
    alice> quit                              closes it

and what they printed. A session that starts no server has one with the defaults.
Times (unix ms), how long something took, and the nonces of receipts differ from run
to run: a receipt that was printed stands for the one of this run from then on.
``...`` stands for lines that are not shown.
"""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.terminal import Terminal
from tests.server_process import ServerProcess

DOCUMENTS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
_FENCE = re.compile(r"```console( continued)?")
_PROMPT = re.compile(r"(\$|[a-z]+>) (.+)")
_KILL = re.compile(r"kill (-9 )?%1")
_VARIES = re.compile(
    r"(?P<time>\b1[5-9]\d{11}\b)"
    r'|(?P<lasted>(?<="age" => \(integer\) )\d+|(?<="lasted" => \(integer\) )\d+)'
    r"|(?<=-\d:)(?P<nonce>[0-9a-f]{16})"
)
_NONCE = re.compile(r"(?<=-\d:)[0-9a-f]{16}")


@dataclass(slots=True)
class Step:
    who: str  # "$", or the name of a terminal with its ">"
    command: str
    shown: list[str] = field(default_factory=list)
    first: int = 0  # the line of the document where ``shown`` begins


@dataclass(slots=True)
class Session:
    heading: str
    steps: list[Step]


class Stage:
    """Where one session runs. Ends its server when the ``with`` block is left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._terminals: dict[str, Terminal] = {}
        self._server: ServerProcess | None = None
        self._stack = ExitStack()
        self._real: dict[str, str] = {}  # nonces, by what the document has for them

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in self._terminals.values():
            terminal.close()
        self._stack.close()

    def run(self, step: Step) -> list[str]:
        """What the step prints: the document's own words wherever they hold."""
        if step.who == "$":
            self._shell(step.command)
            return []
        if step.command == "quit":
            self._terminals.pop(step.who).close()
            return []
        command = _NONCE.sub(lambda f: self._real.get(f[0], f[0]), step.command)
        said = self._terminal(step.who).ask(command)
        if self._holds(step.shown, said):
            return step.shown
        return self._carried(step.shown, said)

    def _shell(self, command: str) -> None:
        if command.startswith("felixresp"):
            _, *flags, _background = shlex.split(command)
            server = ServerProcess.start(self._directory, *flags)
            self._server = self._stack.enter_context(server)
            return
        found = _KILL.fullmatch(command)
        assert found, command
        assert self._server, command
        if found[1]:
            self._server.kill()
        else:
            assert self._server.terminate() == 0, self._server.lines
        for terminal in self._terminals.values():
            terminal.close()
        self._terminals.clear()

    def _terminal(self, who: str) -> Terminal:
        if self._server is None:
            self._shell("felixresp &")
        assert self._server
        if who not in self._terminals:
            self._terminals[who] = Terminal(self._server.port)
        return self._terminals[who]

    def _holds(self, shown: list[str], said: list[str]) -> bool:
        """Whether the document's lines are what was said, as far as they can be."""
        names: dict[str, str] = {}

        def free(found: re.Match[str]) -> str:
            nonce = found["nonce"]
            if nonce is None:
                return r"\d{13}" if found["time"] else r"\d+"
            if nonce in self._real:
                return self._real[nonce]
            if nonce in names:
                return f"(?P={names[nonce]})"
            names[nonce] = f"nonce{len(names)}"
            return f"(?P<{names[nonce]}>[0-9a-f]{{16}})"

        pattern = ""
        for line in shown:
            if line.strip() == "...":
                pattern += r"(?:.*\n)+?"
            else:
                plain = re.split(_VARIES, line)[:: _VARIES.groups + 1]
                varying = [free(found) for found in _VARIES.finditer(line)] + [""]
                pairs = zip(map(re.escape, plain), varying, strict=True)
                pattern += "".join(map("".join, pairs)) + r"\n"
        found = re.fullmatch(pattern, "".join(f"{line}\n" for line in said))
        if not found:
            return False
        learned = {nonce: found[name] for nonce, name in names.items()}
        if len({*self._real.values(), *learned.values()}) < len(self._real | learned):
            return False
        self._real |= learned
        return True

    def _carried(self, shown: list[str], said: list[str]) -> list[str]:
        """What was said, with the document's receipts where it had some."""
        old = dict.fromkeys(_NONCE.findall("\n".join(shown)))
        new = dict.fromkeys(_NONCE.findall("\n".join(said)))
        known = {real: name for name, real in self._real.items()}
        fresh = iter([name for name in old if name not in self._real])
        for real in new:
            known.setdefault(real, next(fresh, real))
        self._real = {name: real for real, name in known.items()}
        return [_NONCE.sub(lambda found: known[found[0]], line) for line in said]


def sessions(text: str) -> list[Session]:
    found: list[Session] = []
    heading, steps = "", None
    for at, line in enumerate(text.splitlines(), 1):
        if steps is None:
            if line.startswith("#"):
                heading = line.strip("# ")
            elif fence := _FENCE.fullmatch(line):
                if not fence[1]:
                    found.append(Session(heading, []))
                steps = found[-1].steps
        elif line == "```":
            steps = None
        elif prompt := _PROMPT.fullmatch(line):
            steps.append(Step(prompt[1], prompt[2], first=at))
        else:
            steps[-1].shown.append(line)
    return found
