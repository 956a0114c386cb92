"""XACK, XPENDING, XCLAIM, XAUTOCLAIM."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import Finished

from .decode import NIL
from .driver import Driver

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NO_GROUP = "!NOGROUP No such key 's' or consumer group 'nog'"
NO_KEY = "!NOGROUP No such key 'nokey' or consumer group 'g'"
MAX = 2**64 - 1


def entry(number: int) -> list[Any]:
    return [f"{number}-1", ["f", str(number)]]


@pytest.fixture
def pending(driver: Driver) -> Driver:
    """Entries 1 to 5; a holds 1 and 2, b holds 3; a millisecond has passed since."""
    for number in (1, 2, 3, 4, 5):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n SET str x")
    driver.script("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    driver.script("XREADGROUP GROUP g b COUNT 1 STREAMS s >")
    driver.now_ms += 1
    return driver


def rows(driver: Driver) -> list[Any]:
    found: list[Any] = driver.show("XPENDING s g - + 100")
    return found


# --- XACK


def test_an_ack_counts_what_it_settled(pending: Driver) -> None:
    assert pending.show("XACK s g 1-1 1-1 9-9 3-1") == 2
    assert [type(change) for change in pending.changes] == [Finished]
    assert pending.show("XACK s g 1-1") == 0
    assert pending.show("XACK s g 4-1") == 0
    assert [row[0] for row in rows(pending)] == ["2-1"]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XACK s nog bad", 0),
        ("XACK nokey g bad", 0),
        ("XACK s g 1-1 bad", BAD_ID),
        ("XACK s g -", BAD_ID),
        ("XACK s g", "!ERR wrong number of arguments for 'xack' command"),
        ("XACK str g 1-1", WRONG_TYPE),
    ],
)
def test_an_ack_of_nothing_changes_nothing(
    pending: Driver, line: str, answer: int | str
) -> None:
    assert pending.show(line) == answer
    assert not pending.changes


# --- XPENDING


def test_the_summary_counts_by_consumer(pending: Driver) -> None:
    assert pending.show("XPENDING s g") == [3, "1-1", "3-1", [["a", "2"], ["b", "1"]]]
    pending.script("XACK s g 3-1 2-1")
    assert pending.show("XPENDING s g") == [1, "1-1", "1-1", [["a", "1"]]]
    pending.script("XACK s g 1-1")
    assert pending.show("XPENDING s g") == [0, None, None, NIL]


def test_the_summary_counts_entries_put_back_behind_the_cursor(
    pending: Driver,
) -> None:
    pending.script("XACK s g 1-1 2-1 3-1\n XCLAIM s g a 0 2-1 FORCE")

    assert pending.show("XPENDING s g") == [1, "2-1", "2-1", [["a", "1"]]]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("- + 10", "123"),
        ("- + 2", "12"),
        ("2 2 10", "2"),
        ("(1-1 (3-1 10", "2"),
        ("+ - 10", ""),
        ("- + 0", ""),
        ("- + -1", ""),
        ("- + 10 a", "12"),
        ("2 + 10 a", "2"),
        ("- + 10 nobody", ""),
        ("- + 10 b ignored", "3"),
        ("IDLE 1 - + 10", "123"),
        ("idle 2 - + 10", ""),
        ("IDLE -5 - + 10 b", "3"),
    ],
)
def test_the_rows_are_the_pending_entries_asked_for(
    pending: Driver, words: str, ids: str
) -> None:
    holder = {"1": "a", "2": "a", "3": "b"}

    found = pending.show(f"XPENDING s g {words}")

    assert found == [[f"{id_}-1", holder[id_], 1, 1] for id_ in ids]


def test_a_lapsed_entry_shows_under_its_last_holder(pending: Driver) -> None:
    pending.now_ms += 40_000
    pending.keyspace.expire_claims(pending.now_ms)

    assert rows(pending)[0] == ["1-1", "a", 40_001, 1]
    assert pending.show("XPENDING s g")[3] == [["a", "2"], ["b", "1"]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XPENDING s g -", SYNTAX),
        ("XPENDING s g - +", SYNTAX),
        ("XPENDING s g IDLE", SYNTAX),
        ("XPENDING s g IDLE 5 - +", SYNTAX),
        ("XPENDING s g - + 10 c x y z", SYNTAX),
        ("XPENDING s g IDLE 0 - + 10 c x", SYNTAX),
        ("XPENDING s g IDLE x - + 10", NOT_INTEGER),
        ("XPENDING s g bad + x", NOT_INTEGER),
        ("XPENDING s g bad + 10", BAD_ID),
        ("XPENDING s g (- + 10", BAD_ID),
        (f"XPENDING s g ({MAX}-{MAX} + 10", "!ERR invalid start ID for the interval"),
        ("XPENDING s g - (0-0 10", "!ERR invalid end ID for the interval"),
        ("XPENDING s nog", NO_GROUP),
        ("XPENDING nokey g", NO_KEY),
        ("XPENDING nokey g - + -1", NO_KEY),
        ("XPENDING str g", WRONG_TYPE),
    ],
)
def test_xpending_says_what_it_does_not_take(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(line) == text


# --- XCLAIM


def test_a_claim_moves_entries_to_the_consumer(pending: Driver) -> None:
    assert pending.show("XCLAIM s g c 0 1-1 3-1 9-9") == [entry(1), entry(3)]
    assert rows(pending) == [["1-1", "c", 0, 2], ["2-1", "a", 1, 1], ["3-1", "c", 0, 2]]


def test_a_claim_leaves_what_is_not_idle_enough(pending: Driver) -> None:
    assert pending.show("XCLAIM s g c 2 1-1") == []
    assert pending.show("XCLAIM s g c 1 1-1") == [entry(1)]
    assert pending.show("XCLAIM s g d -5 1-1") == [entry(1)]


def test_justid_answers_ids_and_costs_nothing(pending: Driver) -> None:
    assert pending.show("XCLAIM s g c 0 1-1 justid") == ["1-1"]
    assert rows(pending)[0] == ["1-1", "c", 0, 1]


@pytest.mark.parametrize(
    ("options", "idle", "deliveries"),
    [
        ("IDLE 5000", 5000, 2),
        ("IDLE -1", 0, 2),
        (f"IDLE {2**63 - 1}", 0, 2),
        ("TIME 1699999999000", 1000, 2),
        ("TIME 9999999999999", 0, 2),
        ("TIME -1", 0, 2),
        ("RETRYCOUNT 0", 0, 0),
        ("retrycount 7 JUSTID", 0, 7),
        ("RETRYCOUNT -1", 0, 2),
        ("IDLE 5 TIME 1699999999000 IDLE 9", 9, 2),
    ],
)
def test_a_claim_may_set_idle_time_and_count(
    pending: Driver, options: str, idle: int, deliveries: int
) -> None:
    pending.script(f"XCLAIM s g c 0 1-1 {options}")

    assert rows(pending)[0] == ["1-1", "c", idle, deliveries]


def test_force_claims_what_nobody_has(pending: Driver) -> None:
    """Redis counts a forced entry as delivered once before it is claimed."""
    assert pending.show("XCLAIM s g c 0 4-1 9-9") == []
    assert pending.show("XCLAIM s g c 0 4-1 9-9 FORCE") == [entry(4)]
    assert pending.show("XCLAIM s g c 0 5-1 JUSTID FORCE") == ["5-1"]
    assert rows(pending)[3:] == [["4-1", "c", 0, 2], ["5-1", "c", 0, 1]]


def test_lastid_only_raises_the_head(pending: Driver) -> None:
    def head() -> str:
        last: str = pending.show("XINFO GROUPS s")[0][7]
        return last

    pending.script("XCLAIM s g c 0 LASTID 2")
    assert head() == "3-1"
    pending.script("XCLAIM s g c 0 9-9 LASTID 4-1")
    assert head() == "4-1"


def test_a_claim_drops_what_was_deleted(pending: Driver) -> None:
    pending.script("XDEL s 1-1")

    assert pending.show("XCLAIM s g c 0 1-1 2-1") == [entry(2)]
    assert [row[0] for row in rows(pending)] == ["2-1", "3-1"]


def test_an_empty_claim_makes_the_consumer_all_the_same(pending: Driver) -> None:
    pending.script("XCLAIM s g new 0 9-9\n XAUTOCLAIM s g newer 999 0")

    assert pending.show("XGROUP CREATECONSUMER s g new") == 0
    assert pending.show("XGROUP CREATECONSUMER s g newer") == 0


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XCLAIM s g c x 1-1", "!ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM s g c 0 bad", "!ERR Unrecognized XCLAIM option 'bad'"),
        ("XCLAIM s g c 0 1-1 FORCE 2-1", "!ERR Unrecognized XCLAIM option '2-1'"),
        ("XCLAIM s g c 0 1-1 idle", "!ERR Unrecognized XCLAIM option 'idle'"),
        ("XCLAIM s g c 0 1-1 LASTID", "!ERR Unrecognized XCLAIM option 'LASTID'"),
        ("XCLAIM s g c 0 1-1 idle x", "!ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM s g c 0 1-1 TIME x", "!ERR Invalid TIME option argument for XCLAIM"),
        (
            "XCLAIM s g c 0 1-1 RETRYCOUNT x",
            "!ERR Invalid RETRYCOUNT option argument for XCLAIM",
        ),
        ("XCLAIM s g c 0 1-1 LASTID x", BAD_ID),
        ("XCLAIM s nog c x bad", NO_GROUP),
        ("XCLAIM nokey g c x bad", NO_KEY),
        ("XCLAIM str g c x bad", WRONG_TYPE),
    ],
)
def test_a_refused_claim_changes_nothing(pending: Driver, line: str, text: str) -> None:
    assert pending.show(line) == text
    assert not pending.changes


def test_an_error_repeats_a_word_up_to_its_first_nul(pending: Driver) -> None:
    words = [b"XCLAIM", b"s", b"g", b"c", b"0", b"1-1", b"F\0O"]

    assert pending.show(words) == "!ERR Unrecognized XCLAIM option 'F'"


# --- XAUTOCLAIM


def test_autoclaim_takes_what_is_idle_in_id_order(pending: Driver) -> None:
    answer = pending.show("XAUTOCLAIM s g c 1 - COUNT 2")

    assert answer == ["3-1", [entry(1), entry(2)], []]
    assert pending.show("XAUTOCLAIM s g c 1 3-1") == ["0-0", [entry(3)], []]
    assert pending.show("XAUTOCLAIM s g c 1 0") == ["0-0", [], []]


def test_autoclaim_lists_deleted_entries_apart(pending: Driver) -> None:
    pending.script("XDEL s 2-1")

    answer = pending.show("XAUTOCLAIM s g c 0 (1-1 justid JUSTID count 100")

    assert answer == ["0-0", ["3-1"], ["2-1"]]


def test_autoclaim_teaches_the_group_how_long_clients_wait(pending: Driver) -> None:
    pending.script("XAUTOCLAIM s g c 600000 0")
    pending.now_ms += 599_000
    pending.keyspace.expire_claims(pending.now_ms)

    ((_, entries),) = pending.show("XREADGROUP GROUP g d STREAMS s >")
    assert [id_ for id_, _ in entries] == ["4-1", "5-1"]


def test_an_id_given_twice_is_shown_twice(pending: Driver) -> None:
    assert pending.show("XCLAIM s g c 0 1-1 1-1 JUSTID") == ["1-1", "1-1"]


def test_an_id_given_twice_is_claimed_twice_where_it_is_idle_enough(
    pending: Driver,
) -> None:
    pending.now_ms += 10

    assert pending.show("XCLAIM s g c 10 1-1 2-1 1-1 JUSTID") == ["1-1", "2-1"]
    assert pending.show("XCLAIM s g c 0 2-1 2-1 2-1") == [entry(2)] * 3
    assert rows(pending)[1] == ["2-1", "c", 0, 4]


def test_autoclaim_lists_deleted_entries_however_short_they_were_idle(
    pending: Driver,
) -> None:
    pending.script("XDEL s 1-1 2-1")

    assert pending.show("XAUTOCLAIM s g c 99999 0 COUNT 1") == ["2-1", [], ["1-1"]]


def test_autoclaim_leaves_a_deleted_entry_that_is_delayed(pending: Driver) -> None:
    pending.script("XNACK s g FAIL IDS 1 1-1 DELAY 50\n XDEL s 1-1")

    assert pending.show("XAUTOCLAIM s g c 99999 0") == ["0-0", [], []]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XAUTOCLAIM str g c x bad", "!ERR Invalid min-idle-time argument for XAUTO"),
        ("XAUTOCLAIM nokey g c 0 bad", BAD_ID),
        (f"XAUTOCLAIM s g c 0 ({MAX}-{MAX}", "!ERR invalid start ID for the interval"),
        ("XAUTOCLAIM nokey g c 0 0 FOO", SYNTAX),
        ("XAUTOCLAIM s g c 0 0 COUNT", SYNTAX),
        ("XAUTOCLAIM s g c 0 0 COUNT 0", "!ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g c 0 0 COUNT x", "!ERR COUNT must be > 0"),
        (f"XAUTOCLAIM s g c 0 0 COUNT {2**59}", "!ERR COUNT must be > 0"),
        (f"XAUTOCLAIM s g c 0 0 COUNT {2**59 - 1}", "!ERR Insufficient memory, failed"),
        ("XAUTOCLAIM s nog c 0 0", NO_GROUP),
        ("XAUTOCLAIM nokey g c 0 0", NO_KEY),
        ("XAUTOCLAIM str g c 0 0", WRONG_TYPE),
    ],
)
def test_a_refused_autoclaim_changes_nothing(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(line).startswith(text)
    assert not pending.changes
