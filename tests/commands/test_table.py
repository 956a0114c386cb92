"""The table's facts, held against COMMAND INFO of real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import servers, wire
from felixresp.commands.command import Command, Flags, find
from felixresp.commands.documentation import describe
from felixresp.commands.errors import CommandError
from felixresp.commands.facts import FACTS
from felixresp.commands.table import COMMANDS
from felixresp.protocol.reply import Error

from .driver import Driver
from .real_servers import real_servers  # noqa: F401

OWN_CATEGORIES = {"consume", "manage"}
# What 7.0 has otherwise; the later one is built.
OLDER = {"command|getkeys", "cluster|slots", "cluster|shards"}


def every_command() -> Iterator[Command]:
    for command in COMMANDS.values():
        yield command
        yield from command.subcommands.values()


def info(target: servers.Target, name: str) -> wire.Reply | None:
    """The command's ten facts; None where the server does not know it."""
    with wire.Connection(target.host, target.port) as connection:
        reply = connection.call(b"COMMAND", b"INFO", name.encode())
    assert reply.parts is not None
    return reply.parts[0] if reply.parts[0].parts else None


def words(reply: wire.Reply) -> set[str]:
    assert reply.parts is not None
    return {part.text.decode() for part in reply.parts}


@pytest.mark.parametrize(
    "command", list(every_command()), ids=lambda c: c.name.decode()
)
def test_a_command_has_the_facts_that_real_servers_give(
    command: Command,
    real_servers: dict[str, servers.Target],  # noqa: F811
) -> None:
    name = command.name.decode()
    flags = {str(f.name).lower() for f in command.flags if f is not Flags.IMMEDIATE}
    keys = command.keys
    positions = [0, 0, 0]
    if keys and not keys.keyword:
        positions = [keys.first, keys.last, keys.step]

    for server, target in real_servers.items():
        facts = info(target, name)
        if facts is None or facts.parts is None:
            continue
        if server == "debian" and name in OLDER:
            continue
        assert int(facts.parts[1].text) == command.arity
        assert words(facts.parts[2]) == flags
        assert [int(part.text) for part in facts.parts[3:6]] == positions
        assert {w.removeprefix("@") for w in words(facts.parts[6])} == (
            set(command.categories) - OWN_CATEGORIES
        )


def test_every_command_is_documented() -> None:
    named = {command.name.decode() for command in every_command()}

    assert named <= set(FACTS)
    for command in every_command():
        describe(command)


def test_a_handler_shows_the_grammar_of_its_command() -> None:
    for command in COMMANDS.values():
        if not command.subcommands and command.arity != 1:
            assert command.handler.__doc__ or command.name == b"exec"


@pytest.mark.parametrize("request_", [[b"FOO", b"x"], [b"xgroup", b"foo"], [b"GET"]])
def test_what_is_no_command_is_not_found(request_: list[bytes]) -> None:
    assert find(COMMANDS, [b"XGroup", b"Seek", b"s", b"g", b"0"]).name == b"xgroup|seek"
    with pytest.raises(CommandError):
        find(COMMANDS, request_)


@pytest.mark.parametrize(
    "name", [n for n, c in COMMANDS.items() if c.subcommands and n != b"command"]
)
def test_a_container_alone_does_nothing(driver: Driver, name: bytes) -> None:
    answer = COMMANDS[name].run(driver.context(), [name])

    assert isinstance(answer, Error)
