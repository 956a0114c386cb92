"""Receipts, wherever an ID settles something, and claims whose group is gone."""

from __future__ import annotations

import pytest

from .driver import Driver
from .held import explained, poll_some, polled, readable, rows

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
FORGED = "1-1:0123456789abcdef"
VISIBILITY_MS = 30_000


@pytest.fixture
def receipts(driver: Driver) -> dict[str, str]:
    """Of the entries 1 to 4 of s, a holds 1 and 2, b holds 3: the receipts by ID."""
    return poll_some(driver)


def test_a_receipt_acks_and_nacks_its_own_claim(
    driver: Driver, receipts: dict[str, str]
) -> None:
    assert driver.show(f"XACK s g {receipts['1-1']} 3-1") == 2
    assert driver.show(f"XNACK s g FAIL IDS 1 {receipts['2-1']}") == 1
    assert list(rows(driver)) == ["2-1"]


SETTLES = (
    "XACK s g {receipt}",
    "XNACK s g SILENT IDS 1 {receipt}",
    "XNACK s g FAIL IDS 1 {receipt} DELAY 5",
    "XNACK s g FATAL IDS 1 {receipt}",
    "XNACK s g FAIL IDS 1 {receipt} FORCE",
    "XEXTEND s g 5 IDS 1 {receipt}",
)


@pytest.mark.parametrize("line", SETTLES)
@pytest.mark.parametrize(
    "forged",
    [FORGED, "1-1:0000000000000000", "4-1:0123456789abcdef", f"9-9:{'f' * 16}"],
)
def test_a_forged_receipt_settles_nothing(
    driver: Driver, receipts: dict[str, str], line: str, forged: str
) -> None:
    assert receipts["1-1"] != forged

    assert driver.show(line.format(receipt=forged)) in (0, [0])
    assert not driver.changes


@pytest.mark.parametrize("line", SETTLES)
def test_a_receipt_of_another_entry_or_group_settles_nothing(
    driver: Driver, receipts: dict[str, str], line: str
) -> None:
    driver.script("XGROUP CREATE s h 0")
    driver.show("XREADGROUP GROUP h a STREAMS s >")
    nonce = receipts["3-1"].partition(":")[2]

    foreign = [line.format(receipt=f"1-1:{nonce}")]
    foreign.append(line.replace(" g ", " h ").format(receipt=receipts["1-1"]))

    assert [driver.show(words) in (0, [0]) for words in foreign] == [True, True]
    assert not driver.changes


@pytest.mark.parametrize("line", SETTLES)
def test_a_receipt_from_before_a_redelivery_is_stale(
    driver: Driver, receipts: dict[str, str], line: str
) -> None:
    driver.script("XNACK s g FAIL IDS 1 1-1")
    newer = polled(driver, "b", 1)["1-1"]
    until = explained(driver)["until"]

    assert driver.show(line.format(receipt=receipts["1-1"])) in (0, [0])
    assert explained(driver)["until"] == until
    assert driver.show(f"XACK s g {newer}") == 1


@pytest.mark.parametrize("line", SETTLES)
def test_a_receipt_is_good_until_its_deadline_and_not_at_it(
    driver: Driver, receipts: dict[str, str], line: str
) -> None:
    driver.now_ms += VISIBILITY_MS - 1
    early = driver.show(line.format(receipt=receipts["1-1"]))
    driver.now_ms += 1
    late = driver.show(line.format(receipt=receipts["2-1"]))

    assert early in (1, [5])
    assert late in (0, [0])
    assert explained(driver, "2-1")["state"] == "owed"


def test_a_heartbeat_keeps_the_receipt_and_an_own_takeover_does_not(
    driver: Driver, receipts: dict[str, str]
) -> None:
    driver.script("XCLAIM s g a 0 1-1 JUSTID\n XAUTOCLAIM s g a 0 2-1 COUNT 1")

    assert driver.show(f"XACK s g {receipts['1-1']}") == 1
    assert driver.show(f"XACK s g {receipts['2-1']}") == 0


@pytest.mark.parametrize("line", SETTLES)
@pytest.mark.parametrize(
    "word",
    [
        "1-1:",
        ":0123456789abcdef",
        "1-1:0123456789abcde",
        "1-1:0123456789abcdef0",
        "1-1:0123456789ABCDEF",
        "1-1:0123456789abcdeg",
        "1-1:+123456789abcdef",
        "1-1:0123456789abcdef:",
        "1-1::123456789abcdef",
        "x:0123456789abcdef",
        "-:0123456789abcdef",
        "18446744073709551616-0:0123456789abcdef",
    ],
)
def test_a_malformed_receipt_is_an_invalid_id(
    driver: Driver, receipts: dict[str, str], line: str, word: str
) -> None:
    assert driver.show(line.format(receipt=word)) == BAD_ID
    assert not driver.changes
    assert set(rows(driver)) == set(receipts)


def test_one_malformed_id_among_good_ones_settles_none(
    driver: Driver, receipts: dict[str, str]
) -> None:
    assert driver.show(f"XACK s g {receipts['1-1']} 2-1 3-1:x") == BAD_ID
    assert not driver.changes


def test_of_a_thousand_and_one_claims_that_are_due_no_receipt_is_good(
    driver: Driver,
) -> None:
    for number in range(1, 1003):
        driver.script(f"XADD s {number}-1 f v")
    driver.script("XGROUP CREATE s g 0")
    held = [polled(driver, "a", 1) for _ in range(1002)]
    driver.now_ms += VISIBILITY_MS

    assert driver.show(f"XACK s g {held[-1]['1002-1']}") == 0
    assert driver.show("XEXTEND s g 5 IDS 1 1001-1 CONSUMER a") == [0]


# --- what is gone meanwhile


@pytest.mark.parametrize(
    "gone", ["XGROUP DESTROY s g", "DEL s", "RENAME s other", "FLUSHALL"]
)
def test_a_group_that_is_gone_settles_nothing(
    driver: Driver, receipts: dict[str, str], gone: str
) -> None:
    driver.script("XNACK s g FAIL IDS 1 2-1 DELAY 50")
    driver.script(gone)

    answers = [driver.show(f"XACK s g {receipts['1-1']}")]
    answers += [driver.show(f"XNACK s g FAIL IDS 1 {receipts['1-1']}")]
    answers += [driver.show(f"XEXTEND s g 5 IDS 1 {receipts['1-1']}")]
    no_group = "!NOGROUP No such key 's' or consumer group 'g'"

    assert answers == [0, no_group, no_group]
    driver.now_ms += VISIBILITY_MS
    driver.keyspace.expire_claims(driver.now_ms)
    assert not driver.keyspace.changes or gone.startswith("RENAME")


@pytest.mark.parametrize(
    "line", ["XACK s g 9-9", "XNACK s g FAIL IDS 1 9-9", "XNACK s g FATAL IDS 1 4-1"]
)
def test_an_id_past_the_tail_or_not_handed_out_settles_nothing(
    driver: Driver, receipts: dict[str, str], line: str
) -> None:
    assert receipts
    assert driver.show(line) == 0
    assert not driver.changes
    assert readable(driver) == ["4-1"]
