"""The checker of the run with every verb would notice each broken promise.

Times are ms; every command takes one, unless the test says otherwise.
"""

from __future__ import annotations

from typing import Any

from tests.crash.facts import End, Fact, GroupEnd, History, Id, Kind, Rules
from tests.crash.promises import judge

GROUP, STREAM = "s g", "s"
NS = 1_000_000
ONE, TWO = (1, 0), (2, 0)
LOST: dict[str, Any] = {"sure": False}


def fact(kind: Kind, at: float, id_: Id | None = ONE, **more: Any) -> Fact:
    lasts = more.pop("lasts", 1)
    began_ns = int(at * NS)
    return Fact(kind, GROUP, id_, began_ns, began_ns + lasts * NS, **more)


def of_stream(kind: Kind, at: int, id_: Id = ONE, **more: Any) -> Fact:
    return Fact(kind, STREAM, id_, at * NS, (at + 1) * NS, **more)


def crash(at: int) -> Fact:
    return Fact(Kind.CRASHED, "", None, at * NS, (at + 1) * NS)


def at_last() -> Fact:
    """Somebody may have acked it in the end."""
    return fact(Kind.FINISHED, 90_000, sure=False)


def broken(
    *facts: Fact,
    rules: Rules | None = None,
    dead: frozenset[Id] = frozenset(),
    entries: dict[Id, bytes] | None = None,
    end: GroupEnd | None = None,
) -> list[str]:
    """What is said of a stream that one entry was added to, with payload a."""
    entries = {ONE: b"a"} if entries is None else entries
    history = History(sent={b"a": 0}, added={(STREAM, ONE): b"a"}, facts=list(facts))
    last = End({STREAM: entries}, {GROUP: end or GroupEnd(dead)})
    lines = judge(history, {GROUP: rules or Rules()}, last).broken
    return [line.removeprefix(f"{GROUP}: ") for line in lines]


def test_a_good_history_breaks_no_promise_and_is_counted() -> None:
    history = History(
        sent={b"a": 0, b"b": 0},  # the answer for b was lost
        added={(STREAM, ONE): b"a"},
        facts=[
            fact(Kind.HANDED, 10, payload=b"a", ms=100),
            fact(Kind.BACK, 20, ms=50),
            fact(Kind.HANDED, 80, payload=b"a", ms=100),
            fact(Kind.FINISHED, 90),
            fact(Kind.DEAD, 100, TWO),
            fact(Kind.CURSOR, 100, ONE),
        ],
    )
    end = End(
        {STREAM: {ONE: b"a", TWO: b"b"}}, {GROUP: GroupEnd(frozenset({TWO}), 0, 0, ())}
    )

    verdict = judge(history, {GROUP: Rules(3, claims_stand=True)}, end)

    assert verdict.broken == []
    assert verdict.checked == {
        "answered XADDs that must be there": 1,
        "answered acks": 1,
        "answered delays": 1,
        "attempts of a bound group": 2,
        "claims that must stand": 2,
        "dead letters that must be listed": 1,
        "entries that somebody must have finished": 2,
        "payloads handed out": 2,
        "readings of a cursor": 1,
    }


def test_an_acked_entry_that_comes_back_is_noticed() -> None:
    ack = fact(Kind.FINISHED, 10)

    for kind in (Kind.HANDED, Kind.TAKEN, Kind.SHOWN):
        how = kind.name.lower()
        said = [f"1-0 was {how} after its ack was answered"]
        assert broken(ack, fact(kind, 12)) == said
        assert broken(ack, fact(kind, 12), fact(Kind.REDRIVEN, 11)) == said


def test_an_acked_entry_may_come_back_where_no_promise_says_otherwise() -> None:
    ack, again = fact(Kind.FINISHED, 10), fact(Kind.HANDED, 20)

    assert broken(fact(Kind.FINISHED, 10, **LOST), again) == []
    assert broken(ack, fact(Kind.HANDED, 10.5)) == []  # asked before the answer
    assert broken(ack, fact(Kind.TAKEN, 20, **LOST)) == []
    assert broken(ack, fact(Kind.SOUGHT, 15, None, **LOST), again) == []
    assert broken(ack, fact(Kind.DESTROYED, 15, None), again) == []
    assert broken(ack, fact(Kind.FORCED, 15), again) == []


def test_a_seek_before_the_ack_is_no_excuse() -> None:
    seek, ack = fact(Kind.SOUGHT, 5, None), fact(Kind.FINISHED, 10)

    assert broken(seek, ack, fact(Kind.HANDED, 20)) == [
        "1-0 was handed after its ack was answered"
    ]


def test_two_successful_acks_are_noticed() -> None:
    first, second = fact(Kind.FINISHED, 10), fact(Kind.FINISHED, 20)

    assert broken(first, second) == ["1-0 was finished twice"]
    assert broken(first, fact(Kind.FINISHED, 20, **LOST)) == []
    assert broken(first, fact(Kind.FORCED, 15, **LOST), second) == []


def test_a_lost_entry_is_noticed() -> None:
    assert broken(entries={}) == ["s 1-0: its XADD was answered and it is gone"]
    assert broken(of_stream(Kind.DELETED, 5, **LOST), entries={}) == []
    assert broken(of_stream(Kind.TRIMMED, 5, TWO, **LOST), entries={}) == []
    assert broken(of_stream(Kind.TRIMMED, 5, ONE), entries={}) == [
        "s 1-0: its XADD was answered and it is gone"
    ]


def test_an_entry_that_changed_or_that_nobody_sent_is_noticed() -> None:
    assert broken(at_last(), entries={ONE: b"x"}) == [
        "s 1-0: it is another entry now",
        "x is there and nobody sent it",
    ]
    twice = {ONE: b"a", TWO: b"a"}
    assert broken(at_last(), fact(Kind.FINISHED, 1, TWO), entries=twice) == [
        "a is there 2 times"
    ]


def test_a_deleted_entry_that_is_there_or_handed_out_is_noticed() -> None:
    delete = of_stream(Kind.DELETED, 10)

    assert broken(delete, at_last()) == ["s 1-0: its XDEL was answered and it is there"]
    late = fact(Kind.HANDED, 20, payload=b"a")
    assert broken(delete, late, entries={}) == [
        "1-0 was handed out after its XDEL was answered"
    ]
    assert broken(delete, fact(Kind.SHOWN, 20), entries={}) == []  # [id, nil]


def test_a_dead_letter_that_leaves_the_list_is_noticed() -> None:
    dead = fact(Kind.DEAD, 10)
    empty = fact(Kind.LISTED, 20, None)
    full = fact(Kind.LISTED, 30, None, ids=frozenset({ONE}))
    on_list = frozenset({ONE})

    assert broken(dead, empty, full, dead=on_list) == ["1-0: the dead letter is lost"]
    assert broken(dead, full, at_last(), dead=on_list) == []
    assert broken(fact(Kind.DEAD, 10, **LOST), empty, full, dead=on_list) == []
    assert broken(fact(Kind.LISTED, 10.5, None), dead, dead=on_list) == []


def test_a_dead_letter_that_is_not_there_at_the_end_is_noticed() -> None:
    assert "1-0: the dead letter is lost" in broken(fact(Kind.DEAD, 10))


def test_a_dead_letter_may_leave_the_list_by_what_takes_it_off() -> None:
    dead, empty = fact(Kind.DEAD, 10), fact(Kind.LISTED, 20, None)
    deleted = of_stream(Kind.DELETED, 5, **LOST)

    for kind in (Kind.REDRIVEN, Kind.FINISHED, Kind.FORCED):
        assert broken(dead, fact(kind, 15, **LOST), empty, at_last()) == []
    for kind in (Kind.REDRIVEN, Kind.DESTROYED):
        assert broken(dead, fact(kind, 15, None, **LOST), empty, at_last()) == []
    assert broken(dead, deleted, empty, at_last()) == []  # FATAL of what was gone


def test_a_dead_letter_that_is_handed_out_is_noticed() -> None:
    dead, again = fact(Kind.DEAD, 10), fact(Kind.HANDED, 20)
    on_list = frozenset({ONE})

    assert broken(dead, again, dead=on_list) == ["1-0 was handed and is a dead letter"]
    seek = fact(Kind.SOUGHT, 15, None)
    assert broken(dead, seek, again, dead=on_list) == [
        "1-0 was handed and is a dead letter"
    ]
    assert broken(dead, fact(Kind.REDRIVEN, 15), again, dead=on_list) == []


def test_an_early_end_of_a_delay_is_noticed() -> None:
    nack = fact(Kind.BACK, 10, ms=100)

    assert broken(nack, fact(Kind.HANDED, 50), at_last()) == [
        "1-0 came 54 ms before its delay ended"
    ]
    assert broken(nack, fact(Kind.HANDED, 109), at_last()) == []
    assert broken(nack, fact(Kind.HANDED, 10.5), at_last()) == []  # which was first?
    assert broken(nack, fact(Kind.HANDED, 50, lasts=70), at_last()) == []


def test_a_delay_may_end_early_by_what_voids_it() -> None:
    nack, again = fact(Kind.BACK, 10, ms=100), fact(Kind.HANDED, 50)

    assert broken(fact(Kind.BACK, 10, ms=100, **LOST), again, at_last()) == []
    assert broken(fact(Kind.REDRIVEN, 5), nack, again, at_last()) == []
    assert broken(nack, fact(Kind.FORCED, 20, **LOST), again, at_last()) == []
    assert broken(nack, fact(Kind.SOUGHT, 20, None), again, at_last()) == []
    assert broken(fact(Kind.SOUGHT, 5, None), nack, again, at_last()) != []


def test_a_cursor_that_moves_back_is_noticed() -> None:
    high, low = fact(Kind.CURSOR, 10, TWO), fact(Kind.CURSOR, 20, ONE)
    said = ["the cursor moved back from 2-0 to 1-0"]

    assert broken(high, low, at_last()) == said
    assert broken(high, crash(15), low, at_last()) == said
    assert broken(high, fact(Kind.CURSOR, 10.5, ONE), at_last()) == []
    assert broken(high, fact(Kind.SOUGHT, 15, None, **LOST), low, at_last()) == []
    assert broken(fact(Kind.SOUGHT, 5, None), high, low, at_last()) == said


def test_a_cursor_is_compared_beyond_readings_at_the_same_time() -> None:
    high, same = fact(Kind.CURSOR, 10, TWO), fact(Kind.CURSOR, 10.5, ONE)

    assert broken(high, same, fact(Kind.CURSOR, 20, ONE), at_last()) == [
        "the cursor moved back from 2-0 to 1-0"
    ]


def test_more_attempts_than_the_bound_are_noticed() -> None:
    bound = Rules(attempts_max=2)
    given = [fact(Kind.HANDED, at) for at in (10, 20, 30)]

    assert broken(fact(Kind.HANDED, 10, amount=3), at_last(), rules=bound) == [
        "1-0 had attempt 3 of 2"
    ]
    assert broken(*given, at_last(), rules=bound) == ["1-0 was handed out 3 times"]
    assert broken(*given, at_last()) == []
    assert broken(*given[:2], crash(25), given[2], at_last(), rules=bound) == []
    redrive = fact(Kind.REDRIVEN, 25)
    assert broken(*given[:2], redrive, given[2], at_last(), rules=bound) == []


STANDING = Rules(claims_stand=True)
DURABLE = Rules(claims_stand=True, durable_claims=True)


def test_a_claim_that_is_given_away_before_its_time_is_noticed() -> None:
    claim = fact(Kind.HANDED, 10, ms=100)
    again = fact(Kind.HANDED, 60)
    said = ["1-0: a claim was given away 44 ms too early"]

    assert broken(claim, again, at_last(), rules=STANDING) == said
    assert broken(claim, again, at_last()) == []
    assert broken(claim, fact(Kind.HANDED, 109), at_last(), rules=STANDING) == []
    for kind in (Kind.BACK, Kind.TAKEN, Kind.EXTENDED):
        ended = fact(kind, 20, **LOST)
        assert broken(claim, ended, again, at_last(), rules=STANDING) == []


def test_a_claim_ends_by_a_crash_only_where_it_is_not_durable() -> None:
    claim, again = fact(Kind.HANDED, 10, ms=100), fact(Kind.HANDED, 60)

    assert broken(claim, crash(20), again, at_last(), rules=STANDING) == []
    assert broken(claim, crash(20), again, at_last(), rules=DURABLE) == [
        "1-0: a claim was given away 44 ms too early"
    ]


def test_a_good_receipt_that_is_refused_is_noticed() -> None:
    claim = fact(Kind.HANDED, 10, ms=100, receipt=b"r")
    extended = fact(Kind.EXTENDED, 20, ms=500, receipt=b"r")
    refused = fact(Kind.REFUSED, 200, receipt=b"r")

    assert broken(claim, refused, at_last(), rules=STANDING) == []
    assert broken(claim, extended, refused, at_last(), rules=STANDING) == [
        "1-0: a claim was refused 314 ms too early"
    ]
    other = fact(Kind.REFUSED, 50, receipt=b"q")
    assert broken(claim, other, at_last(), rules=STANDING) == []


def test_a_new_entry_that_comes_twice_in_mode_redis_is_noticed() -> None:
    first, again = fact(Kind.HANDED, 10), fact(Kind.HANDED, 20)
    once = Rules(once=True)

    assert broken(first, again, at_last(), rules=once) == [
        "1-0 was handed out as new twice"
    ]
    assert broken(first, fact(Kind.TAKEN, 20), at_last(), rules=once) == []


def test_a_payload_that_was_not_sent_then_and_there_is_noticed() -> None:
    assert broken(fact(Kind.HANDED, -10, payload=b"a"), at_last()) == [
        "1-0 was handed out before it was sent"
    ]
    assert broken(fact(Kind.HANDED, 10, payload=b"x"), at_last()) == [
        "1-0 was handed out before it was sent"
    ]
    history = History(
        sent={b"a": 0, b"b": 0},
        added={(STREAM, ONE): b"a"},
        facts=[fact(Kind.HANDED, 10, payload=b"b"), at_last()],
    )
    end = End({STREAM: {ONE: b"a"}}, {GROUP: GroupEnd(frozenset())})
    assert judge(history, {GROUP: Rules()}, end).broken == [
        "s g: 1-0 was handed out with another's payload"
    ]


def test_what_is_left_at_the_end_is_noticed() -> None:
    end = GroupEnd(frozenset(), 1, 2, (ONE,))

    assert broken(at_last(), end=end) == [
        "1 are pending at the end, and 2 behind",
        "1-0 came again after the last restart",
    ]


def test_an_entry_that_nobody_finished_is_noticed() -> None:
    assert broken() == ["1-0 is finished and nobody finished it"]
    assert broken(dead=frozenset({ONE})) == []
    assert broken(fact(Kind.SOUGHT, 5, None)) == []
    read_once = fact(Kind.FINISHED, 5, None, amount=1, **LOST)
    assert broken(read_once) == []
    assert broken(read_once, entries={ONE: b"a", TWO: b"b"}) != []


def test_what_the_clients_could_not_make_sense_of_is_told() -> None:
    history = History(errors=["XACK: ERR unknown"])

    assert judge(history, {}, End({}, {})).broken == ["XACK: ERR unknown"]
