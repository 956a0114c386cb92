"""HELLO, AUTH, PING, ECHO, QUIT, RESET, SELECT."""

from __future__ import annotations

import pytest

from felixresp.commands.context import Close, Outcome, Reset
from felixresp.protocol.reply import OK, PONG, Map, Simple

from .driver import Driver

WRONGPASS = "WRONGPASS invalid username-password pair or user is disabled."
BAD_NAME = "ERR Client names cannot contain spaces, newlines or special characters."


def test_hello_tells_what_clients_choose_their_commands_by(driver: Driver) -> None:
    answer = driver.run("HELLO 3")

    assert answer == Map(
        (
            (b"server", b"redis"),
            (b"version", b"7.2.4"),
            (b"proto", 3),
            (b"id", 1),
            (b"mode", b"standalone"),
            (b"role", b"master"),
            (b"modules", ()),
        )
    )
    assert driver.client.resp == 3


def test_hello_without_arguments_keeps_the_protocol(driver: Driver) -> None:
    driver.client.resp = 3

    driver.run("HELLO")

    assert driver.client.resp == 3


def test_hello_signs_in_and_names_the_connection(driver: Driver) -> None:
    driver.require_password("secret")

    driver.run("hello 3 setname me auth default secret")

    assert driver.client.user is driver.server.users.default
    assert (driver.client.name, driver.client.resp) == (b"me", 3)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO -1", "NOPROTO unsupported protocol version"),
        ("HELLO x", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 03", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 x", "ERR Syntax error in HELLO option 'x'"),
        ("HELLO 2 AUTH default", "ERR Syntax error in HELLO option 'AUTH'"),
        ("HELLO 2 SETNAME", "ERR Syntax error in HELLO option 'SETNAME'"),
        ("HELLO 2 SETNAME 'a b' FOO", BAD_NAME),
        ("HELLO 2 AUTH nobody x", WRONGPASS),
    ],
)
def test_hello_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text
    assert driver.client.resp == 2


def test_hello_that_fails_changes_nothing(driver: Driver) -> None:
    driver.error("HELLO 3 SETNAME new AUTH nobody x")

    assert (driver.client.name, driver.client.resp) == (b"", 2)


def test_hello_without_signing_in_says_how(driver: Driver) -> None:
    driver.require_password("secret")

    assert driver.error("HELLO 3").startswith("NOAUTH HELLO must be called with")
    assert driver.error("HELLO 4") == "NOPROTO unsupported protocol version"


def test_auth_takes_the_password_of_the_one_user(driver: Driver) -> None:
    driver.require_password("secret")

    assert driver.error("AUTH nope") == WRONGPASS
    assert driver.error("AUTH nobody secret") == WRONGPASS
    assert driver.client.user is driver.server.users.guest
    assert driver.run("AUTH secret") == OK
    assert driver.run("AUTH default secret") == OK
    assert driver.client.user is driver.server.users.default
    assert driver.error("AUTH a b c") == "ERR syntax error"


def test_auth_without_a_password_set(driver: Driver) -> None:
    assert driver.error("AUTH a").startswith(
        "ERR AUTH <password> called without any password configured"
    )
    assert driver.error("AUTH a b") == WRONGPASS
    assert driver.run("AUTH default anything") == OK


def test_ping_and_echo(driver: Driver) -> None:
    assert driver.run("PING") == PONG
    assert driver.run("PING hi") == b"hi"
    assert driver.run("ECHO hi") == b"hi"
    assert driver.error("PING a b") == (
        "ERR wrong number of arguments for 'ping' command"
    )


def test_quit_answers_before_it_closes(driver: Driver) -> None:
    answer = driver.run("QUIT now")

    assert isinstance(answer, Outcome)
    assert answer.reply == OK
    assert isinstance(answer.effects[0], Close)


def test_reset_makes_the_connection_new(driver: Driver) -> None:
    driver.run("CONFIG SET requirepass secret")
    for line in ("HELLO 3 SETNAME me", "SELECT 3", "WATCH a", "MULTI", "PING"):
        driver.run(line)

    answer = driver.run("RESET")

    assert isinstance(answer, Outcome)
    assert answer.reply == Simple(b"RESET")
    assert isinstance(answer.effects[0], Reset)
    client = driver.client
    assert (client.db, client.resp, client.name) == (0, 2, b"")
    assert (client.queued, client.watched) == (None, {})
    assert client.user is driver.server.users.guest


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("SELECT 16", "ERR DB index is out of range"),
        ("SELECT -1", "ERR DB index is out of range"),
        ("SELECT x", "ERR value is not an integer or out of range"),
        ("SELECT 01", "ERR value is not an integer or out of range"),
        (
            "SELECT 99999999999",
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ),
    ],
)
def test_select_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text


def test_select_changes_the_database(driver: Driver) -> None:
    driver.run("SET a 1")

    assert driver.run("SELECT 15") == OK
    assert driver.run("GET a") is None
