"""XGROUP."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import (
    ConsumerDeleted,
    Finished,
    GroupCreated,
    GroupDestroyed,
    HandedBack,
)

from .driver import Driver, FakeClient

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NO_KEY = "!ERR The XGROUP subcommand requires the key to exist. Note that for CREATE"
NO_GROUP = "!NOGROUP No such consumer group 'nog' for key name 's'"
BAD_READ = "!ERR value for ENTRIESREAD must be positive or -1"


@pytest.fixture
def grouped(driver: Driver) -> Driver:
    """Entries 1 to 3 in s, and a group that has seen none of them."""
    for number in (1, 2, 3):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n SET str x")
    return driver


def group(driver: Driver, name: str) -> dict[str, Any]:
    for row in driver.show("XINFO GROUPS s"):
        fields = dict(zip(row[::2], row[1::2], strict=True))
        if fields["name"] == name:
            return fields
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("options", "head", "read"),
    [
        ("$", "3-1", None),
        ("2-1", "2-1", None),
        ("9", "9-0", None),
        ("0 ENTRIESREAD 2", "0-0", 2),
        ("0 entriesread 50 mkstream", "0-0", 3),
        ("0 ENTRIESREAD -1", "0-0", None),
        ("0 MKSTREAM MKSTREAM MKSTREAM", "0-0", None),
    ],
)
def test_a_group_begins_where_it_is_told(
    grouped: Driver, options: str, head: str, read: int | None
) -> None:
    assert grouped.show(f"XGROUP CREATE s new {options}") == "OK"
    assert [type(change) for change in grouped.changes] == [GroupCreated]
    fields = group(grouped, "new")
    assert (fields["last-delivered-id"], fields["entries-read"]) == (head, read)


def test_mkstream_makes_an_empty_stream(driver: Driver) -> None:
    assert driver.show("XGROUP CREATE s g $ MKSTREAM") == "OK"
    assert driver.show("XLEN s") == 0
    assert driver.show("TYPE s") == "stream"


BAD_CREATE = "!ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XGROUP CREATE s g 0", "!BUSYGROUP Consumer Group name already exists"),
        ("XGROUP CREATE s g bad", BAD_ID),
        ("XGROUP CREATE s new -", BAD_ID),
        ("XGROUP CREATE s new +", BAD_ID),
        ("XGROUP CREATE nokey g bad", NO_KEY),
        ("XGROUP CREATE nokey g bad MKSTREAM", BAD_ID),
        ("XGROUP CREATE nokey g 0 FOO", BAD_CREATE),
        ("XGROUP CREATE s new 0 ENTRIESREAD", BAD_CREATE),
        ("XGROUP CREATE s new 0 ENTRIESREAD x ENTRIESREAD x", BAD_CREATE),
        ("XGROUP create s new 0 x", "!ERR unknown subcommand or wrong number of argum"),
        ("XGROUP CREATE nokey g 0 MKSTREAM ENTRIESREAD x", NOT_INTEGER),
        ("XGROUP CREATE s new 0 ENTRIESREAD -2", BAD_READ),
        ("XGROUP CREATE str g bad", WRONG_TYPE),
        (
            "XGROUP CREATE s g",
            "!ERR wrong number of arguments for 'xgroup|create' comm",
        ),
        ("XGROUP SETID s nog bad", NO_GROUP),
        ("XGROUP SETID nokey g 0", NO_KEY),
        ("XGROUP SETID s g bad", BAD_ID),
        ("XGROUP SETID s g 0 FOO", BAD_CREATE.replace("CREATE", "SETID")),
        ("XGROUP SETID s g 0 ENTRIESREAD", BAD_CREATE.replace("CREATE", "SETID")),
        ("XGROUP SETID s g 0 a b c", BAD_CREATE.replace("CREATE", "SETID")),
        ("XGROUP SETID s nog 0 ENTRIESREAD -2", BAD_READ),
        ("XGROUP SETID s nog 0 ENTRIESREAD x", NOT_INTEGER),
        ("XGROUP SETID str g 0", WRONG_TYPE),
        ("XGROUP DESTROY nokey g", NO_KEY),
        ("XGROUP DESTROY str g", WRONG_TYPE),
        ("XGROUP CREATECONSUMER s nog c", NO_GROUP),
        ("XGROUP CREATECONSUMER nokey g c", NO_KEY),
        ("XGROUP DELCONSUMER s nog c", NO_GROUP),
        ("XGROUP DELCONSUMER nokey g c", NO_KEY),
        ("XGROUP FOO s", "!ERR unknown subcommand 'FOO'. Try XGROUP HELP."),
        ("XGROUP", "!ERR wrong number of arguments for 'xgroup' command"),
        ("XGROUP HELP x", "!ERR wrong number of arguments for 'xgroup|help' command"),
    ],
)
def test_a_refused_xgroup_changes_nothing(
    grouped: Driver, line: str, text: str
) -> None:
    assert grouped.show(line).startswith(text)
    assert not grouped.changes


@pytest.mark.parametrize(
    ("words", "head", "read"),
    [
        ("2-1", "2-1", None),
        ("$", "3-1", None),
        ("-", "0-0", None),
        ("+", f"{2**64 - 1}-{2**64 - 1}", None),
        ("2-1 ENTRIESREAD 50", "2-1", 3),
    ],
)
def test_setid_moves_the_head(
    grouped: Driver, words: str, head: str, read: int | None
) -> None:
    assert grouped.show(f"XGROUP SETID s g {words}") == "OK"
    fields = group(grouped, "g")
    assert (fields["last-delivered-id"], fields["entries-read"]) == (head, read)


def test_setid_back_hands_finished_entries_out_again(grouped: Driver) -> None:
    grouped.script("XREADGROUP GROUP g c STREAMS s >\n XACK s g 1-1 2-1 3-1")
    grouped.script("XGROUP SETID s g 1-1")

    ((_, entries),) = grouped.show("XREADGROUP GROUP g c STREAMS s >")
    assert [id_ for id_, _ in entries] == ["2-1", "3-1"]


def test_destroy_counts_the_group_it_destroyed(grouped: Driver) -> None:
    assert grouped.show("XGROUP DESTROY s g") == 1
    assert [type(change) for change in grouped.changes] == [GroupDestroyed]
    assert grouped.show("XGROUP DESTROY s g") == 0


def test_a_consumer_is_created_once(grouped: Driver) -> None:
    assert grouped.show("XGROUP CREATECONSUMER s g c") == 1
    assert grouped.show("XGROUP CREATECONSUMER s g c") == 0
    assert grouped.show('XGROUP CREATECONSUMER s g ""') == 1


def test_what_a_deleted_consumer_held_is_owed_and_nobodys(grouped: Driver) -> None:
    grouped.script("XREADGROUP GROUP g c COUNT 2 STREAMS s >\n XACK s g 1-1")

    assert grouped.show("XGROUP DELCONSUMER s g c") == 1
    assert [type(change) for change in grouped.changes] == [HandedBack, ConsumerDeleted]
    assert grouped.show("XGROUP DELCONSUMER s g c") == 0
    assert grouped.show("XPENDING s g - + 10") == [["2-1", "", -1, 1]]
    assert grouped.show("XPENDING s g") == [1, "2-1", "2-1", []]
    ((_, entries),) = grouped.show("XREADGROUP GROUP g d STREAMS s >")
    assert [id_ for id_, _ in entries] == ["2-1", "3-1"]


def test_a_deleted_consumer_with_a_delay_and_a_dead_letter_is_just_gone(
    grouped: Driver,
) -> None:
    grouped.script(
        """
        XREADGROUP GROUP g c STREAMS s >
        XNACK s g FAIL IDS 1 1-1 DELAY 50
        XNACK s g FATAL IDS 1 2-1
        """
    )

    assert grouped.show("XGROUP DELCONSUMER s g c") == 1
    assert grouped.show("XPENDING s g - + 10") == [
        ["1-1", "", -1, 1],
        ["3-1", "", -1, 1],
    ]
    assert grouped.show("XDLQ LEN s g") == 1


@pytest.fixture
def shared(grouped: Driver) -> tuple[Driver, FakeClient]:
    """Two users use one name: the default one holds 1 and 2, u holds 3."""
    client = grouped.connect()
    grouped.script("ACL SETUSER u on nopass +@consume ~*")
    grouped.script_as(client, "AUTH u x")
    grouped.script("XREADGROUP GROUP g c COUNT 2 STREAMS s >")
    grouped.script_as(client, "XREADGROUP GROUP g c STREAMS s >")
    return grouped, client


def test_without_manage_only_the_users_own_claims_are_taken_from_a_consumer(
    shared: tuple[Driver, FakeClient],
) -> None:
    driver, client = shared

    assert driver.show("XGROUP DELCONSUMER s g c", client=client) == 1
    assert [type(change) for change in driver.changes] == [HandedBack]
    assert driver.show("XGROUP DELCONSUMER s g c", client=client) == 0
    assert not driver.changes
    assert driver.show("XPENDING s g - + 10") == [
        ["1-1", "c", 0, 1],
        ["2-1", "c", 0, 1],
        ["3-1", "", -1, 1],
    ]


def test_with_manage_everybodys_claims_are_taken_from_a_consumer(
    shared: tuple[Driver, FakeClient],
) -> None:
    driver, client = shared
    driver.script("ACL SETUSER u +@manage")

    assert driver.show("XGROUP DELCONSUMER s g c", client=client) == 3
    assert driver.show("XINFO CONSUMERS s g") == []


def test_manage_on_other_groups_does_not_take_others_claims(
    shared: tuple[Driver, FakeClient],
) -> None:
    driver, client = shared
    driver.script("ACL SETUSER u '(+@manage ~other)'")

    assert driver.show("XGROUP DELCONSUMER s g c", client=client) == 1


def test_in_mode_redis_a_deleted_consumer_takes_what_it_held_along(
    grouped: Driver,
) -> None:
    grouped.script("XGROUP CONFIG SET s g mode redis")
    grouped.script("XREADGROUP GROUP g c COUNT 2 STREAMS s >")

    assert grouped.show("XGROUP DELCONSUMER s g c") == 2
    assert [type(change) for change in grouped.changes] == [Finished, ConsumerDeleted]
    assert grouped.show("XPENDING s g")[0] == 0


REDIS_HELP = """\
XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
CREATE <key> <groupname> <id|$> [option]
    Create a new consumer group. Options are:
    * MKSTREAM
      Create the empty stream if it does not exist.
    * ENTRIESREAD entries_read
      Set the group's entries_read counter (internal use).
CREATECONSUMER <key> <groupname> <consumer>
    Create a new consumer in the specified group.
DELCONSUMER <key> <groupname> <consumer>
    Remove the specified consumer.
DESTROY <key> <groupname>
    Remove the specified group.
SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]
    Set the current group ID and entries_read counter.
HELP
    Print this help."""


def test_help_has_the_lines_of_redis_in_their_order_among_its_own(
    driver: Driver,
) -> None:
    lines = driver.show("XGROUP HELP")

    own = [line for line in lines if line not in REDIS_HELP.splitlines()]
    assert [line for line in lines if line not in own] == REDIS_HELP.splitlines()
    assert {line.split()[0] for line in own if line[0] != " "} == {
        "CONFIG",
        "DESCRIBE",
        "PAUSE",
        "RESUME",
        "SEEK",
    }
