"""XINFO."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.protocol.encoder import encode

from .driver import NOW_MS, Driver

NOT_INTEGER = "!ERR value is not an integer or out of range"
NO_KEY = "!ERR no such key"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
BAD = "!ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO"
IDMP = [
    *("idmp-duration", 100, "idmp-maxsize", 100, "pids-tracked", 0),
    *("iids-tracked", 0, "iids-added", 0, "iids-duplicates", 0),
]


@pytest.fixture
def grouped(driver: Driver) -> Driver:
    """Entries 1 to 3; the group g of a, which holds 1 and 2, and idle b."""
    for number in (1, 2, 3):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n SET str x")
    driver.script("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    driver.now_ms += 5
    driver.script("XGROUP CREATECONSUMER s g b")
    return driver


def fields(row: list[Any]) -> dict[str, Any]:
    return dict(zip(row[::2], row[1::2], strict=True))


def test_an_empty_stream_has_no_entries_to_show(driver: Driver) -> None:
    driver.script("XGROUP CREATE s g $ MKSTREAM")

    assert driver.show("XINFO STREAM s") == [
        *("length", 0, "radix-tree-keys", 0, "radix-tree-nodes", 1),
        *("last-generated-id", "0-0", "max-deleted-entry-id", "0-0"),
        *("entries-added", 0, "recorded-first-entry-id", "0-0"),
        *IDMP,
        *("groups", 1, "first-entry", None, "last-entry", None),
    ]


def test_a_stream_shows_its_counters_and_its_ends(grouped: Driver) -> None:
    grouped.script("XDEL s 3-1\n XADD s 4-1 g 4\n XADD s 5-1 h 5\n XDEL s 5-1")

    assert grouped.show("XINFO STREAM s") == [
        *("length", 3, "radix-tree-keys", 1, "radix-tree-nodes", 1),
        *("last-generated-id", "5-1", "max-deleted-entry-id", "5-1"),
        *("entries-added", 5, "recorded-first-entry-id", "1-1"),
        *IDMP,
        *("groups", 1, "first-entry", ["1-1", ["f", "1"]]),
        *("last-entry", ["4-1", ["g", "4"]]),
    ]


def test_a_stream_in_full_shows_entries_groups_and_claims(grouped: Driver) -> None:
    full = fields(grouped.show("XINFO STREAM s FULL"))

    assert list(full)[-2:] == ["entries", "groups"]
    assert [entry[0] for entry in full["entries"]] == ["1-1", "2-1", "3-1"]
    assert full["groups"] == [
        [
            *("name", "g", "last-delivered-id", "2-1", "entries-read", 2, "lag", 1),
            *("pel-count", 2, "nacked-count", 0),
            "pending",
            [["1-1", "a", NOW_MS, 1], ["2-1", "a", NOW_MS, 1]],
            "consumers",
            [
                [
                    *("name", "a", "seen-time", NOW_MS, "active-time", NOW_MS),
                    *("pel-count", 2),
                    *("pending", [["1-1", NOW_MS, 1], ["2-1", NOW_MS, 1]]),
                ],
                [
                    *("name", "b", "seen-time", NOW_MS + 5, "active-time", -1),
                    *("pel-count", 0, "pending", []),
                ],
            ],
        ]
    ]


def test_what_nobody_holds_is_counted_as_nacked(grouped: Driver) -> None:
    grouped.script("XGROUP DELCONSUMER s g a")

    (row,) = fields(grouped.show("XINFO STREAM s FULL"))["groups"]

    group = fields(row)
    assert group["nacked-count"] == 2
    assert group["pending"] == [["1-1", "", 0, 1], ["2-1", "", 0, 1]]


@pytest.mark.parametrize(
    ("words", "entries", "pending"),
    [
        ("", 10, 10),
        ("COUNT 1", 1, 1),
        ("count 0", 12, 11),
        ("COUNT -3", 10, 10),
    ],
)
def test_a_full_view_is_as_long_as_it_is_asked_to_be(
    driver: Driver, words: str, entries: int, pending: int
) -> None:
    for number in range(1, 13):
        driver.script(f"XADD s {number}-1 f v")
    driver.script("XGROUP CREATE s g 0\n XREADGROUP GROUP g a COUNT 11 STREAMS s >")

    full = fields(driver.show(f"XINFO STREAM s FULL {words}"))

    group = fields(full["groups"][0])
    consumer = fields(group["consumers"][0])
    assert len(full["entries"]) == entries
    assert len(group["pending"]) == len(consumer["pending"]) == pending
    assert (group["pel-count"], consumer["pel-count"]) == (11, 11)


def test_a_cold_stream_can_be_looked_at(driver: Driver) -> None:
    driver.script("CONFIG SET stream-node-max-entries 2")
    for number in range(1, 6):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XDEL s 5-1")
    driver.chill(b"s")

    shown = fields(driver.show("XINFO STREAM s"))

    assert shown["radix-tree-keys"] == 2
    assert shown["first-entry"] == ["1-1", ["f", "1"]]
    assert shown["last-entry"] == ["4-1", ["f", "4"]]


def test_groups_are_listed_in_the_order_of_their_names(grouped: Driver) -> None:
    grouped.script("XGROUP CREATE s a $\n XGROUP CREATE s Z 0")

    rows = [fields(row) for row in grouped.show("XINFO GROUPS s")]

    assert [row["name"] for row in rows] == ["Z", "a", "g"]
    assert rows[2] == {
        "name": "g",
        "consumers": 2,
        "pending": 2,
        "last-delivered-id": "2-1",
        "entries-read": 2,
        "lag": 1,
    }


def test_the_lag_counts_what_is_owed_too(grouped: Driver) -> None:
    grouped.now_ms += 30_000
    grouped.keyspace.expire_claims(grouped.now_ms)

    assert fields(grouped.show("XINFO GROUPS s")[0])["lag"] == 3


def test_consumers_show_when_they_were_seen_and_active(grouped: Driver) -> None:
    assert grouped.show("XINFO CONSUMERS s g") == [
        ["name", "a", "pending", 2, "idle", 5, "inactive", 5],
        ["name", "b", "pending", 0, "idle", 0, "inactive", -1],
    ]


def test_in_resp3_the_rows_are_maps(grouped: Driver) -> None:
    for line, start in (
        ("XINFO STREAM s", b"%16\r\n$6\r\nlength\r\n:3\r\n"),
        ("XINFO STREAM s FULL", b"%15\r\n$6\r\nlength\r\n:3\r\n"),
        ("XINFO GROUPS s", b"*1\r\n%6\r\n$4\r\nname\r\n"),
        ("XINFO CONSUMERS s g", b"*2\r\n%4\r\n$4\r\nname\r\n"),
    ):
        answer: Any = grouped.run(line)
        assert encode(answer, 3).startswith(start)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XINFO STREAM nokey X", NO_KEY),
        ("XINFO GROUPS nokey", NO_KEY),
        ("XINFO CONSUMERS nokey g", NO_KEY),
        ("XINFO CONSUMERS s nog", "!NOGROUP No such consumer group 'nog' for key name"),
        ("XINFO STREAM str X", WRONG_TYPE),
        ("XINFO STREAM s X", BAD),
        ("XINFO STREAM s FULL COUNT", BAD),
        ("XINFO STREAM s FULL FOO 1", BAD),
        ("XINFO STREAM s FULL COUNT 1 X", BAD),
        ("XINFO stream s x", BAD.replace("STREAM", "stream")),
        ("XINFO STREAM s FULL COUNT x", NOT_INTEGER),
        ("XINFO FOO s", "!ERR unknown subcommand 'FOO'. Try XINFO HELP."),
        (
            "XINFO GROUPS s x",
            "!ERR wrong number of arguments for 'xinfo|groups' command",
        ),
    ],
)
def test_xinfo_says_what_it_does_not_take(
    grouped: Driver, line: str, text: str
) -> None:
    assert grouped.show(line).startswith(text)


def test_help_lists_the_subcommands(driver: Driver) -> None:
    lines = driver.show("XINFO HELP")

    assert lines[0].startswith("XINFO <subcommand>")
    assert len(lines) == 9


@pytest.mark.parametrize("line", ["XINFO GROUPS s", "XINFO STREAM s FULL"])
def test_groups_that_left_memory_are_fetched_to_be_shown(
    grouped: Driver, line: str
) -> None:
    wanted = grouped.show(line)
    stream = grouped.keyspace.stream(0, b"s")
    assert stream is not None
    stream.groups[b"g"].resident = False

    assert grouped.show(line) == wanted
    assert [len(missing.groups) for missing in grouped.server.loaded] == [1]
