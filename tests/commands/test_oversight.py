"""XGROUP SEEK, PAUSE, RESUME, DESCRIBE, and XEXPLAIN."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.engine.changes import Configured, Sought
from felixresp.protocol.encoder import encode

from .driver import NOW_MS, Driver, FakeClient
from .held import explained, pairs, read_some, readable

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NO_KEY = "!ERR The XGROUP subcommand requires the key to exist. Note that for CREATE"
NO_GROUP = "!NOGROUP No such consumer group 'nog' for key name 's'"
NOT_LEASED = "!ERR The group is in mode redis, which has no such command"
OUTSIDE = "!ERR The ID is outside the stream: it must be at least just below the oldest"
HUGE = 2**63 - 1
VISIBILITY_MS = 30_000


@pytest.fixture
def pending(driver: Driver) -> Driver:
    """Of the entries 1 to 4 of s, a holds 1 and 2, b holds 3; 4 is new."""
    read_some(driver)
    return driver


def described(driver: Driver) -> dict[str, Any]:
    return pairs(driver.show("XGROUP DESCRIBE s g"))


# --- SEEK


@pytest.mark.parametrize(
    ("position", "ids"),
    [
        ("EARLIEST", ["1-1", "2-1", "3-1", "4-1"]),
        ("latest", []),
        ("2-1", ["3-1", "4-1"]),
        ("2", ["2-1", "3-1", "4-1"]),
        ("4-1", []),
        ("1-0", ["1-1", "2-1", "3-1", "4-1"]),
        ("TIME 3", ["3-1", "4-1"]),
        ("time 4", ["4-1"]),
        ("TIME 0", ["1-1", "2-1", "3-1", "4-1"]),
        ("TIME -5", ["1-1", "2-1", "3-1", "4-1"]),
        (f"TIME {HUGE}", []),
    ],
)
def test_a_seek_moves_the_group_and_voids_its_claims(
    pending: Driver, position: str, ids: list[str]
) -> None:
    assert pending.show(f"XGROUP SEEK s g {position}") == "OK"
    assert [type(change) for change in pending.changes] == [Sought]
    assert pending.show("XPENDING s g")[0] == 0
    assert readable(pending) == ids


def test_an_empty_stream_has_one_position(pending: Driver) -> None:
    pending.script("XTRIM s MAXLEN 0\n XGROUP SEEK s g EARLIEST\n XGROUP SEEK s g 4-1")

    assert pending.show("XGROUP SEEK s g 4-0").startswith(OUTSIDE)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("SEEK s g", "!ERR wrong number of arguments for 'xgroup|seek' command"),
        ("SEEK s nog 0", NO_GROUP),
        ("SEEK nokey g 0", NO_KEY),
        ("SEEK str g 0", WRONG_TYPE),
        ("SEEK s g bad", BAD_ID),
        ("SEEK s g -", BAD_ID),
        ("SEEK s g $", BAD_ID),
        ("SEEK s g TIME", BAD_ID),
        ("SEEK s g TIME x", NOT_INTEGER),
        (f"SEEK s g TIME {HUGE + 1}", NOT_INTEGER),
        ("SEEK s g TIME 1 2", SYNTAX),
        ("SEEK s g EARLIEST 1", SYNTAX),
        ("SEEK s g 0", OUTSIDE),
        ("SEEK s g 0-1", OUTSIDE),
        ("SEEK s g 4-2", OUTSIDE),
        (f"SEEK s g {2**64 - 1}-{2**64 - 1}", OUTSIDE),
        (f"SEEK s g {2**64}-0", BAD_ID),
        ("PAUSE s", "!ERR wrong number of arguments for 'xgroup|pause' command"),
        ("PAUSE s nog", NO_GROUP),
        ("PAUSE nokey g", NO_KEY),
        ("PAUSE str g", WRONG_TYPE),
        ("RESUME s g x", "!ERR wrong number of arguments for 'xgroup|resume' command"),
        ("RESUME s nog", NO_GROUP),
        ("RESUME s g", "OK"),
        ("DESCRIBE s", "!ERR wrong number of arguments for 'xgroup|describe' command"),
        ("DESCRIBE s nog", NO_GROUP),
        ("DESCRIBE nokey g", NO_KEY),
        ("DESCRIBE str g", WRONG_TYPE),
    ],
)
def test_a_refused_xgroup_changes_nothing(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(f"XGROUP {line}").startswith(text)
    assert not pending.changes


def test_mode_redis_has_no_seek(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g mode redis")

    assert pending.show("XGROUP SEEK s g LATEST").startswith(NOT_LEASED)
    assert not pending.changes


# --- PAUSE, RESUME


def test_a_paused_group_hands_out_nothing_but_settles(pending: Driver) -> None:
    assert pending.show("XGROUP PAUSE s g") == "OK"
    assert [type(change) for change in pending.changes] == [Configured]

    assert readable(pending) == []
    assert pending.show("XPOLL s g c") == []
    assert pending.show("XCLAIM s g c 0 1-1") == []
    assert pending.show("XAUTOCLAIM s g c 0 0") == ["0-0", [], []]
    assert pending.show("XCLAIM s g a 0 1-1 JUSTID") == ["1-1"]
    assert pending.show("XEXTEND s g 5 IDS 1 1-1 CONSUMER a") == [5]
    assert pending.show("XACK s g 2-1") == 1
    assert (described(pending)["paused"], described(pending)["blocked-by"]) == (
        1,
        ["paused"],
    )


def test_pausing_twice_changes_nothing_and_a_resumed_group_goes_on(
    pending: Driver,
) -> None:
    pending.script("XGROUP PAUSE s g\n XGROUP PAUSE s g")
    assert not pending.changes

    assert pending.show("XGROUP RESUME s g") == "OK"
    assert readable(pending) == ["4-1"]


# --- DESCRIBE


def test_a_description_says_where_the_group_stands(pending: Driver) -> None:
    pending.script("XNACK s g FAIL IDS 1 2-1\n XNACK s g FAIL IDS 1 3-1 DELAY 50")

    shown = described(pending)

    oldest, settings = pairs(shown.pop("oldest-pending")), pairs(shown.pop("settings"))
    assert shown == {
        "head": "3-1",
        "cursor": "0-0",
        "tail": "4-1",
        "lag": 2,
        "backlog": 4,
        "in-flight": 2,
        "claimed": 1,
        "delayed": 1,
        "owed": 1,
        "dead-letters": 0,
        "redriven": 0,
        "next-deadline": NOW_MS + 50,
        "blocked-by": [],
        "polls-capped": 0,
        "skipped": 0,
        "lapsed-while-connected": 0,
        "mode": "lease",
        "paused": 0,
        "visibility-ms": VISIBILITY_MS,
        "visibility-learned": 0,
    }
    assert oldest == {
        "id": "1-1",
        "age": 0,
        "state": "claimed",
        "holder": "a",
        "attempts": 1,
    }
    assert settings == pairs(pending.show("XGROUP CONFIG GET s g"))


def test_a_description_is_a_map_in_resp3(pending: Driver) -> None:
    wire = encode(pending.run("XGROUP DESCRIBE s g"), 3)  # type: ignore[arg-type]

    assert wire.startswith(b"%22\r\n$4\r\nhead\r\n$3\r\n3-1\r\n")
    assert b"$14\r\noldest-pending\r\n%5\r\n$2\r\nid\r\n" in wire


def test_a_group_with_nothing_pending_is_described_too(driver: Driver) -> None:
    driver.script("XGROUP CREATE s g $ MKSTREAM")

    shown = described(driver)

    assert (shown["oldest-pending"], shown["next-deadline"]) == (None, None)
    assert (shown["lag"], shown["backlog"]) == (0, 0)


def test_what_lapsed_is_described_as_owed(pending: Driver) -> None:
    pending.now_ms += VISIBILITY_MS

    shown = described(pending)

    assert (shown["claimed"], shown["owed"], shown["lag"]) == (0, 3, 4)
    assert pairs(shown["oldest-pending"])["age"] == VISIBILITY_MS


def test_what_was_redriven_before_it_was_handed_out_has_no_age(
    driver: Driver,
) -> None:
    driver.script("XADD s 1-1 f v\n XGROUP CREATE s g 0")
    driver.script("XNACK s g SILENT IDS 1 1-1 FORCE")

    assert pairs(described(driver)["oldest-pending"])["age"] == 0


def test_a_learned_visibility_is_described(pending: Driver) -> None:
    pending.script("XAUTOCLAIM s g c 600000 0")

    shown = described(pending)

    assert (shown["visibility-ms"], shown["visibility-learned"]) == (600_000, 1)
    [notice] = pending.keyspace.notices
    assert "wait 600000 ms before they take work over" in notice


def test_every_reason_to_hand_out_nothing_is_told(pending: Driver) -> None:
    pending.script(
        """
        XGROUP CONFIG SET s g max-in-flight 1 max-acked-ahead-ranges 1
        XGROUP CONFIG SET s g max-dead-letters 1
        XNACK s g FATAL IDS 1 1-1
        XGROUP PAUSE s g
        """
    )

    reasons = ["cap", "acked-ahead", "paused", "dead-letters"]
    assert described(pending)["blocked-by"] == reasons


def test_a_group_of_mode_redis_is_described_too(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g mode redis")

    shown = described(pending)

    assert (shown["mode"], shown["next-deadline"]) == ("redis", None)
    assert pairs(shown["settings"])["mode"] == "redis"


# --- XEXPLAIN


def test_the_history_of_an_entry_says_who_held_it_and_how_that_ended(
    pending: Driver,
) -> None:
    pending.now_ms += 10
    pending.script("XNACK s g FAIL IDS 1 1-1 REASON slow")
    pending.script("XREADGROUP GROUP g b COUNT 1 STREAMS s >")
    pending.now_ms += VISIBILITY_MS
    pending.script("XREADGROUP GROUP g c COUNT 1 STREAMS s >")
    pending.now_ms += 7

    shown = explained(pending)

    assert [list(pairs(attempt).values()) for attempt in shown.pop("history")] == [
        ["a", NOW_MS, 10, "fail", "slow"],
        ["b", NOW_MS + 10, VISIBILITY_MS, "lapse", ""],
        ["c", NOW_MS + 10 + VISIBILITY_MS, 7, "standing", ""],
    ]
    assert shown == {
        "id": "1-1",
        "state": "claimed",
        "present": 1,
        "attempts": 3,
        "deliveries": 3,
        "first-delivered": NOW_MS,
        "consumer": "c",
        "user": "default",
        "until": NOW_MS + 10 + 2 * VISIBILITY_MS,
        "last-reason": "slow",
    }


@pytest.mark.parametrize(
    ("done", "id_", "state"),
    [
        ("PING", "1-1", "claimed"),
        ("PING", "4-1", "new"),
        ("PING", "4", "absent"),
        ("PING", "9-9", "absent"),
        ("XACK s g 1-1", "1-1", "finished"),
        ("XNACK s g FAIL IDS 1 1-1", "1-1", "owed"),
        ("XNACK s g FAIL IDS 1 1-1 DELAY 5", "1-1", "delayed"),
        ("XNACK s g FATAL IDS 1 1-1", "1-1", "dead"),
    ],
)
def test_every_state_has_a_name(
    pending: Driver, done: str, id_: str, state: str
) -> None:
    pending.script(done)

    assert explained(pending, id_)["state"] == state


def test_a_reserved_entry_says_so(pending: Driver) -> None:
    pending.show("XPOLL s g a COUNT 1 RECLAIM", client=pending.connect())

    assert explained(pending, "2-1")["state"] == "reserved"


def test_a_deleted_entry_is_not_present(pending: Driver) -> None:
    pending.script("XDEL s 1-1")

    shown = explained(pending)

    assert (shown["state"], shown["present"]) == ("claimed", 0)


def test_the_cursor_waits_for_the_lowest_pending_entry(pending: Driver) -> None:
    pending.script("XACK s g 2-1")

    shown = explained(pending, "")

    waits_for = pairs(shown.pop("waits-for"))
    assert (waits_for["id"], waits_for["consumer"]) == ("1-1", "a")
    assert shown == {
        "cursor": "1-0",
        "head": "3-1",
        "tail": "4-1",
        "pending-above-cursor": 2,
        "blocked-by": [],
    }


def test_a_cursor_at_the_head_waits_for_nothing(pending: Driver) -> None:
    pending.script("XACK s g 1-1 2-1 3-1")

    shown = explained(pending, "")

    assert (shown["cursor"], shown["waits-for"]) == ("3-1", None)
    assert shown["pending-above-cursor"] == 0


def test_an_explanation_is_a_map_in_resp3(pending: Driver) -> None:
    wire = encode(pending.run("XEXPLAIN s g 1-1"), 3)  # type: ignore[arg-type]

    assert wire.startswith(b"%11\r\n$2\r\nid\r\n$3\r\n1-1\r\n$5\r\nstate\r\n")
    assert b"$7\r\nhistory\r\n*1\r\n%5\r\n$8\r\nconsumer\r\n$1\r\na\r\n" in wire


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XEXPLAIN s", "!ERR wrong number of arguments for 'xexplain' command"),
        ("XEXPLAIN s g 1-1 2-1", SYNTAX),
        ("XEXPLAIN s g bad", BAD_ID),
        ("XEXPLAIN s g +", BAD_ID),
        ("XEXPLAIN s g 1-1:0123456789abcdef", BAD_ID),
        ("XEXPLAIN s nog", "!NOGROUP No such key 's' or consumer group 'nog'"),
        ("XEXPLAIN nokey g", "!NOGROUP No such key 'nokey' or consumer group 'g'"),
        ("XEXPLAIN str g", WRONG_TYPE),
    ],
)
def test_a_refused_explanation_changes_nothing(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(line).startswith(text)
    assert not pending.changes


# --- rights


def user(driver: Driver, rules: str) -> FakeClient:
    client = driver.connect()
    driver.script(f"ACL SETUSER u on nopass {rules}")
    driver.script_as(client, "AUTH u x")
    return client


@pytest.mark.parametrize(
    "line",
    [
        "XGROUP SEEK s g LATEST",
        "XGROUP PAUSE s g",
        "XGROUP RESUME s g",
        "XGROUP CONFIG GET s g",
        "XGROUP CONFIG SET s g mode redis",
    ],
)
def test_who_only_consumes_manages_nothing(pending: Driver, line: str) -> None:
    client = user(pending, "+@consume ~*")

    answer = pending.show(line, client=client)

    assert answer.startswith("!NOPERM User u has no permissions to run the 'xgroup|")
    assert not pending.changes


@pytest.mark.parametrize("line", ["XGROUP DESCRIBE s g", "XEXPLAIN s g", "XPOLL s g a"])
def test_who_consumes_may_look(pending: Driver, line: str) -> None:
    client = user(pending, "+@consume ~* group:s/g")

    assert not str(pending.show(line, client=client)).startswith("!")
