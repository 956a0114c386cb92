"""The server under SIGKILL, and that the checker would notice a broken promise."""

from __future__ import annotations

from dataclasses import replace

from tests.crash import kill
from tests.crash.history import Ack, Final, History, Poll, violations

FINAL = Final(
    entries={b"1-0": b"a", b"2-0": b"b"},
    last_id=b"2-0",
    last_delivered_id=b"2-0",
    lag=0,
    pending=0,
    returned=(),
)


def good() -> History:
    return History(
        sent={b"a", b"b"},
        added={b"1-0": b"a"},  # the answer for b was lost
        polls=[Poll(10, (b"1-0", b"2-0"))],
        acks=[Ack(b"1-0", 20, 1), Ack(b"2-0", 20, None)],
    )


def test_nothing_answered_is_lost_when_the_server_is_killed_under_load() -> None:
    report = kill.run(kills=5)

    assert report.violations == []
    assert report.final.entries
    assert report.history.reconnects


def test_lost_answers_break_no_promise() -> None:
    assert list(violations(good(), FINAL)) == []


def test_a_lost_entry_is_noticed() -> None:
    gone = replace(FINAL, entries={b"2-0": b"b"})

    assert list(violations(good(), gone)) == [
        "1-0: its XADD was answered and it is gone"
    ]


def test_an_entry_that_nobody_sent_or_that_is_there_twice_is_noticed() -> None:
    copied = replace(FINAL, entries={b"1-0": b"a", b"2-0": b"a", b"3-0": b"x"})
    history = good()
    history.acks.append(Ack(b"3-0", 20, 1))

    assert list(violations(history, copied)) == [
        "a is there 2 times",
        "x is there and nobody sent it",
    ]


def test_an_entry_handed_out_after_its_ack_is_noticed() -> None:
    history = good()
    history.polls.append(Poll(19, (b"1-0",)))  # asked before the answer: no promise
    assert list(violations(history, FINAL)) == []

    history.polls.append(Poll(21, (b"1-0",)))

    assert list(violations(history, FINAL)) == [
        "1-0 was handed out after its ack was answered"
    ]


def test_two_successful_acks_are_noticed() -> None:
    history = good()
    history.acks.append(Ack(b"1-0", 30, 1))

    assert list(violations(history, FINAL)) == [
        "1-0 was acked 2 times, each answered with 1"
    ]


def test_an_entry_finished_without_an_ack_is_noticed() -> None:
    history = good()
    history.acks.pop()

    assert list(violations(history, FINAL)) == [
        "2-0 is finished and nobody ever acked it"
    ]


def test_a_group_that_is_not_at_the_end_is_noticed() -> None:
    behind = replace(
        FINAL, last_delivered_id=b"1-0", lag=1, pending=1, returned=(b"2-0",)
    )

    assert list(violations(good(), behind)) == [
        "1 entries are still pending",
        "the group stands at 1-0, the stream ends at 2-0",
        "the lag is 1",
        "2-0 came again after the last restart",
    ]
