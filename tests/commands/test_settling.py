"""XNACK and XEXTEND."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import Extended

from .driver import NOW_MS, Driver, FakeClient
from .held import explained, poll_some, read_some, readable, rows

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NUMIDS = "!ERR numids must be a positive integer"
MISMATCH = "!ERR number of IDs doesn't match numids"
NO_IDS = "!ERR syntax error, expected IDS keyword"
COUNTS = "!ERR Invalid RETRYCOUNT value, must be >= 0"
NOT_LEASED = "!ERR The group is in mode redis, which has no such command"
NO_GROUP = "!NOGROUP No such key 's' or consumer group 'nog'"
NO_KEY = "!NOGROUP No such key 'nokey' or consumer group 'g'"
HOLDER = "!ERR XEXTEND needs receipts, or CONSUMER for plain IDs"
FORGED = "1-1:0123456789abcdef"
HUGE = 2**63 - 1
VISIBILITY_MS = 30_000
VISIBILITY_MAX_MS = 43_200_000


@pytest.fixture
def pending(driver: Driver) -> Driver:
    """Of the entries 1 to 4 of s, a holds 1 and 2, b holds 3; 4 is new."""
    read_some(driver)
    return driver


@pytest.fixture
def receipts(driver: Driver) -> dict[str, str]:
    """The same, but handed out by XPOLL; the receipts by ID."""
    return poll_some(driver)


def listed(driver: Driver) -> list[list[Any]]:
    """XDLQ LIST: id, attempts, cause, reason, consumer."""
    letters = [
        dict(zip(row[::2], row[1::2], strict=True))
        for row in driver.show("XDLQ LIST s g")
    ]
    wanted = "id", "attempts", "cause", "reason", "last-consumer"
    return [[letter[name] for name in wanted] for letter in letters]


def user(driver: Driver, rules: str = "+@all ~*") -> FakeClient:
    client = driver.connect()
    driver.script(f"ACL SETUSER u on nopass {rules}")
    driver.script_as(client, "AUTH u x")
    return client


# --- XNACK


@pytest.mark.parametrize(
    ("mode", "deliveries"), [("SILENT", 0), ("fail", 1), ("FAIL", 1)]
)
def test_a_nacked_entry_is_nobodys_and_owed(
    pending: Driver, mode: str, deliveries: int
) -> None:
    assert pending.show(f"XNACK s g {mode} IDS 2 1-1 3-1") == 2

    assert rows(pending)["1-1"] == ["", -1, deliveries]
    assert explained(pending)["state"] == "owed"
    assert readable(pending) == ["1-1", "3-1", "4-1"]


def test_silent_takes_the_attempt_back_and_fail_does_not(pending: Driver) -> None:
    pending.script("XNACK s g SILENT IDS 1 1-1\n XNACK s g FAIL IDS 1 2-1")

    answer = pending.show("XPOLL s g c COUNT 2")

    assert [meta[1] for _, _, meta in answer] == [1, 2]


def test_fatal_gives_up_with_a_reason(pending: Driver) -> None:
    assert pending.show("XNACK s g FATAL IDS 1 1-1 REASON 'bad json'") == 1

    assert listed(pending) == [["1-1", 1, "consumer", "bad json", "a"]]
    assert "1-1" not in rows(pending)


def test_a_failed_last_attempt_is_a_dead_letter(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g max-attempts 1")

    assert pending.show("XNACK s g FAIL IDS 1 1-1 REASON slow DELAY 9") == 1
    assert listed(pending) == [["1-1", 1, "attempts", "slow", "a"]]


def test_a_delay_keeps_everybody_off_until_it_is_over(pending: Driver) -> None:
    assert pending.show("XNACK s g FAIL IDS 1 1-1 DELAY 100 REASON 'try later'") == 1
    found = explained(pending)

    assert (found["state"], found["until"]) == ("delayed", NOW_MS + 100)
    assert found["last-reason"] == "try later"
    assert readable(pending) == ["4-1"]
    pending.now_ms += 100
    assert readable(pending) == ["1-1"]


@pytest.mark.parametrize(
    ("asked_ms", "until_ms"), [(0, 0), (HUGE, NOW_MS + VISIBILITY_MAX_MS)]
)
def test_a_delay_is_capped(pending: Driver, asked_ms: int, until_ms: int) -> None:
    assert pending.show(f"XNACK s g SILENT IDS 1 1-1 DELAY {asked_ms}") == 1
    assert explained(pending)["until"] == until_ms


def test_the_backoff_of_the_group_delays_a_failure_but_not_a_silent_return(
    pending: Driver,
) -> None:
    pending.script("XGROUP CONFIG SET s g backoff 'fixed 70'")
    pending.script("XNACK s g FAIL IDS 1 1-1\n XNACK s g SILENT IDS 1 2-1")

    assert explained(pending)["until"] == NOW_MS + 70
    assert explained(pending, "2-1")["state"] == "owed"


@pytest.mark.parametrize("count", [0, 3, 4])
def test_retrycount_sets_both_counts(pending: Driver, count: int) -> None:
    assert pending.show(f"XNACK s g FAIL IDS 1 1-1 RETRYCOUNT {count}") == 1

    found = explained(pending)
    assert (found["attempts"], found["deliveries"]) == (count, count)


@pytest.mark.parametrize("count", [5, HUGE])
def test_a_retrycount_past_the_bound_is_the_end(pending: Driver, count: int) -> None:
    assert pending.show(f"XNACK s g FAIL IDS 1 1-1 RETRYCOUNT {count}") == 1
    assert listed(pending) == [["1-1", count, "attempts", "", "a"]]


def test_force_puts_back_what_is_not_pending(pending: Driver) -> None:
    pending.script("XACK s g 1-1")

    assert pending.show("XNACK s g FAIL IDS 3 1-1 4-1 9-9") == 0
    assert pending.show("XNACK s g FAIL IDS 3 1-1 4-1 9-9 FORCE") == 2
    assert rows(pending)["4-1"][:2] == ["", -1]
    assert readable(pending) == ["1-1", "4-1"]


@pytest.mark.parametrize(
    ("ids", "count"), [("1-1", 1), ("3-1", 0), ("1-1 2-1 3-1 4-1", 2)]
)
def test_consumer_limits_a_nack_to_what_it_holds(
    pending: Driver, ids: str, count: int
) -> None:
    words = f"IDS {len(ids.split())} {ids}"

    assert pending.show(f"XNACK s g FAIL CONSUMER a {words}") == count
    assert pending.show(f"XNACK s g FAIL CONSUMER a {words} FORCE") == 0


def test_a_consumer_of_another_user_or_none_holds_nothing(pending: Driver) -> None:
    other = user(pending)

    mine = pending.show("XNACK s g FAIL IDS 1 1-1 CONSUMER a", client=other)
    unknown = pending.show("XNACK s g FAIL IDS 1 1-1 CONSUMER nobody")

    assert [mine, unknown] == [0, 0]
    assert not pending.changes


@pytest.mark.parametrize(
    ("first", "then", "count"),
    [
        ("XNACK s g FAIL IDS 1 1-1", "FAIL", 0),
        ("XNACK s g FAIL IDS 1 1-1", "SILENT", 0),
        ("XNACK s g FAIL IDS 1 1-1", "FATAL", 1),
        ("XNACK s g FAIL IDS 1 1-1 DELAY 50", "FAIL", 0),
        ("XNACK s g FAIL IDS 1 1-1 DELAY 50", "FATAL", 1),
        ("XACK s g 1-1", "FATAL", 0),
        ("XNACK s g FATAL IDS 1 1-1", "FATAL", 0),
    ],
)
def test_a_nack_of_what_nobody_holds_applies_to_nothing_but_fatal_gives_up(
    pending: Driver, first: str, then: str, count: int
) -> None:
    pending.script(first)

    assert pending.show(f"XNACK s g {then} IDS 1 1-1") == count


def test_an_id_given_twice_is_nacked_once(pending: Driver) -> None:
    assert pending.show("XNACK s g FAIL IDS 3 1-1 1-1 1-1") == 1


def test_of_several_ids_options_only_the_last_counts(pending: Driver) -> None:
    assert pending.show("XNACK s g FAIL FORCE IDS 1 1-1 IDS 1 2-1") == 1
    assert rows(pending)["1-1"][0] == "a"


REASON_1024 = "r" * 1024
REFUSED_NACKS = [
    ("XNACK", "!ERR wrong number of arguments for 'xnack' command"),
    ("XNACK s g FAIL IDS 1", "!ERR wrong number of arguments for 'xnack' command"),
    ("XNACK s g FOO IDS 1 1-1", "!ERR mode must be SILENT, FAIL, or FATAL"),
    ("XNACK nokey nog FOO IDS 0 1", "!ERR mode must be SILENT, FAIL, or FATAL"),
    ("XNACK s nog FAIL IDS 0 bad", NO_GROUP),
    ("XNACK nokey g FAIL IDS 1 1-1", NO_KEY),
    ("XNACK str g FAIL IDS 1 1-1", WRONG_TYPE),
    ("XNACK s g FAIL IDS 0 1-1", NUMIDS),
    ("XNACK s g FAIL IDS -1 1-1", NUMIDS),
    ("XNACK s g FAIL IDS x 1-1", NUMIDS),
    (f"XNACK s g FAIL IDS {HUGE + 1} 1-1", NUMIDS),
    (f"XNACK s g FAIL IDS {HUGE} 1-1", MISMATCH),
    ("XNACK s g FAIL IDS 3 1-1", MISMATCH),
    ("XNACK s g FAIL IDS 2 1-1 FORCE", BAD_ID),
    ("XNACK s g FAIL FORCE FORCE FORCE", NO_IDS),
    ("XNACK s g FAIL IDS 1 1-1 RETRYCOUNT -1", COUNTS),
    ("XNACK s g FAIL IDS 1 1-1 RETRYCOUNT x", NOT_INTEGER),
    (f"XNACK s g FAIL IDS 1 1-1 RETRYCOUNT {HUGE + 1}", NOT_INTEGER),
    ("XNACK s g FAIL IDS 1 1-1 foo", "!ERR Unrecognized XNACK option 'foo'"),
    ("XNACK s g FAIL IDS 1 1-1 DELAY", "!ERR Unrecognized XNACK option 'DELAY'"),
    ("XNACK s g FAIL IDS 1 1-1 2-1", "!ERR Unrecognized XNACK option '2-1'"),
    ("XNACK s g FAIL IDS 1 bad", BAD_ID),
    ("XNACK s g FAIL IDS 1 -", BAD_ID),
    ("XNACK s g FAIL IDS 1 1-1 DELAY -1", "!ERR DELAY must be >= 0"),
    ("XNACK s g FAIL IDS 1 1-1 DELAY x", NOT_INTEGER),
    (f"XNACK s g FAIL IDS 1 1-1 DELAY {HUGE + 1}", NOT_INTEGER),
    ("XNACK s g FATAL IDS 1 1-1 DELAY 0", "!ERR DELAY goes with SILENT or FAIL only"),
    (
        f"XNACK s g FAIL IDS 1 1-1 REASON {REASON_1024}r",
        "!ERR REASON must have at most 1024 bytes",
    ),
]


@pytest.mark.parametrize(("line", "text"), REFUSED_NACKS)
def test_a_refused_nack_changes_nothing(pending: Driver, line: str, text: str) -> None:
    assert pending.show(line).startswith(text)
    assert not pending.changes


def test_a_reason_may_have_a_kilobyte(pending: Driver) -> None:
    pending.script(f"XNACK s g FAIL IDS 1 1-1 REASON {REASON_1024}")

    assert explained(pending)["last-reason"] == REASON_1024


@pytest.mark.parametrize("option", ["DELAY 5", "REASON x", "CONSUMER a"])
def test_mode_redis_knows_only_the_options_of_redis(
    pending: Driver, option: str
) -> None:
    pending.script("XGROUP CONFIG SET s g mode redis")
    name = option.split(maxsplit=1)[0]

    answer = pending.show(f"XNACK s g FAIL IDS 1 1-1 {option}")

    assert answer == f"!ERR Unrecognized XNACK option '{name}'"
    assert not pending.changes


def test_fatal_in_mode_redis_sets_the_count_as_high_as_it_goes(
    pending: Driver,
) -> None:
    pending.script("XGROUP CONFIG SET s g mode redis")

    assert pending.show("XNACK s g FATAL IDS 1 1-1") == 1
    assert rows(pending)["1-1"] == ["", -1, HUGE]


# --- XEXTEND


def test_a_claim_is_extended_from_now_on(pending: Driver) -> None:
    pending.now_ms += 1000

    assert pending.show("XEXTEND s g 60000 IDS 1 1-1 CONSUMER a") == [60_000]
    assert [type(change) for change in pending.changes] == [Extended]
    assert explained(pending)["until"] == NOW_MS + 61_000


@pytest.mark.parametrize("asked_ms", [VISIBILITY_MAX_MS + 1, HUGE])
def test_what_is_granted_is_capped(pending: Driver, asked_ms: int) -> None:
    granted = pending.show(f"XEXTEND s g {asked_ms} IDS 1 1-1 CONSUMER a")

    assert granted == [VISIBILITY_MAX_MS]


def test_each_id_has_its_own_answer_in_its_place(pending: Driver) -> None:
    ids = "3-1 1-1 9-9 2-1 4-1"

    assert pending.show(f"XEXTEND s g 5 IDS 5 {ids} CONSUMER a") == [0, 5, 0, 5, 0]


def test_receipts_extend_without_a_name(
    driver: Driver, receipts: dict[str, str]
) -> None:
    words = f"{receipts['3-1']} {FORGED} {receipts['1-1']}"

    assert driver.show(f"XEXTEND s g 9 IDS 3 {words}") == [9, 0, 9]


def test_receipts_and_ids_may_be_mixed_under_a_name(
    driver: Driver, receipts: dict[str, str]
) -> None:
    words = f"{receipts['3-1']} {receipts['1-1']} 2-1"

    assert driver.show(f"XEXTEND s g 9 IDS 3 {words} CONSUMER a") == [0, 9, 9]


@pytest.mark.parametrize(
    "ended",
    [
        "XACK s g 1-1",
        "XNACK s g FAIL IDS 1 1-1",
        "XNACK s g FAIL IDS 1 1-1 DELAY 99",
        "XNACK s g FATAL IDS 1 1-1",
        "XCLAIM s g b 0 1-1",
        "XGROUP SEEK s g LATEST",
        "XGROUP DELCONSUMER s g a",
        "XGROUP DESTROY s g\n XGROUP CREATE s g 0",
        "DEL s\n XADD s 1-1 f v\n XGROUP CREATE s g 0",
    ],
)
def test_a_claim_that_is_over_is_not_extended(
    driver: Driver, receipts: dict[str, str], ended: str
) -> None:
    driver.script(ended)

    assert driver.show(f"XEXTEND s g 5 IDS 1 {receipts['1-1']}") == [0]
    assert driver.show("XEXTEND s g 5 IDS 1 1-1 CONSUMER a") == [0]
    assert not driver.changes


def test_a_lapsed_claim_is_not_extended(pending: Driver) -> None:
    pending.now_ms += VISIBILITY_MS

    assert pending.show("XEXTEND s g 5 IDS 1 1-1 CONSUMER a") == [0]
    assert explained(pending)["state"] == "owed"


def test_the_same_name_of_another_user_extends_nothing(pending: Driver) -> None:
    other = user(pending)
    pending.show("XREADGROUP GROUP g a COUNT 1 STREAMS s >", client=other)

    line = "XEXTEND s g 5 IDS 2 1-1 4-1 CONSUMER a"

    assert pending.show(line, client=other) == [0, 5]
    assert pending.show(line) == [5, 0]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XEXTEND s g 5 IDS 1", "!ERR wrong number of arguments for 'xextend'"),
        ("XEXTEND s g x IDS 1 1-1", NOT_INTEGER),
        (f"XEXTEND s g {HUGE + 1} IDS 1 1-1", NOT_INTEGER),
        ("XEXTEND s nog 0 IDS 1 1-1", NO_GROUP),
        ("XEXTEND nokey g 5 IDS 1 1-1", NO_KEY),
        ("XEXTEND str g 5 IDS 1 1-1", WRONG_TYPE),
        ("XEXTEND s g 0 IDS 1 1-1 CONSUMER a", "!ERR ms must be > 0"),
        (f"XEXTEND s g -{HUGE} IDS 1 1-1 CONSUMER a", "!ERR ms must be > 0"),
        ("XEXTEND s g 5 CONSUMER a IDS 1 1-1", NO_IDS),
        ("XEXTEND s g 5 IDS 0 1-1", NUMIDS),
        ("XEXTEND s g 5 IDS 2 1-1", MISMATCH),
        ("XEXTEND s g 5 IDS 1 bad CONSUMER a", BAD_ID),
        ("XEXTEND s g 5 IDS 1 1-1", HOLDER),
        (f"XEXTEND s g 5 IDS 2 1-1 {FORGED}", HOLDER),
        ("XEXTEND s g 5 IDS 1 1-1 CONSUMER", SYNTAX),
        ("XEXTEND s g 5 IDS 1 1-1 FOO a", SYNTAX),
        ("XEXTEND s g 5 IDS 1 1-1 CONSUMER a b", SYNTAX),
    ],
)
def test_a_refused_extension_changes_nothing(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(line).startswith(text)
    assert not pending.changes


def test_mode_redis_extends_nothing(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g mode redis")

    answer = pending.show("XEXTEND s g 5 IDS 1 1-1 CONSUMER a")

    assert answer.startswith(NOT_LEASED)
    assert not pending.changes


# --- rights


@pytest.mark.parametrize(
    "line", ["XNACK s g FAIL IDS 1 1-1", "XEXTEND s g 5 IDS 1 1-1 CONSUMER a"]
)
def test_a_queued_settle_is_refused_once_its_right_is_gone(
    pending: Driver, line: str
) -> None:
    client = user(pending)
    pending.script_as(client, f"MULTI\n {line}")
    pending.script("ACL SETUSER u -@consume")

    [answer] = pending.show("EXEC", client=client)

    assert answer.endswith("no permission to execute the command or subcommand")
    assert not pending.changes
