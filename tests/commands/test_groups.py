"""XGROUP."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import ConsumerDeleted, GroupCreated, GroupDestroyed

from .driver import Driver

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
    assert [type(change) for change in grouped.changes] == [ConsumerDeleted]
    assert grouped.show("XGROUP DELCONSUMER s g c") == 0
    assert grouped.show("XPENDING s g - + 10") == [["2-1", "", -1, 1]]
    assert grouped.show("XPENDING s g") == [1, "2-1", "2-1", []]
    ((_, entries),) = grouped.show("XREADGROUP GROUP g d STREAMS s >")
    assert [id_ for id_, _ in entries] == ["2-1", "3-1"]


def test_help_lists_the_subcommands(driver: Driver) -> None:
    lines = driver.show("XGROUP HELP")

    assert lines[0].startswith("XGROUP <subcommand>")
    assert len(lines) == 17
