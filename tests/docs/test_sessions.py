"""Every session in the documents prints what the document says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.sessions import DOCUMENTS, Session, Stage, Step, sessions
from tests.docs.terminal import Terminal
from tests.server_process import ServerProcess, missing

SESSIONS = [
    pytest.param(session, id=f"{document.stem}: {session.heading}")
    for document in DOCUMENTS
    for session in sessions(document.read_text())
]
OWN_VERBS = (
    "XPOLL", "XEXTEND", "XNACK", "XEXPLAIN", "XDLQ LIST", "XDLQ LEN", "XDLQ REDRIVE",
    "XDLQ DISCARD", "XGROUP SEEK", "XGROUP DESCRIBE", "XGROUP CONFIG", "XGROUP PAUSE",
    "XGROUP RESUME",
)  # fmt: skip


@pytest.mark.parametrize("session", SESSIONS)
def test_the_session_prints_what_the_document_says(
    session: Session, tmp_path: Path
) -> None:
    with Stage(tmp_path) as stage:
        for step in session.steps:
            assert stage.run(step) == step.shown, (
                f"{step.command}\nif that is right: python -m tests.docs"
            )


@pytest.mark.parametrize("verb", OWN_VERBS)
def test_every_verb_that_redis_lacks_stands_in_a_session(verb: str) -> None:
    commands = [
        step.command
        for document in DOCUMENTS
        for session in sessions(document.read_text())
        for step in session.steps
    ]

    assert any(command.startswith(verb) for command in commands)


def test_a_line_that_is_not_what_was_said_is_replaced(tmp_path: Path) -> None:
    setup = ["XADD jobs 1-0 job resize", "XGROUP CREATE jobs workers 0"]
    shown = [
        "1) 1) ...",
        '   "receipt" => "1-0:00000000000000aa"',
    ]
    with Stage(tmp_path) as stage:
        for command in setup:
            stage.run(Step("alice>", command))

        said = stage.run(Step("alice>", "XPOLL jobs workers alice", shown))
        acked = stage.run(Step("alice>", "XACK jobs workers 1-0:00000000000000aa"))

    assert '      2# "receipt" => "1-0:00000000000000aa"' in said
    assert acked == ["(integer) 1"]


def test_another_receipt_does_not_hold_for_one_that_was_printed(tmp_path: Path) -> None:
    one, other = '"1-0:00000000000000aa"', '"1-0:00000000000000bb"'
    with Stage(tmp_path) as stage:
        first = Step("alice>", f"ECHO {one}", [other])

        assert stage.run(first) == [other]
        assert stage.run(Step("alice>", f"ECHO {one}", [one])) != [one]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with ServerProcess.start(tmp_path_factory.mktemp("data")) as server:
        terminal = Terminal(server.port)
        for number in range(1, 12):
            terminal.ask(f'XADD jobs {number}-0 job "n\\n{number}"')
        terminal.ask("XGROUP CREATE jobs workers 0")
        terminal.ask("XREADGROUP GROUP workers alice STREAMS jobs >")
        terminal.close()
        yield server.port


@pytest.mark.skipif(bool(missing("redis-cli")), reason="needs redis-cli")
@pytest.mark.parametrize(
    "command",
    [
        "PING",
        'ECHO "a \\"quoted\\" \\\\ word"',
        "XRANGE jobs - +",
        "XRANGE jobs 50 +",
        "XREADGROUP GROUP workers alice STREAMS jobs 0",
        "XREADGROUP GROUP workers alice STREAMS jobs >",
        "XGROUP DESCRIBE jobs workers",
        "XGROUP CONFIG GET jobs workers nothing",
        "XEXPLAIN jobs workers",
        "XDLQ LIST jobs workers",
        "XACK jobs",
        "INFO groups",
        "GET missing",
    ],
)
def test_the_terminal_shows_what_redis_cli_shows(port: int, command: str) -> None:
    done = subprocess.run(
        ["redis-cli", "-3", "--no-raw", "-p", str(port)],
        input=command,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    lines = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")]
    terminal = Terminal(port)

    said = terminal.ask(command)

    terminal.close()
    assert _still(said) == _still(lines)


def _still(lines: list[str]) -> list[str]:
    """Without what differs between two calls: times, and how long something took."""
    return [re.sub(r"\b1[5-9]\d{11}\b|(?<=\(integer\) )\d+$", "N", x) for x in lines]
