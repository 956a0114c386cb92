"""From a request to its command: names, arity, rights, room."""

from __future__ import annotations

import pytest

from felixresp.commands import dispatch as module
from felixresp.commands.context import HangUp, Outcome
from felixresp.protocol.reply import OK, PONG

from .driver import Driver

NO_SPACE = "MISCONF No space is left for writes."


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        ([b"xfoo"], "'xfoo', with args beginning with: "),
        ([b"xfoo", b"a", b"b"], "'xfoo', with args beginning with: 'a' 'b' "),
        ([b""], "'', with args beginning with: "),
        ([b"x" * 200], f"'{'x' * 128}', with args beginning with: "),
        ([b"x", b"a" * 200, b"b"], f"'x', with args beginning with: '{'a' * 128}' "),
        (
            [b"x", b"a" * 120, b"b" * 50, b"c"],
            f"'x', with args beginning with: '{'a' * 120}' 'bbbbb' ",
        ),
        (
            [b"x", *(b"%d" % n for n in range(60))],
            "'x', with args beginning with: " + "".join(f"'{n}' " for n in range(28)),
        ),
        ([b"CLIENT|LIST"], "'CLIENT|LIST', with args beginning with: "),
    ],
)
def test_an_unknown_command_is_shown_in_part(
    driver: Driver, request_: list[bytes], shown: str
) -> None:
    assert driver.error(request_) == f"ERR unknown command {shown}"


@pytest.mark.parametrize("word", ["POST", "post", "Host:"])
def test_a_http_request_gets_no_answer(driver: Driver, word: str) -> None:
    answer = driver.run(f"{word} / HTTP/1.1")

    assert isinstance(answer, Outcome)
    assert isinstance(answer.effects[0], HangUp)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("get a b", "ERR wrong number of arguments for 'get' command"),
        ("CONFIG", "ERR wrong number of arguments for 'config' command"),
        ("Config Get", "ERR wrong number of arguments for 'config|get' command"),
        ("config foo", "ERR unknown subcommand 'foo'. Try CONFIG HELP."),
        (
            "CLIENT MAINT_NOTIFICATIONS ON",
            "ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.",
        ),
    ],
)
def test_arity_and_subcommands_are_checked(
    driver: Driver, line: str, text: str
) -> None:
    assert driver.error(line) == text


def test_a_name_is_read_in_any_case(driver: Driver) -> None:
    assert [driver.run(name) for name in ("ping", "PING", "PiNg")] == [PONG] * 3


def test_the_spellings_kept_are_bounded(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    spellings = dict(module._SPELLINGS)
    monkeypatch.setattr(module, "_SPELLINGS", spellings)
    monkeypatch.setattr(module, "_SPELLINGS_MAX", len(spellings) + 1)

    for name in ("eCHO", "eChO", "ecHO"):
        assert driver.run(f"{name} a") == b"a"

    assert len(spellings) == module._SPELLINGS_MAX


def test_a_client_that_has_not_signed_in_may_only_do_so(driver: Driver) -> None:
    driver.require_password("secret")

    assert driver.error("GET a") == "NOAUTH Authentication required."
    assert driver.error("MULTI") == "NOAUTH Authentication required."
    assert driver.error("GET").startswith("ERR wrong number")
    assert driver.error("FOO").startswith("ERR unknown command")
    assert driver.error("EXEC") == (
        "EXECABORT Transaction discarded because of: NOAUTH Authentication required."
    )
    assert driver.run("AUTH secret") == OK
    assert driver.run("GET a") is None


def test_without_a_password_nobody_signs_in(driver: Driver) -> None:
    driver.client.user = driver.server.users.guest  # came while there was one

    assert driver.run("GET a") is None


def test_a_full_disk_refuses_what_adds_and_lets_the_rest_go_on(
    driver: Driver,
) -> None:
    driver.run("SET a 1")
    driver.server.full = True

    assert driver.error("SET a 2").startswith(NO_SPACE)
    assert driver.run("GET a") == b"1"
    assert driver.run("DEL a") == 1


def test_a_wrong_type_is_an_error_reply(driver: Driver) -> None:
    driver.keyspace.create_stream(0, b"s")

    assert driver.error("GET s") == (
        "WRONGTYPE Operation against a key holding the wrong kind of value"
    )
