"""XREAD and XREADGROUP."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.commands.context import Block
from felixresp.engine.changes import ConsumerCreated, Delivered, GroupCreated, Passed

from .decode import NIL, plain
from .driver import NOW_MS, Driver

BAD_ID = "!ERR Invalid stream ID specified as stream command argument"
NOT_INTEGER = "!ERR value is not an integer or out of range"
SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
HUGE = 2**63 - 1
MAX_ID = f"{2**64 - 1}-{2**64 - 1}"


def entry(number: int) -> list[Any]:
    return [f"{number}-1", ["f", str(number)]]


def add(driver: Driver, *numbers: int, key: str = "s") -> None:
    for number in numbers:
        driver.script(f"XADD {key} {number}-1 f {number}")


def found(*numbers: int, key: str = "s") -> list[Any]:
    return [[key, [entry(number) for number in numbers]]]


@pytest.fixture
def grouped(driver: Driver) -> Driver:
    """Entries 1 to 3 in s, and a group that has seen none of them."""
    add(driver, 1, 2, 3)
    driver.script("XGROUP CREATE s g 0\n SET str x")
    return driver


def again(driver: Driver, line: str, block: object, **changed: Any) -> Any:
    """A blocked request is dispatched once more."""
    assert isinstance(block, Block)
    context = driver.context()
    context.again = True
    context.deadline_ms, context.frozen_ids = block.deadline_ms, block.frozen_ids
    for name, value in changed.items():
        setattr(context, name, value)
    return plain(driver.run(line, context=context))


# --- XREAD


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("XREAD STREAMS s 0", found(1, 2, 3)),
        ("XREAD streams s 1-1", found(2, 3)),
        ("XREAD COUNT 2 STREAMS s 0", found(1, 2)),
        ("XREAD COUNT 0 STREAMS s 0", found(1, 2, 3)),
        ("XREAD COUNT -1 COUNT 1 STREAMS s 0", found(1)),
        ("XREAD STREAMS s s nokey 1 + 0", found(1, 2, 3) + found(3)),
        ("XREAD STREAMS s +", found(3)),
        ("XREAD STREAMS nokey +", NIL),
        ("XREAD STREAMS empty +", NIL),
        ("XREAD STREAMS s $", NIL),
        ("XREAD STREAMS s 3-1", NIL),
        (f"XREAD STREAMS s {MAX_ID}", NIL),
        ("XREAD BLOCK 0 STREAMS s 0", found(1, 2, 3)),
    ],
)
def test_xread_answers_what_lies_beyond_each_id(
    driver: Driver, line: str, answer: Any
) -> None:
    add(driver, 1, 2, 3)
    add(driver, 1, key="empty")
    driver.script("XDEL empty 1-1")

    assert driver.show(line) == answer


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XREAD COUNT 1 s 0", SYNTAX),
        ("XREAD COUNT 1 BLOCK 1 STREAMS", SYNTAX),
        ("XREAD COUNT 1 BLOCK", SYNTAX),
        ("XREAD FOO STREAMS s 0", SYNTAX),
        ("XREAD MAXCOUNT 1 STREAMS s 0", SYNTAX),
        ("XREAD COUNT x STREAMS s 0", NOT_INTEGER),
        ("XREAD BLOCK x STREAMS s 0", "!ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK -1 FOO STREAMS s 0", "!ERR timeout is negative"),
        (f"XREAD BLOCK {HUGE} STREAMS s 0", "!ERR timeout is out of range"),
        ("XREAD STREAMS s t 0", "!ERR Unbalanced 'xread' list of streams: for each"),
        ("XREAD STREAMS s >", "!ERR The > ID can be specified only when calling XREA"),
        ("XREAD GROUP g c STREAMS s 0", "!ERR The GROUP option is only supported by"),
        ("XREAD NOACK COUNT x STREAMS s", "!ERR The NOACK option is only supported"),
        ("XREAD CLAIM 5 STREAMS s 0", "!ERR The CLAIM option is only supported by"),
        ("XREAD STREAMS s bad", BAD_ID),
        ("XREAD STREAMS s -", BAD_ID),
        ("XREAD STREAMS s str 0 0", WRONG_TYPE),
        ("XREAD STREAMS str bad", WRONG_TYPE),
    ],
)
def test_xread_says_what_it_does_not_take(
    grouped: Driver, line: str, text: str
) -> None:
    assert grouped.show(line).startswith(text)


def test_xread_waits_where_only_deleted_entries_lie_beyond(driver: Driver) -> None:
    add(driver, 1, 2, 3)
    driver.script("XDEL s 2-1 3-1")

    assert driver.show("XREAD STREAMS s 1-1") == NIL
    assert isinstance(driver.run("XREAD BLOCK 0 STREAMS s 1-1"), Block)


def test_xread_waits_until_its_deadline(driver: Driver) -> None:
    block = driver.run("XREAD BLOCK 50 STREAMS s t $ 7")

    assert block == Block([b"s", b"t"], NOW_MS + 50, [0, 7 << 64])
    driver.now_ms += 20
    line = "XREAD BLOCK 50 STREAMS s t $ 7"
    assert again(driver, line, block) == block


def test_xread_without_a_timeout_waits_for_ever(driver: Driver) -> None:
    block = driver.run("XREAD BLOCK 0 STREAMS s 0")

    assert isinstance(block, Block)
    assert block.deadline_ms is None
    assert block.group is None


def test_the_dollar_means_the_last_id_at_the_time_of_blocking(driver: Driver) -> None:
    add(driver, 5)
    line = "XREAD BLOCK 0 STREAMS s $"
    block = driver.run(line)
    driver.script("DEL s\n XADD s 3-1 f 3")

    assert again(driver, line, block) == block
    add(driver, 6)
    assert again(driver, line, block) == found(6)


def test_the_plus_means_the_last_entry_when_there_is_one(driver: Driver) -> None:
    line = "XREAD BLOCK 0 STREAMS s +"
    block = driver.run(line)
    add(driver, 1, 2)

    assert again(driver, line, block) == found(2)


def test_xread_goes_on_waiting_when_the_key_becomes_a_string(driver: Driver) -> None:
    line = "XREAD BLOCK 0 STREAMS s $"
    block = driver.run(line)
    driver.script("SET s x")

    assert again(driver, line, block) == block


def test_nothing_waits_inside_a_transaction(grouped: Driver) -> None:
    grouped.script("MULTI\n XREAD BLOCK 0 STREAMS s $\n XREAD BLOCK 0 STREAMS no 0")
    grouped.script("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    grouped.script("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")

    assert grouped.show("EXEC") == [NIL, NIL, found(1, 2, 3), NIL]


def test_xread_reads_cold_nodes(driver: Driver) -> None:
    driver.script("CONFIG SET stream-node-max-entries 3")
    add(driver, 1, 2, 3, 4)
    add(driver, 1, 2, 3, 4, key="t")
    driver.chill(b"s")
    driver.chill(b"t")

    assert driver.show("XREAD COUNT 1 STREAMS s t 1-1 1-1") == (
        found(2) + found(2, key="t")
    )


# --- XREADGROUP


def test_a_group_hands_out_each_entry_once(grouped: Driver) -> None:
    assert grouped.show("XREADGROUP GROUP g a COUNT 2 STREAMS s >") == found(1, 2)
    assert [type(change) for change in grouped.changes] == [ConsumerCreated, Delivered]
    assert grouped.show("XREADGROUP GROUP g b STREAMS s >") == found(3)
    assert grouped.show("XREADGROUP GROUP g b STREAMS s >") == NIL


def test_the_common_shape_reads_like_any_other(grouped: Driver) -> None:
    line = "XREADGROUP GROUP g a COUNT {} BLOCK {} STREAMS s >"

    assert grouped.show(line.format(1, 5)) == found(1)
    assert grouped.show(line.format("0", "0")) == found(2, 3)
    assert grouped.show(line.format("01", "0")) == NOT_INTEGER
    assert grouped.show(line.format("1", "-1")) == "!ERR timeout is negative"
    assert grouped.show(line.format("1" * 16, "x")).startswith("!ERR timeout is not")
    assert grouped.show(line.format("x", "0")) == NOT_INTEGER


def test_the_highest_id_means_new_entries_too(grouped: Driver) -> None:
    assert grouped.show(f"XREADGROUP GROUP g a STREAMS s {MAX_ID}") == found(1, 2, 3)
    assert grouped.show(f"XREADGROUP GROUP g a STREAMS s {MAX_ID}") == NIL


def test_an_id_shows_the_consumers_own_claims(grouped: Driver) -> None:
    grouped.script("XREADGROUP GROUP g a COUNT 2 STREAMS s >")

    assert grouped.show("XREADGROUP GROUP g a STREAMS s 0") == found(1, 2)
    assert grouped.show("XREADGROUP GROUP g a COUNT 1 STREAMS s 1-1") == found(2)
    assert grouped.show("XREADGROUP GROUP g b BLOCK 5 STREAMS s 0") == [["s", []]]


@pytest.mark.parametrize(("resp", "nil"), [(2, b"*-1\r\n"), (3, b"_\r\n")])
def test_history_shows_a_deleted_entry_as_nil(
    grouped: Driver, resp: int, nil: bytes
) -> None:
    grouped.client.resp = resp
    grouped.script("XREADGROUP GROUP g a COUNT 2 STREAMS s >\n XDEL s 1-1")

    answer = grouped.run("XREADGROUP GROUP g a STREAMS s 0")

    parts = answer.pairs[0][1].parts  # type: ignore[union-attr]
    assert parts[0] == b"*2\r\n$3\r\n1-1\r\n" + nil
    assert len(parts) == 2


def test_noack_finishes_what_it_hands_out(grouped: Driver) -> None:
    assert grouped.show("XREADGROUP GROUP g a NOACK COUNT 2 STREAMS s >") == found(1, 2)
    assert [type(change) for change in grouped.changes] == [ConsumerCreated, Passed]
    assert grouped.show("XPENDING s g")[0] == 0


def test_several_streams_are_read_in_their_order(grouped: Driver) -> None:
    add(grouped, 1, 2, key="t")
    grouped.script("XGROUP CREATE t g 0\n XREADGROUP GROUP g a COUNT 1 STREAMS t >")

    line = "XREADGROUP GROUP g a COUNT 1 STREAMS s t t > 0 >"
    assert grouped.show(line) == found(1) + found(1, key="t") + found(2, key="t")
    line = "XREADGROUP GROUP g a STREAMS t s > >"
    assert grouped.show(line) == found(2, 3)


def test_the_byte_cap_covers_the_whole_reply(grouped: Driver) -> None:
    add(grouped, 1, 2, key="t")
    grouped.script("XGROUP CREATE t g 0\n CONFIG SET group-max-poll-bytes 50")

    first = grouped.show("XREADGROUP GROUP g a STREAMS s t t > > 0")
    second = grouped.show("XREADGROUP GROUP g a STREAMS t >")

    assert first == [*found(1, 2), ["t", []]]
    assert second == found(1, 2, key="t")


def test_an_empty_poll_makes_the_consumer_all_the_same(grouped: Driver) -> None:
    grouped.script("XGROUP SETID s g $")

    assert grouped.show("XREADGROUP GROUP g new STREAMS s >") == NIL
    assert grouped.show("XGROUP CREATECONSUMER s g new") == 0


def test_a_group_reader_waits_in_the_line_of_its_group(grouped: Driver) -> None:
    grouped.script("XGROUP SETID s g $")
    line = "XREADGROUP GROUP g a COUNT 9 BLOCK 50 STREAMS s >"
    block = grouped.run(line)

    assert block == Block([b"s"], NOW_MS + 50, None, b"g")
    grouped.now_ms += 20
    assert again(grouped, line, block) == block
    add(grouped, 4)
    assert again(grouped, line, block) == found(4)


def test_a_woken_reader_takes_its_share(grouped: Driver) -> None:
    line = "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"
    block = Block([b"s"], None)

    assert again(grouped, line, block, waiters_left=2) == found(1, 2)
    assert again(grouped, line, block, waiters_left=1) == found(3)


@pytest.mark.parametrize(
    ("gone", "text"),
    [
        ("DEL s", "!NOGROUP No such key 's' or consumer group 'g' in XREADGROUP"),
        ("XGROUP DESTROY s g", "!NOGROUP No such key 's' or consumer group 'g' in"),
        ("SET s x", WRONG_TYPE),
    ],
)
def test_a_waiting_group_reader_learns_that_its_group_is_gone(
    grouped: Driver, gone: str, text: str
) -> None:
    grouped.script("XGROUP SETID s g $")
    line = "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"
    block = grouped.run(line)
    grouped.script(gone)

    assert again(grouped, line, block).startswith(text)


@pytest.fixture
def open_house(driver: Driver) -> Driver:
    """A server that makes groups on their first read, and a stream with 1 to 3."""
    add(driver, 1, 2, 3)
    driver.script("CONFIG SET group-auto-create yes")
    return driver


def test_a_missing_group_is_made_where_the_server_is_set_to(open_house: Driver) -> None:
    assert open_house.show("XREADGROUP GROUP g a STREAMS s >") == found(1, 2, 3)
    assert isinstance(open_house.changes[0], GroupCreated)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "STREAMS s nokey > >",
            "!NOGROUP No such key 'nokey' or consumer group 'g' in",
        ),
        ("STREAMS nokey >", "!NOGROUP No such key 'nokey' or consumer group 'g' in"),
        ("STREAMS s s > bad", BAD_ID),
        ("STREAMS s $", "!ERR The $ ID is meaningless"),
    ],
)
def test_a_refused_read_makes_neither_group_nor_stream(
    open_house: Driver, line: str, text: str
) -> None:
    assert open_house.show(f"XREADGROUP GROUP g a {line}").startswith(text)
    assert not open_house.changes


def test_a_group_that_is_named_twice_is_made_once(open_house: Driver) -> None:
    answer = open_house.show("XREADGROUP GROUP g a COUNT 1 STREAMS s s > >")

    assert answer == found(1) + found(2)


def test_a_destroyed_group_is_not_brought_back_by_who_waits_for_it(
    open_house: Driver,
) -> None:
    line = "XREADGROUP GROUP g a COUNT 9 BLOCK 0 STREAMS s >"
    open_house.script("XGROUP CREATE s g $")
    block = open_house.run(line)
    open_house.script("XGROUP DESTROY s g")

    assert again(open_house, line, block).startswith("!NOGROUP No such key 's' or")
    assert not open_house.changes


def test_a_cold_second_stream_is_read_at_once(grouped: Driver) -> None:
    grouped.script("CONFIG SET stream-node-max-entries 2")
    add(grouped, 1, 2, 3, key="t")
    grouped.script("XGROUP CREATE t g 0")
    grouped.chill(b"t")

    answer = grouped.show("XREADGROUP GROUP g a COUNT 1 STREAMS s t > >")

    assert answer == found(1) + found(1, key="t")
    assert grouped.show("XPENDING s g")[0] == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "XREADGROUP STREAMS s > x y z",
            "!ERR Unbalanced 'xreadgroup' list of streams",
        ),
        ("XREADGROUP GROUP g c STREAMS s t >", "!ERR Unbalanced 'xreadgroup' list of"),
        ("XREADGROUP GROUP g c COUNT 1 BLOCK 1", SYNTAX),
        ("XREADGROUP COUNT 1 BLOCK 1 NOACK GROUP g", SYNTAX),
        (
            "XREADGROUP COUNT 1 NOACK STREAMS s $",
            "!ERR Missing GROUP option for XREADG",
        ),
        ("XREADGROUP GROUP nog c STREAMS s >", "!NOGROUP No such key 's' or consumer"),
        (
            "XREADGROUP GROUP g c STREAMS s no > >",
            "!NOGROUP No such key 'no' or consum",
        ),
        ("XREADGROUP GROUP g c STREAMS s str > >", WRONG_TYPE),
        ("XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS str >", WRONG_TYPE),
        ("XREADGROUP GROUP g c STREAMS s $", "!ERR The $ ID is meaningless in the con"),
        ("XREADGROUP GROUP g c STREAMS s +", "!ERR The + ID is meaningless in the con"),
        ("XREADGROUP GROUP g c STREAMS s s > bad", BAD_ID),
    ],
)
def test_a_refused_xreadgroup_changes_nothing(
    grouped: Driver, line: str, text: str
) -> None:
    assert grouped.show(line).startswith(text)
    assert not grouped.changes
