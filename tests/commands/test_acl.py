"""ACL's verbs where no comparison with real servers sees: times, files, chance."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.commands.context import Close, Kill, Outcome
from felixresp.protocol.reply import OK

from .driver import Driver

WRONGPASS = "WRONGPASS invalid username-password pair or user is disabled."
UNCHANGED = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was"
    " performed"
)


def refused(driver: Driver, line: str) -> None:
    assert driver.error(line).startswith(("NOPERM", "WRONGPASS"))


@pytest.fixture
def limited(driver: Driver) -> Driver:
    """Its second client is the user u, who may only GET."""
    driver.script("ACL SETUSER u on >pw +get ~*")
    driver.connect()
    driver.client = driver.server.connected[1]
    driver.script("AUTH u pw")
    return driver


def log(driver: Driver) -> list[dict[str, Any]]:
    """As the first client sees it."""
    shown = driver.show("ACL LOG 100", client=driver.server.connected[0])
    return [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in shown]


def test_a_log_entry_says_who_when_and_what(limited: Driver) -> None:
    refused(limited, "SET a 1")
    limited.wall_ms += 2_500

    [entry] = log(limited)

    assert entry == {
        "count": 1,
        "reason": "command",
        "context": "toplevel",
        "object": "set",
        "username": "u",
        "age-seconds": "2.5",
        "client-info": "id=2 age=0",
        "entry-id": 0,
        "timestamp-created": limited.wall_ms - 2_500,
        "timestamp-last-updated": limited.wall_ms - 2_500,
    }


def test_the_same_refusal_within_a_minute_is_counted(limited: Driver) -> None:
    began_ms = limited.wall_ms
    refused(limited, "SET a 1")
    limited.wall_ms += 60_000
    refused(limited, "DEL a")
    refused(limited, "SET b 1")

    first, second = log(limited)

    assert (first["object"], first["count"], first["entry-id"]) == ("set", 2, 0)
    assert first["timestamp-created"] == began_ms
    assert first["timestamp-last-updated"] == began_ms + 60_000
    assert (second["object"], second["entry-id"]) == ("del", 1)


def test_the_same_refusal_a_minute_later_is_another(limited: Driver) -> None:
    refused(limited, "SET a 1")
    limited.wall_ms += 60_001
    refused(limited, "SET a 1")

    assert [entry["count"] for entry in log(limited)] == [1, 1]


def test_a_wrong_password_is_logged_under_the_name_that_was_tried(
    driver: Driver,
) -> None:
    refused(driver, "auth someone pw")
    refused(driver, "HELLO 3 AUTH another pw")

    seen = [(e["object"], e["username"]) for e in log(driver)]
    assert seen == [("HELLO", "another"), ("auth", "someone")]
    assert log(driver)[0]["reason"] == "auth"


def test_the_log_keeps_the_beginning_of_long_words(driver: Driver) -> None:
    driver.run([b"AUTH", b"n" * 5000, b"pw"])
    driver.run([b"AUTH", b"n" * 6000, b"pw"])

    [entry] = log(driver)
    assert (entry["username"], entry["count"]) == ("n" * 1024, 2)


def test_the_log_holds_so_many(driver: Driver) -> None:
    driver.script("CONFIG SET acllog-max-len 3")
    for number in range(5):
        driver.run(f"AUTH user{number} pw")

    names = [entry["username"] for entry in log(driver)]

    assert names == ["user4", "user3", "user2"]


def test_a_password_is_accepted_by_its_hash_alone(driver: Driver) -> None:
    driver.script("ACL SETUSER u on >first >second")
    user = driver.server.users.get(b"u")
    assert user is not None

    assert all(len(stored) == 64 for stored in user.passwords)
    assert user.accepts(b"first")
    assert user.accepts(b"second")
    assert not user.accepts(user.passwords[0])
    assert not user.accepts(b"")


def test_genpass_is_hexadecimal_of_what_the_server_gives(driver: Driver) -> None:
    assert driver.show("ACL GENPASS 12") == "000"
    assert driver.show("ACL GENPASS 16") == "0001"
    assert driver.show("ACL GENPASS 17") == "00010"
    assert len(driver.show("ACL GENPASS")) == 64
    assert len(driver.show("ACL GENPASS 4096")) == 1024


def test_cat_lists_the_commands_of_felixresps_own_categories(driver: Driver) -> None:
    consume, manage = driver.show("ACL CAT consume"), driver.show("ACL CAT manage")

    assert {"xreadgroup", "xack", "xdlq|list", "xgroup|delconsumer"} <= set(consume)
    assert {"xgroup|create", "xgroup|destroy", "xdlq|redrive"} <= set(manage)
    assert not set(consume) & set(manage)
    assert driver.show("ACL CAT hash") == []


def test_deluser_closes_the_users_connections_and_its_own_last(
    driver: Driver,
) -> None:
    driver.script("ACL SETUSER u on nopass +@all ~*")
    for _ in range(2):
        driver.script_as(driver.connect(), "AUTH u x")
    one, other = driver.server.connected[1:]

    answer = driver.run("ACL DELUSER u", client=one)

    assert isinstance(answer, Outcome)
    assert answer.reply == 1
    kill, close = answer.effects
    assert kill == Kill([other.id])
    assert isinstance(close, Close)


def test_save_and_load_bring_users_back(driver: Driver) -> None:
    driver.settings.aclfile = "users.acl"
    driver.server.users_file.data = b""
    driver.script("ACL SETUSER u on >pw +get ~a* group:s/g\nACL SAVE")
    lines = driver.show("ACL LIST")
    driver.script("ACL SETUSER u reset\nACL SETUSER v on")

    assert driver.show("ACL LOAD") == "OK"

    assert driver.show("ACL LIST") == lines
    assert (
        driver.server.users_file.data == "".join(f"{line}\n" for line in lines).encode()
    )


def test_load_keeps_connections_of_users_that_stay(driver: Driver) -> None:
    driver.settings.aclfile = "users.acl"
    driver.script("ACL SETUSER u on nopass +@all ~*\nACL SETUSER v on nopass +@all ~*")
    one, other = driver.connect(), driver.connect()
    driver.script_as(one, "AUTH u x")
    driver.script_as(other, "AUTH v x")
    driver.server.users_file.data = b"user u on nopass +ping\n"

    answer = driver.run("ACL LOAD")

    assert isinstance(answer, Outcome)
    assert list(answer.effects) == [Kill([other.id])]
    assert driver.show("PING", client=one) == "PONG"
    refused_now = driver.run("GET a", client=one)
    assert b"NOPERM" in refused_now.text  # type: ignore[union-attr]


def test_load_of_a_file_without_the_default_user_keeps_the_server_closed(
    driver: Driver,
) -> None:
    driver.settings.aclfile = "users.acl"
    driver.script("CONFIG SET requirepass secret\nACL SETUSER default >more -get")
    driver.server.users_file.data = b"user u on nopass +@all ~*\n"

    driver.script("ACL LOAD")

    client = driver.connect()
    assert client.user is driver.server.users.guest
    assert driver.run("AUTH more", client=client) != OK
    assert driver.run("AUTH secret", client=client) == OK
    assert driver.run("GET a", client=client) is None


def test_load_leaves_guests_guests(driver: Driver) -> None:
    driver.settings.aclfile = "users.acl"
    driver.server.users_file.data = b"user default off\n"
    driver.script("ACL LOAD")

    client = driver.connect()

    assert client.user is driver.server.users.guest
    driver.client = client
    assert driver.error("PING") == "NOAUTH Authentication required."


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            "foo\n",
            "users.acl:1 should start with user keyword followed by the username. ",
        ),
        (
            "user\n",
            "users.acl:1 should start with user keyword followed by the username. ",
        ),
        (
            "user u on\n\nuser u off\n",
            "WARNING: Duplicate user 'u' found on line 3. ",
        ),
        (
            "user u (+get\n",
            "users.acl:1: Unmatched parenthesis in selector definition.",
        ),
        (
            "user u foo\nuser v +bar\n",
            "users.acl:1: Syntax error."
            " users.acl:2: Error in applying operation '+bar':"
            " Unknown command or category name in ACL. ",
        ),
        (
            "user a\0b on\n",
            "users.acl:1: the username 'a' contains spaces or null characters. ",
        ),
    ],
)
def test_load_takes_all_of_a_file_or_nothing(
    driver: Driver, data: str, text: str
) -> None:
    driver.settings.aclfile = "users.acl"
    driver.script("ACL SETUSER mine on >pw")
    before = driver.show("ACL LIST")
    driver.server.users_file.data = data.encode()

    assert driver.error("ACL LOAD") == f"ERR {text}{UNCHANGED}"
    assert driver.show("ACL LIST") == before


def test_a_file_that_cannot_be_read_or_written_is_an_error(driver: Driver) -> None:
    driver.settings.aclfile = "users.acl"

    assert driver.error("ACL LOAD") == (
        "ERR Error loading ACLs, opening file 'users.acl': No such file or directory"
    )
    assert driver.error("ACL SAVE") == (
        "ERR There was an error trying to save the ACLs. Please check the server logs"
        " for more information"
    )


def test_lines_of_the_file_may_be_spaced_and_end_as_on_windows(driver: Driver) -> None:
    driver.server.users.load(b"\r\n \tuser u  on   >pw\r\n\n", b"users.acl")

    assert driver.show("ACL USERS") == ["default", "u"]
    assert driver.run("AUTH u pw") == OK


def test_a_wrong_user_and_a_wrong_password_are_not_told_apart(driver: Driver) -> None:
    driver.script("ACL SETUSER u on >pw\nACL SETUSER v >pw")

    assert driver.error("AUTH nobody pw") == WRONGPASS
    assert driver.error("AUTH u wrong") == WRONGPASS
    assert driver.error("AUTH v pw") == WRONGPASS
