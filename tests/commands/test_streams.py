"""XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID."""

from __future__ import annotations

import pytest

from felixresp.engine.changes import Appended, Created, Trimmed

from .decode import NIL
from .driver import WALL_MS, Driver

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
TOO_SMALL = (
    "!ERR The ID specified in XADD is equal or smaller than the target stream top item"
)
EXHAUSTED = (
    "!ERR The stream has exhausted the last possible ID, unable to add more items"
)
NO_STRATEGY = (
    "!ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
)
NOT_APPROXIMATE = "!ERR syntax error, LIMIT cannot be used without the special ~ option"
TWO_STRATEGIES = (
    "!ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
)
MAX = "18446744073709551615"


def ids(driver: Driver, key: str = "s") -> list[str]:
    return [entry[0] for entry in driver.show(f"XRANGE {key} - +")]


def add(driver: Driver, *numbers: int, key: str = "s") -> None:
    for number in numbers:
        driver.script(f"XADD {key} {number}-1 f {number}")


def test_an_entry_gets_the_time_and_then_the_next_number(driver: Driver) -> None:
    assert driver.show("XADD s * f v") == f"{WALL_MS}-0"
    assert [type(change) for change in driver.changes] == [Created, Appended]
    assert driver.show("XADD s * f v") == f"{WALL_MS}-1"
    driver.wall_ms -= 10
    assert driver.show("XADD s * f v") == f"{WALL_MS}-2"
    driver.wall_ms += 11
    assert driver.show("XADD s * f v") == f"{WALL_MS + 1}-0"


@pytest.mark.parametrize(
    ("word", "given"),
    [("5-3", "5-3"), ("7", "7-0"), ("007-002", "7-2"), ("0-*", "0-1"), ("9-*", "9-0")],
)
def test_an_id_may_be_given_in_part(driver: Driver, word: str, given: str) -> None:
    assert driver.show(f"XADD s {word} f v") == given


def test_a_given_millisecond_continues_where_the_stream_is(driver: Driver) -> None:
    driver.script("XADD s 5-3 f v")

    assert driver.show("XADD s 5-* f v") == "5-4"
    assert driver.show("XADD s 6-* f v") == "6-0"
    assert driver.show("XADD s 5-* f v") == TOO_SMALL


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XADD s 5-0 f v", TOO_SMALL),
        ("XADD s 4-9 f v", TOO_SMALL),
        ("XADD new 0-0 f v", "!ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD s * f v x", "!ERR wrong number of arguments for 'xadd' command"),
        ("XADD s 9-1 f v x", "!ERR wrong number of arguments for 'xadd' command"),
        ("XADD s MAXLEN 3 9-1", "!ERR wrong number of arguments for 'xadd' command"),
        ("XADD s NOMKSTREAM KEEPREF NOMKSTREAM", "!ERR wrong number of arguments for"),
        ("XADD s bad f v x", BAD_ID),
        ("XADD s x-* f v", BAD_ID),
        (f"XADD s {MAX}9-* f v", BAD_ID),
        ("XADD s 1-** f v", BAD_ID),
        ("XADD s -* f v", BAD_ID),
        ("XADD s FOO 9-1 f v", BAD_ID),
        ("XADD s KEEPREF KEEPREF 9-1 f v", BAD_ID),
        ("XADD s LIMIT 5 bad f v", BAD_ID),
        ("XADD s MINID bad 9-1 f v", BAD_ID),
        ("XADD s MAXLEN x 9-1 f v", NOT_INTEGER),
        ("XADD s MAXLEN ~ = 9-1 f v", NOT_INTEGER),
        ("XADD s MAXLEN * f v", NOT_INTEGER),
        ("XADD s MAXLEN ~ 5 LIMIT x 9-1 f v", NOT_INTEGER),
        ("XADD s MAXLEN -1 9-1 f v", "!ERR The MAXLEN argument must be >= 0."),
        ("XADD s LIMIT -1 9-1 f v", "!ERR The LIMIT argument must be >= 0."),
        ("XADD s LIMIT 5 9-1 f v", NO_STRATEGY),
        ("XADD s LIMIT 0 9-1 f v", NOT_APPROXIMATE),
        ("XADD s MAXLEN 5 LIMIT 0 9-1 f v", NOT_APPROXIMATE),
        ("XADD s MAXLEN 5 MINID bad 9-1 f v", TWO_STRATEGIES),
        ("XADD s MAXLEN 5 MAXLEN 5 9-1 f v", TWO_STRATEGIES),
        ("XADD str * f v", WRONG_TYPE),
        ("XADD str bad f v", BAD_ID),
    ],
)
def test_a_refused_xadd_changes_nothing(driver: Driver, line: str, text: str) -> None:
    driver.script("SET str x\n XADD s 5-0 f v")

    assert driver.show(line).startswith(text)
    assert not driver.changes


def test_the_last_possible_id_ends_a_stream(driver: Driver) -> None:
    driver.script(f"XADD s {MAX}-{MAX} f v")

    for word in ("*", "5-0", "5-*", f"{MAX}-*"):
        assert driver.show(f"XADD s {word} f v") == EXHAUSTED


def test_an_entry_over_a_gibibyte_is_refused(driver: Driver) -> None:
    half = bytes(1024) * (512 * 1024)

    answer = driver.show([b"XADD", b"s", b"*", half, half, b"f", b"v"])

    assert answer == "!ERR Elements are too large to be stored"
    assert driver.show("EXISTS s") == 0


def test_nomkstream_adds_to_streams_that_exist_only(driver: Driver) -> None:
    assert driver.show("XADD s NOMKSTREAM 1-1 f v") is None
    assert driver.show("EXISTS s") == 0
    driver.script("XADD s 1-1 f v")
    assert driver.show("XADD s nomkstream 2-1 f v") == "2-1"
    assert driver.show("XADD s NOMKSTREAM * f v") == f"{WALL_MS}-0"


def test_xadd_trims_after_it_added(driver: Driver) -> None:
    add(driver, 1, 2, 3)

    assert driver.show("XADD s MAXLEN = 2 KEEPREF 4-1 f v") == "4-1"
    assert ids(driver) == ["3-1", "4-1"]
    assert driver.show("XADD s MINID 4 5-1 f v") == "5-1"
    assert ids(driver) == ["4-1", "5-1"]
    assert driver.show("XADD s MAXLEN 0 6-1 f v") == "6-1"
    assert ids(driver) == []


def test_an_approximate_trim_removes_whole_nodes_up_to_the_limit(
    driver: Driver,
) -> None:
    driver.script("CONFIG SET stream-node-max-entries 10")
    add(driver, *range(1, 46))

    assert driver.show("XTRIM s MAXLEN ~ 1 LIMIT 9") == 0
    assert driver.show("XTRIM s MAXLEN ~ 1 LIMIT 25") == 20
    assert driver.show("XTRIM s MINID ~ 35") == 10
    assert driver.show("XTRIM s LIMIT 0 MAXLEN ~ 0") == 15


@pytest.mark.parametrize(("node_max", "gone"), [(1, 100), (0, 300)])
def test_without_limit_a_trim_takes_a_hundred_nodes(
    driver: Driver, node_max: int, gone: int
) -> None:
    driver.script(f"CONFIG SET stream-node-max-entries {node_max}")
    driver.script("CONFIG SET stream-node-max-bytes 40")
    add(driver, *range(1, 301))

    assert driver.show("XTRIM s MAXLEN ~ 0") == gone


def test_a_trim_after_adding_reads_cold_nodes_at_once(driver: Driver) -> None:
    driver.script("CONFIG SET stream-node-max-entries 2")
    add(driver, 1, 2, 3)
    driver.chill(b"s")

    assert driver.show("XADD s MAXLEN 3 4-1 f v") == "4-1"
    assert len(driver.server.loaded) == 1
    assert [type(change) for change in driver.changes] == [Appended, Trimmed]


def test_xlen_counts_the_entries(driver: Driver) -> None:
    driver.script("SET str x")
    add(driver, 1, 2)

    assert driver.show("XLEN s") == 2
    assert driver.show("XLEN nokey") == 0
    assert driver.show("XLEN str") == WRONG_TYPE


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("XRANGE s - +", [1, 2, 3]),
        ("XRANGE s 2 2", [2]),
        ("XRANGE s (1-1 +", [2, 3]),
        ("XRANGE s - (3-1", [1, 2]),
        ("XRANGE s - + COUNT 2", [1, 2]),
        ("XRANGE s - + COUNT 1 count 2", [1, 2]),
        ("XRANGE s + -", []),
        ("XRANGE s - (0", []),
        ("XREVRANGE s + -", [3, 2, 1]),
        ("XREVRANGE s + - COUNT 1", [3]),
        ("XREVRANGE s (3-1 (1-1", [2]),
        ("XRANGE nokey - + COUNT 0", []),
    ],
)
def test_a_range_has_the_entries_between_its_ends(
    driver: Driver, line: str, found: list[int]
) -> None:
    add(driver, 1, 2, 3)

    assert driver.show(line) == [[f"{n}-1", ["f", str(n)]] for n in found]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XRANGE s - + COUNT 0", NIL),
        ("XREVRANGE s + - COUNT -5", NIL),
        ("XRANGE s - + COUNT x", NOT_INTEGER),
        ("XRANGE s - + COUNT", SYNTAX),
        ("XRANGE s - + FOO", SYNTAX),
        ("XRANGE s x +", BAD_ID),
        ("XRANGE s (- +", BAD_ID),
        ("XRANGE s (+ +", BAD_ID),
        ("XRANGE s ( +", BAD_ID),
        (f"XRANGE s ({MAX}-{MAX} bad", "!ERR invalid start ID for the interval"),
        ("XRANGE s - (0-0", "!ERR invalid end ID for the interval"),
        ("XRANGE str - + COUNT 0", WRONG_TYPE),
        ("XRANGE str bad +", BAD_ID),
    ],
)
def test_a_range_checks_its_words(driver: Driver, line: str, answer: str) -> None:
    driver.script("SET str x\n XADD s 1-1 f v")

    assert driver.show(line) == answer


def test_xdel_counts_what_it_deleted(driver: Driver) -> None:
    driver.script("SET str x")
    add(driver, 1, 2, 3)

    assert driver.show("XDEL s 1-1 1-1 9-9 3-1") == 2
    assert ids(driver) == ["2-1"]
    assert driver.show("XDEL s 2-1 bad") == BAD_ID
    assert driver.show("XDEL nokey bad") == 0
    assert driver.show("XDEL str bad") == WRONG_TYPE


def test_xdel_of_very_many_entries_reads_them_in_batches(driver: Driver) -> None:
    driver.script("CONFIG SET stream-node-max-entries 1")
    add(driver, *range(1, 251))
    driver.chill(b"s")

    line = "XDEL s " + " ".join(f"{number}-1" for number in range(1, 251))
    assert driver.show(line) == 250
    assert [len(change.ids) for change in driver.changes] == [100, 100, 50]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XTRIM s MAXLEN 1", 2),
        ("XTRIM s MINID = 2 KEEPREF", 1),
        ("XTRIM s keepref maxlen 100", 0),
        ("XTRIM s MAXLEN 3", 0),
        ("XTRIM nokey MAXLEN 1", 0),
        ("XTRIM str MAXLEN 1", WRONG_TYPE),
        ("XTRIM str MAXLEN x", NOT_INTEGER),
        ("XTRIM s MAXLEN ~", NOT_INTEGER),
        ("XTRIM s MINID -", BAD_ID),
        ("XTRIM s FOO 1", SYNTAX),
        ("XTRIM s MAXLEN 3 x", SYNTAX),
        ("XTRIM s MAXLEN ~ 3 LIMIT", SYNTAX),
        ("XTRIM s MAXLEN 3 KEEPREF KEEPREF", SYNTAX),
        ("XTRIM s MAXLEN 3 DELREF", SYNTAX),
        ("XTRIM s KEEPREF MAXLEN", SYNTAX),
        ("XTRIM s LIMIT 1", NO_STRATEGY),
        ("XTRIM s LIMIT 0", "!ERR syntax error, XTRIM must be called with a trimming"),
        ("XTRIM s MAXLEN 1 LIMIT 1", NOT_APPROXIMATE),
        ("XTRIM s MAXLEN 1 MINID 1", TWO_STRATEGIES),
    ],
)
def test_xtrim_trims_or_says_why_not(
    driver: Driver, line: str, answer: int | str
) -> None:
    driver.script("SET str x")
    add(driver, 1, 2, 3)

    got = driver.show(line)

    assert got.startswith(answer) if isinstance(answer, str) else got == answer


BELOW_DELETED = (
    "!ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XSETID s 6-1", "OK"),
        ("XSETID s 9", "OK"),
        ("XSETID s 9-0 ENTRIESADDED 100 MAXDELETEDID 5-0", "OK"),
        ("XSETID s 9-0 maxdeletedid 0-0 entriesadded 2 ENTRIESADDED 3", "OK"),
        ("XSETID s 2-0", BELOW_DELETED),
        ("XSETID s 5-0", "!ERR The ID specified in XSETID is smaller than the target "),
        ("XSETID s 9-0 MAXDELETEDID 10", "!ERR The ID specified in XSETID is smaller"),
        ("XSETID s 9-0 ENTRIESADDED -1", "!ERR entries_added must be positive"),
        ("XSETID s 9-0 ENTRIESADDED 1", "!ERR The entries_added specified in XSETID"),
        ("XSETID s 9-0 ENTRIESADDED x", NOT_INTEGER),
        ("XSETID s 9-0 MAXDELETEDID x", BAD_ID),
        ("XSETID s 9-0 ENTRIESADDED", SYNTAX),
        ("XSETID s 9-0 MAXDELETEDID", SYNTAX),
        ("XSETID s 9-0 FOO", SYNTAX),
        ("XSETID s -", BAD_ID),
        ("XSETID nokey 1-1", "!ERR no such key"),
        ("XSETID str 1-1", WRONG_TYPE),
        ("XSETID str bad", BAD_ID),
    ],
)
def test_xsetid_keeps_the_ids_in_order(driver: Driver, line: str, answer: str) -> None:
    driver.script("SET str x")
    add(driver, 1, 2, 3, 4, 6)
    driver.script("XDEL s 3-1\n XTRIM s MAXLEN 2")

    assert driver.show(line).startswith(answer)


def test_an_emptied_stream_may_go_back(driver: Driver) -> None:
    add(driver, 1, 6)
    driver.script("XTRIM s MAXLEN 0\n XSETID s 2-0 ENTRIESADDED 0")

    assert driver.show("XADD s 3-0 f v") == "3-0"


def test_xsetid_looks_at_the_last_entry_that_lives(driver: Driver) -> None:
    add(driver, 1, 5, 6)
    driver.script("XDEL s 6-1\n XSETID s 9-0 MAXDELETEDID 4-0")

    assert driver.show("XSETID s 5-1") == "OK"
    assert driver.show("XSETID s 5-0").startswith("!ERR The ID specified in XSETID")
