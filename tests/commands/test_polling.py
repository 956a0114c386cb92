"""XPOLL."""

from __future__ import annotations

import re
from typing import Any

import pytest

from felixresp.commands.context import Answer, Block
from felixresp.protocol.encoder import encode
from felixresp.protocol.reply import Error

from .decode import plain
from .driver import NOW_MS, Driver, FakeClient

LINE = "XPOLL s g a"
NOT_INTEGER = "!ERR value is not an integer or out of range"
NO_GROUP = "!NOGROUP No such key '{}' or consumer group 'g'"
NAMES = "!ERR Group and consumer names must have 1 to 128 bytes"
COUNT = "!ERR COUNT must be > 0"
NEGATIVE = "!ERR timeout is negative"
NO_TIMEOUT = "!ERR timeout is not an integer or out of range"
VISIBILITY = "!ERR VISIBILITY must be > 0"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_LEASED = "!ERR The group is in mode redis, which has no such command"
HUGE = 2**63 - 1
VISIBILITY_MS = 30_000


@pytest.fixture
def grouped(driver: Driver) -> Driver:
    """Entries 1 to 3 in s, and a group that has seen none of them."""
    for number in (1, 2, 3):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n SET str x")
    return driver


def polled(driver: Driver, line: str = LINE, client: FakeClient | None = None) -> Any:
    """The meta map of each entry, by its ID."""
    found: dict[str, dict[str, Any]] = {}
    for id_, _, meta in driver.show(line, client=client):
        found[id_] = dict(zip(meta[::2], meta[1::2], strict=True))
    return found


def again(driver: Driver, line: str, block: Answer, **given: Any) -> Any:
    """The blocked request runs once more, as the server does it."""
    assert isinstance(block, Block)
    context = driver.context()
    context.again, context.deadline_ms = True, block.deadline_ms
    for name, value in given.items():
        setattr(context, name, value)
    return plain(driver.run(line, context=context))


def waiting(driver: Driver, line: str = "XPOLL s g a BLOCK 50") -> Answer:
    driver.script("XGROUP SETID s g $")
    block = driver.run(line)
    assert isinstance(block, Block)
    return block


# --- what it answers


def test_an_entry_comes_with_its_fields_and_what_the_claim_is(grouped: Driver) -> None:
    [[id_, fields, meta]] = grouped.show("XPOLL s g a COUNT 1")

    assert (id_, fields) == ("1-1", ["f", "1"])
    assert meta[::2] == [
        "attempts",
        "receipt",
        "deadline",
        "skipped-before",
        "last-reason",
    ]
    assert re.fullmatch("1-1:[0-9a-f]{16}", meta[3])
    assert [*meta[1:2], *meta[5::2]] == [1, NOW_MS + VISIBILITY_MS, 0, ""]


def test_the_meta_is_a_map_in_resp3(grouped: Driver) -> None:
    answer = grouped.run("XPOLL s g a COUNT 1")

    assert not isinstance(answer, Block)
    wire = encode(answer, 3)  # type: ignore[arg-type]
    assert wire.startswith(
        b"*1\r\n*3\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\n1\r\n%5\r\n$8\r\nattempts\r\n"
        b":1\r\n$7\r\nreceipt\r\n$20\r\n1-1:"
    )
    assert wire.endswith(
        b"$14\r\nskipped-before\r\n:0\r\n$11\r\nlast-reason\r\n$0\r\n\r\n"
    )


@pytest.mark.parametrize("resp", [2, 3])
def test_nothing_to_hand_out_is_an_empty_array(grouped: Driver, resp: int) -> None:
    grouped.script("XGROUP SETID s g $")

    assert encode(grouped.run(LINE), resp) == b"*0\r\n"  # type: ignore[arg-type]


def test_entries_of_one_poll_share_a_nonce_and_other_polls_have_others(
    grouped: Driver,
) -> None:
    first = polled(grouped, "XPOLL s g a COUNT 2")
    second = polled(grouped)

    nonces = [m["receipt"].split(":")[1] for m in (*first.values(), *second.values())]
    assert nonces[0] == nonces[1] != nonces[2]


def test_attempts_and_the_last_reason_are_told(grouped: Driver) -> None:
    polled(grouped, "XPOLL s g a COUNT 1")
    grouped.script("XNACK s g FAIL IDS 1 1-1 REASON 'no luck'")

    meta = polled(grouped, "XPOLL s g b COUNT 1")["1-1"]

    assert (meta["attempts"], meta["last-reason"]) == (2, "no luck")


def test_entries_that_were_skipped_are_told(grouped: Driver) -> None:
    grouped.script("XDEL s 1-1 2-1")

    assert polled(grouped)["3-1"]["skipped-before"] == 2


# --- its options


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", ["1-1", "2-1", "3-1"]),
        ("COUNT 2", ["1-1", "2-1"]),
        ("count 9 COUNT 1", ["1-1"]),
        (f"COUNT {HUGE}", ["1-1", "2-1", "3-1"]),
        (f"BLOCK {HUGE} COUNT 1", ["1-1"]),
        ("block 0 visibility 5 reclaim count 1", ["1-1"]),
    ],
)
def test_options_come_in_any_order(grouped: Driver, words: str, ids: list[str]) -> None:
    assert list(polled(grouped, f"{LINE} {words}")) == ids


@pytest.mark.parametrize(
    ("asked_ms", "granted_ms"),
    [(1, 1), (60_000, 60_000), (43_200_000, 43_200_000), (HUGE, 43_200_000)],
)
def test_a_poll_chooses_its_visibility_up_to_the_cap(
    grouped: Driver, asked_ms: int, granted_ms: int
) -> None:
    meta = polled(grouped, f"XPOLL s g a COUNT 1 VISIBILITY {asked_ms}")["1-1"]

    assert meta["deadline"] == NOW_MS + granted_ms


def test_reclaim_gives_a_restarted_member_its_own_claims_first(
    grouped: Driver,
) -> None:
    polled(grouped, "XPOLL s g a COUNT 1")
    polled(grouped, "XPOLL s g b COUNT 1")
    back = grouped.connect()

    ordinary = polled(grouped, "XPOLL s g a COUNT 1", client=grouped.connect())
    reclaimed = polled(grouped, "XPOLL s g a RECLAIM", client=back)

    assert list(ordinary) == ["3-1"]
    assert {id_: meta["attempts"] for id_, meta in reclaimed.items()} == {"1-1": 2}


def test_a_name_of_another_user_reclaims_nothing(grouped: Driver) -> None:
    polled(grouped, "XPOLL s g a COUNT 2")
    other = grouped.connect()
    grouped.script_as(other, "ACL SETUSER u on nopass +@all ~*\nAUTH u x")

    assert list(polled(grouped, "XPOLL s g a RECLAIM", client=other)) == ["3-1"]


def test_names_may_have_1_to_128_bytes_of_any_kind(driver: Driver) -> None:
    driver.script("XADD s 1-1 f v")
    name = bytes(range(128))

    assert driver.show([b"XPOLL", b"s", name, name]) != []


# --- the group


def test_the_group_of_an_existing_stream_is_made_at_its_start(driver: Driver) -> None:
    driver.script("XADD s 1-1 f v")

    assert list(polled(driver, "XPOLL s new a")) == ["1-1"]
    assert driver.show("XINFO GROUPS s")[0][1] == "new"


def test_a_poll_makes_no_stream(driver: Driver) -> None:
    assert driver.show(LINE) == NO_GROUP.format("s")
    assert not driver.changes
    assert driver.show("EXISTS s") == 0


def test_no_group_is_made_where_the_server_makes_those_of_mode_redis(
    driver: Driver,
) -> None:
    driver.script("CONFIG SET group-mode redis\nXADD s 1-1 f v")

    assert driver.show(LINE).startswith(NOT_LEASED)
    assert not driver.changes


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (["XPOLL", "s", "", "a"], NAMES),
        (["XPOLL", "s", "g", ""], NAMES),
        (["XPOLL", "s", "g" * 129, "a"], NAMES),
        (["XPOLL", "s", "g", "a" * 129], NAMES),
        ("XPOLL s g", "!ERR wrong number of arguments for 'xpoll' command"),
        (f"{LINE} COUNT", "!ERR syntax error"),
        (f"{LINE} COUNT 0", COUNT),
        (f"{LINE} COUNT -1", COUNT),
        (f"{LINE} COUNT x", COUNT),
        (f"{LINE} COUNT {HUGE + 1}", COUNT),
        (f"{LINE} BLOCK", "!ERR syntax error"),
        (f"{LINE} BLOCK -1", NEGATIVE),
        (f"{LINE} BLOCK 1.5", NO_TIMEOUT),
        (f"{LINE} BLOCK {HUGE + 1}", NO_TIMEOUT),
        (f"{LINE} VISIBILITY", "!ERR syntax error"),
        (f"{LINE} VISIBILITY 0", VISIBILITY),
        (f"{LINE} VISIBILITY -{HUGE}", VISIBILITY),
        (f"{LINE} VISIBILITY x", NOT_INTEGER),
        (f"{LINE} VISIBILITY {HUGE + 1}", NOT_INTEGER),
        (f"{LINE} RECLAIM RECLAIM NOACK", "!ERR syntax error"),
        (f"{LINE} 1-1", "!ERR syntax error"),
        ("XPOLL nokey g a COUNT 0", COUNT),
        ("XPOLL nokey g a", NO_GROUP.format("nokey")),
        ("XPOLL str g a", WRONG_TYPE),
    ],
)
def test_a_refused_poll_changes_nothing(
    grouped: Driver, line: str | list[str], text: str
) -> None:
    request = line if isinstance(line, str) else [word.encode() for word in line]

    assert grouped.show(request).startswith(text)
    assert not grouped.changes
    assert grouped.show("XINFO CONSUMERS s g") == []


def test_a_group_of_mode_redis_has_no_polls(grouped: Driver) -> None:
    grouped.script("XGROUP CONFIG SET s g mode redis")

    assert grouped.show(LINE).startswith(NOT_LEASED)
    assert not grouped.changes


# --- waiting


@pytest.mark.parametrize(
    ("block_ms", "waits_ms"),
    [(50, 50), (0, 30_000), (30_000, 30_000), (HUGE, 30_000)],
)
def test_a_wait_is_no_longer_than_the_group_lets_it(
    grouped: Driver, block_ms: int, waits_ms: int
) -> None:
    block = waiting(grouped, f"{LINE} BLOCK {block_ms}")

    expected = Block((b"s",), NOW_MS + waits_ms, group=b"g", timeout=())
    assert block == expected


def test_the_longest_wait_is_the_groups_own_setting(grouped: Driver) -> None:
    grouped.script("XGROUP CONFIG SET s g max-wait-ms 7")

    block = waiting(grouped, f"{LINE} BLOCK 0")

    assert isinstance(block, Block)
    assert block.deadline_ms == NOW_MS + 7


def test_a_poll_that_runs_again_keeps_its_deadline(grouped: Driver) -> None:
    block = waiting(grouped)
    grouped.now_ms += 20

    assert again(grouped, "XPOLL s g a BLOCK 50", block) == block


def test_a_woken_poll_takes_its_share(grouped: Driver) -> None:
    block = waiting(grouped)
    grouped.script("XADD s 4-1 f v\n XADD s 5-1 f v\n XADD s 6-1 f v")

    first = again(grouped, LINE, block, waiters_left=2)
    second = again(grouped, LINE, block, waiters_left=1)

    assert [len(first), len(second)] == [2, 1]


@pytest.mark.parametrize(
    ("gone", "text"),
    [
        ("DEL s", NO_GROUP.format("s")),
        ("XGROUP DESTROY s g", NO_GROUP.format("s")),
        ("SET s x", WRONG_TYPE),
        ("XGROUP CONFIG SET s g mode redis", NOT_LEASED),
    ],
)
def test_a_waiting_poll_learns_that_its_group_is_gone_and_brings_none_back(
    grouped: Driver, gone: str, text: str
) -> None:
    line = "XPOLL s g a BLOCK 0"
    block = waiting(grouped, line)
    grouped.script(gone)

    assert again(grouped, line, block).startswith(text)
    assert not grouped.changes


def test_nothing_waits_inside_a_transaction(grouped: Driver) -> None:
    grouped.script(f"XGROUP SETID s g $\n MULTI\n {LINE} BLOCK 0\n XLEN s")

    assert grouped.show("EXEC") == [[], 3]


def test_a_poll_may_also_be_queued(grouped: Driver) -> None:
    grouped.script(f"MULTI\n {LINE} COUNT 1")

    [[[id_, _, _]]] = grouped.show("EXEC")
    assert id_ == "1-1"


def test_a_paused_group_lets_polls_wait(grouped: Driver) -> None:
    grouped.script("XGROUP PAUSE s g")

    assert grouped.show(LINE) == []
    assert isinstance(grouped.run(f"{LINE} BLOCK 0"), Block)


# --- rights


def signed_in(driver: Driver, rules: str) -> FakeClient:
    client = driver.connect()
    driver.script(f"ACL SETUSER u on nopass {rules}")
    driver.script_as(client, "AUTH u x")
    return client


def test_a_blocked_poll_is_refused_once_its_rights_are_gone(grouped: Driver) -> None:
    client = signed_in(grouped, "+@consume ~*")
    grouped.script("XGROUP SETID s g $")
    line = f"{LINE} BLOCK 0"
    assert isinstance(grouped.run(line, client), Block)
    grouped.script("ACL SETUSER u -xpoll")
    grouped.script("XADD s 4-1 f v")
    context = grouped.context(client)
    context.again = True

    answer = grouped.run(line, context=context)

    assert isinstance(answer, Error)
    assert answer.text.startswith(
        b"NOPERM User u has no permissions to run the 'xpoll'"
    )
    assert not grouped.changes


def test_a_queued_poll_is_refused_once_its_group_is_taken_away(
    grouped: Driver,
) -> None:
    client = signed_in(grouped, "+@all ~*")
    grouped.script_as(client, f"MULTI\n {LINE}")
    grouped.script("ACL SETUSER u group:s/other")

    [answer] = grouped.show("EXEC", client=client)

    assert answer.endswith("no permission to touch the specified groups")
    assert not grouped.changes
