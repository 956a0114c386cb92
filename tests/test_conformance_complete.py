"""The conformance cases show every option and error text that they owe.

No server runs here: the cases name the errors, and the conformance run checks
them against the authority.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance import divergences, script
from conformance.divergences import GOLDEN, Divergence
from conformance.script import Action

REQUIRED: dict[str, Any] = tomllib.loads(
    (Path(script.__file__).parent / "required.toml").read_text()
)
CASES = script.load()
COMMANDS = script.commands(CASES)


def is_named(command: str, words: list[str]) -> bool:
    name = command.lower().split()
    return [word.lower() for word in words[: len(name)]] == name


def shows(option: str, words: list[str]) -> bool:
    """Whether the words of an option stand together among a command's arguments."""
    wanted = option.lower().split()
    given = [word.lower() for word in words]
    return any(
        all(
            w in ("_", g)
            for w, g in zip(wanted, given[at : at + len(wanted)], strict=True)
        )
        for at in range(len(given) - len(wanted) + 1)
    )


@pytest.mark.parametrize("command", REQUIRED["options"])
def test_every_command_and_option_has_a_case(command: str) -> None:
    options = REQUIRED["options"][command]

    arguments = [
        words[len(command.split()) :] for words in COMMANDS if is_named(command, words)
    ]

    assert arguments
    missing = [o for o in options if not any(shows(o, words) for words in arguments)]
    assert missing == []


@pytest.mark.parametrize("command", [c for c in REQUIRED["errors"] if c != "any"])
def test_every_error_text_of_a_command_has_a_case(command: str) -> None:
    texts = REQUIRED["errors"][command]

    shown = {
        error[1:]
        for case in CASES
        for step in case.steps
        for error in (step.error, step.own_error)
        if error and is_named(command, step.words)
    }

    assert [text for text in texts if not fnmatch.filter(shown, _glob(text))] == []


def test_errors_of_waiting_clients_and_raw_bytes_have_a_case() -> None:
    shown = {
        step.error[1:]
        for case in CASES
        for step in case.steps
        if step.error and step.action in (Action.GETS, Action.RAW)
    }

    texts = REQUIRED["errors"]["any"]["texts"]
    assert [text for text in texts if not fnmatch.filter(shown, _glob(text))] == []


@pytest.mark.parametrize(
    "divergence",
    divergences.load(),
    ids=lambda d: f"{d.case.pattern} {d.command.pattern}",
)
def test_a_divergence_has_a_reason_and_names_what_exists(
    divergence: Divergence,
) -> None:
    assert len(divergence.reason.split()) > 3
    if divergence.against == (GOLDEN,):
        return

    assert any(
        divergence.case.fullmatch(case.name)
        and divergence.command.fullmatch(step.label)
        for case in CASES
        for step in case.steps
    )


def test_every_command_of_the_table_has_a_case() -> None:
    if importlib.util.find_spec("felixresp.commands.table") is None:
        pytest.skip("felixresp has no command table")
    table = importlib.import_module("felixresp.commands.table")

    names = [name.decode().replace("|", " ") for name in table.COMMANDS]

    assert [n for n in names if not any(is_named(n, words) for words in COMMANDS)] == []


def _glob(text: str) -> str:
    """The required text as a pattern in which only ``*`` is special."""
    return text.replace("[", "[[]").replace("?", "[?]")
