"""CLIENT: names, lists, kills and unblocks."""

from __future__ import annotations

import pytest

from felixresp.commands.context import Close, Kill, Outcome
from felixresp.protocol.reply import OK, Simple, Verbatim

from .driver import Driver


def killed(answer: object) -> list[object]:
    """What the effects of CLIENT KILL are, in order."""
    assert isinstance(answer, Outcome)
    return [e.client_ids if isinstance(e, Kill) else type(e) for e in answer.effects]


def test_a_connection_has_a_name_and_a_library(driver: Driver) -> None:
    assert driver.run("CLIENT GETNAME") is None
    assert driver.run("CLIENT SETNAME me") == OK
    assert driver.run("CLIENT GETNAME") == b"me"
    assert driver.run("CLIENT SETINFO LIB-NAME redis-py") == OK
    assert driver.run("client setinfo lib-ver 8.1.0") == OK
    assert (driver.client.lib_name, driver.client.lib_version) == (
        b"redis-py",
        b"8.1.0",
    )
    assert driver.run([b"CLIENT", b"SETNAME", b""]) == OK
    assert driver.run("CLIENT GETNAME") is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "CLIENT SETNAME 'a b'",
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ),
        (
            "CLIENT SETINFO lib-name 'a b'",
            "ERR LIB-NAME cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT SETINFO foo x", "ERR Unrecognized option 'foo'"),
        ("CLIENT NO-EVICT maybe", "ERR syntax error"),
        ("CLIENT NO-TOUCH maybe", "ERR syntax error"),
        ("CLIENT LIST TYPE foo", "ERR Unknown client type 'foo'"),
        ("CLIENT LIST TYPE", "ERR syntax error"),
        ("CLIENT LIST TYPE normal ID", "ERR syntax error"),
        ("CLIENT LIST ID", "ERR syntax error"),
        ("CLIENT LIST ID x", "ERR Invalid client ID"),
        ("CLIENT LIST foo", "ERR syntax error"),
        ("CLIENT UNBLOCK x", "ERR value is not an integer or out of range"),
        (
            "CLIENT UNBLOCK 1 foo",
            "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
        ),
        (
            "CLIENT unblock 1 error x",
            "ERR unknown subcommand or wrong number of arguments for 'unblock'. "
            "Try CLIENT HELP.",
        ),
        ("CLIENT KILL 1.2.3.4:5", "ERR No such client"),
        ("CLIENT KILL ID x", "ERR client-id should be greater than 0"),
        ("CLIENT KILL ID 0", "ERR client-id should be greater than 0"),
        ("CLIENT KILL USER nobody", "ERR No such user 'nobody'"),
        ("CLIENT KILL TYPE foo", "ERR Unknown client type 'foo'"),
        ("CLIENT KILL SKIPME maybe", "ERR syntax error"),
        ("CLIENT KILL FOO 1", "ERR syntax error"),
        ("CLIENT KILL ID 1 SKIPME", "ERR syntax error"),
        ("CLIENT KILL MAXAGE x", "ERR maxage is not an integer or out of range"),
        ("CLIENT KILL MAXAGE 0", "ERR maxage should be greater than 0"),
    ],
)
def test_client_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text


def test_marks_are_set_and_taken_away(driver: Driver) -> None:
    driver.run("CLIENT NO-EVICT on")
    driver.run("CLIENT NO-TOUCH ON")
    assert driver.client.no_evict
    assert driver.client.no_touch

    driver.run("CLIENT NO-EVICT off")
    assert not driver.client.no_evict


def test_clients_are_listed_by_type_and_number(driver: Driver) -> None:
    driver.connect()
    driver.connect()

    assert driver.run("CLIENT ID") == 1
    assert driver.run("CLIENT INFO") == Verbatim(b"id=1 age=0\n")
    every = Verbatim(b"id=1 age=0\nid=2 age=0\nid=3 age=0\n")
    assert driver.run("CLIENT LIST") == every
    assert driver.run("CLIENT LIST TYPE NORMAL") == every
    assert driver.run("CLIENT LIST TYPE replica") == Verbatim(b"")
    assert driver.run("CLIENT LIST ID 3 1 99 -1") == Verbatim(
        b"id=1 age=0\nid=3 age=0\n"
    )


def test_unblock_ends_another_ones_wait(driver: Driver) -> None:
    driver.connect().blocked = True

    assert driver.run("CLIENT UNBLOCK 2") == 1
    assert driver.run("CLIENT UNBLOCK 2 ERROR") == 1
    assert driver.run("CLIENT UNBLOCK 99 timeout") == 0
    assert driver.server.unblocked == [(2, False), (2, True), (99, False)]


def test_kill_by_address_answers_ok(driver: Driver) -> None:
    driver.connect()

    answer = driver.run("CLIENT KILL 127.0.0.1:50002")

    assert isinstance(answer, Outcome)
    assert answer.reply == OK
    assert killed(answer) == [[2]]


def test_kill_of_oneself_answers_first(driver: Driver) -> None:
    assert killed(driver.run("CLIENT KILL 127.0.0.1:50001")) == [Close]
    assert killed(driver.run("CLIENT KILL ID 1 SKIPME no")) == [Close]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ("ID 2", [2]),
        ("ADDR 127.0.0.1:50003", [3]),
        ("LADDR 127.0.0.1:6379", [2, 3]),
        ("USER default TYPE normal", [2, 3]),
        ("TYPE pubsub", []),
        ("ID 2 ADDR 127.0.0.1:50003", []),
        ("MAXAGE 10", [3]),
        ("SKIPME yes ID 1", []),
    ],
)
def test_kill_takes_those_that_pass_every_filter(
    driver: Driver, filters: str, ids: list[int]
) -> None:
    driver.connect()
    driver.connect().created_ms -= 10_000

    answer = driver.run(f"CLIENT KILL {filters}")

    assert isinstance(answer, Outcome)
    assert answer.reply == len(ids)
    assert killed(answer) == ([ids] if ids else [])


def test_help_names_what_there_is(driver: Driver) -> None:
    answer = driver.run("CLIENT HELP")

    assert isinstance(answer, list)
    assert Simple(b"SETINFO <option> <value>") in answer
    assert Simple(b"PAUSE <timeout> [WRITE|ALL]") not in answer
