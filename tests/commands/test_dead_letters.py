"""XDLQ."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import Died, Discarded, Redriven
from felixresp.engine.dead_letters import DeadLetter

from .driver import NOW_MS, Driver

SYNTAX = "!ERR syntax error"
BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
LIMIT_NEGATIVE = "!ERR The LIMIT argument must be >= 0."
NOT_INTEGER = "!ERR value is not an integer or out of range"


@pytest.fixture
def dead(driver: Driver) -> Driver:
    """Entries 1 to 4: 1 and 2 died of their attempts, 3 was given up for a reason."""
    driver.script("SET str x\n CONFIG SET group-max-attempts 1")
    for number in (1, 2, 3, 4):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    driver.now_ms += 30_000
    driver.keyspace.expire_claims(driver.now_ms)
    driver.script("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    stream = driver.keyspace.stream(0, b"s")
    assert stream
    group = stream.groups[b"g"]
    letter = DeadLetter(3 << 64 | 1, 1, b"consumer", b"bad:json", b"a", 5, 6, 0)
    group.record(Died(group, (letter,), b"fatal"))
    return driver


def listed(driver: Driver, words: str = "") -> list[str]:
    return [row[1] for row in driver.show(f"XDLQ LIST s g {words}")]


def polled(driver: Driver) -> list[str]:
    answer: Any = driver.show("XREADGROUP GROUP g b STREAMS s >")
    return [id_ for id_, _ in answer[0][1]]


def test_the_list_says_why_each_entry_is_dead(dead: Driver) -> None:
    dead.script("XDEL s 2-1")

    rows = [
        dict(zip(row[::2], row[1::2], strict=True))
        for row in dead.show("XDLQ LIST s g")
    ]

    assert rows[0] == {
        "id": "1-1",
        "present": 1,
        "attempts": 1,
        "cause": "attempts",
        "reason": "",
        "last-consumer": "a",
        "first-delivered": NOW_MS,
        "dead-at": NOW_MS + 30_000,
        "redriven": 0,
    }
    assert rows[1]["present"] == 0
    assert (rows[2]["cause"], rows[2]["reason"]) == ("consumer", "bad:json")


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", ["1-1", "2-1", "3-1"]),
        ("- +", ["1-1", "2-1", "3-1"]),
        ("2 (3-1", ["2-1"]),
        ("COUNT 2", ["1-1", "2-1"]),
        ("- + COUNT 1", ["1-1"]),
        ("REASON bad:", ["3-1"]),
        ("CAUSE Attempts count 5", ["1-1", "2-1"]),
        ("CAUSE consumer REASON good", []),
    ],
)
def test_the_list_can_be_narrowed(dead: Driver, words: str, ids: list[str]) -> None:
    assert listed(dead, words) == ids


def test_len_counts_the_list(dead: Driver) -> None:
    assert dead.show("XDLQ LEN s g") == 3


def test_a_redriven_entry_is_handed_out_again(dead: Driver) -> None:
    assert dead.show("XDLQ REDRIVE s g 1-1 1-1 4-1 9-9") == 1
    assert [type(change) for change in dead.changes] == [Redriven]
    assert listed(dead) == ["2-1", "3-1"]
    assert polled(dead) == ["1-1", "4-1"]


def test_only_entries_that_are_there_are_redriven(dead: Driver) -> None:
    dead.script("XDEL s 1-1")

    assert dead.show("XDLQ REDRIVE s g ALL LIMIT 1 DRYRUN") == 1
    assert not dead.changes
    assert dead.show("XDLQ REDRIVE s g 1-1") == 0
    assert dead.show("XDLQ REDRIVE s g ALL") == 2
    assert listed(dead) == ["1-1"]


def test_all_can_be_narrowed_by_reason(dead: Driver) -> None:
    assert dead.show("XDLQ REDRIVE s g all REASON bad LIMIT 0") == 1
    assert listed(dead) == ["1-1", "2-1"]


def test_a_discarded_letter_is_gone_for_good(dead: Driver) -> None:
    assert dead.show("XDLQ DISCARD s g 1-1 9-9") == 1
    assert [type(change) for change in dead.changes] == [Discarded]
    assert dead.show("XDLQ DISCARD s g ALL LIMIT 1") == 1
    assert dead.show("XDLQ DISCARD s g ALL DRYRUN") == 1
    assert listed(dead) == ["3-1"]
    assert polled(dead) == ["4-1"]


def test_a_late_ack_takes_a_letter_off_the_list(dead: Driver) -> None:
    assert dead.show("XACK s g 1-1 3-1") == 1
    assert listed(dead) == ["2-1", "3-1"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XDLQ LIST s g -", SYNTAX),
        ("XDLQ LIST s g bad +", BAD_ID),
        ("XDLQ LIST s g - + FOO", SYNTAX),
        ("XDLQ LIST s g COUNT", SYNTAX),
        ("XDLQ LIST s g COUNT 0", "!ERR COUNT must be > 0"),
        ("XDLQ LIST s g COUNT x", "!ERR COUNT must be > 0"),
        ("XDLQ LIST s g CAUSE fate", SYNTAX),
        ("XDLQ LIST s nog", "!NOGROUP No such key 's' or consumer group 'nog'"),
        ("XDLQ LEN nokey g", "!NOGROUP No such key 'nokey' or consumer group 'g'"),
        ("XDLQ LEN str g", WRONG_TYPE),
        ("XDLQ REDRIVE s g 1-1 bad", BAD_ID),
        ("XDLQ REDRIVE s g ALL 1-1", SYNTAX),
        ("XDLQ REDRIVE s g ALL LIMIT", SYNTAX),
        ("XDLQ REDRIVE s g ALL LIMIT -1", LIMIT_NEGATIVE),
        ("XDLQ DISCARD s g ALL LIMIT x", NOT_INTEGER),
        (
            "XDLQ DISCARD s g",
            "!ERR wrong number of arguments for 'xdlq|discard' comman",
        ),
        ("XDLQ FOO s g", "!ERR unknown subcommand 'FOO'. Try XDLQ HELP."),
    ],
)
def test_a_refused_xdlq_changes_nothing(dead: Driver, line: str, text: str) -> None:
    assert dead.show(line).startswith(text)
    assert not dead.changes


def test_help_lists_the_subcommands(driver: Driver) -> None:
    assert driver.show("XDLQ HELP")[0].startswith("XDLQ <subcommand>")
