"""The scenarios of claims, members and connections that need a socket.

As those of test_wire.py: nothing waits longer than it must, and how long a claim
stood is asked of the server.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.scenarios.asking import (
    LONG_MS,
    POLL_S,
    WAITS_S,
    ack,
    add,
    explain,
    given,
    numbers,
    poll,
    send_poll,
    until,
    until_held_for,
    xpoll,
)
from tests.scenarios.servers import ProcessSite, Running, Site
from tests.scenarios.world import VISIBILITY_MS
from tests.server_process import ServerProcess
from tests.wire import Refused, Wire

GROUP = "jobs", "workers"
SHORT_MS = 50


def make_group(wire: Wire, *settings: str | int) -> None:
    wire.call("XGROUP", "CREATE", *GROUP, "0", "MKSTREAM")
    if settings:
        wire.call("XGROUP", "CONFIG", "SET", *GROUP, *settings)


def until_said(server: ServerProcess, text: str) -> str:
    """Wait for the server to print it; how the line begins is asserted nowhere."""
    end = time.monotonic() + WAITS_S
    while True:
        for line in list(server.lines):
            if text in line:
                return line
        assert time.monotonic() < end, text
        time.sleep(POLL_S)


# --- settling


def test_a_nack_owes_at_once_and_wakes_a_waiter(server: Running, wire: Wire) -> None:
    wire.call("XGROUP", "CONFIG", "SET", *GROUP, "visibility-timeout-ms", LONG_MS)
    add(wire, 1)
    assert poll(wire, "alice") == [1]
    with Wire(server.port) as waiter:
        send_poll(waiter, "bob", block_ms=0)
        until(wire, "blocked_clients", 1)

        assert wire.call("XNACK", *GROUP, "FAIL", "IDS", 1, "1-0") == 1

        assert numbers(waiter.read()) == [1]


def test_the_end_of_a_delay_wakes_a_waiter(server: Running, wire: Wire) -> None:
    wire.call("XGROUP", "CONFIG", "SET", *GROUP, "visibility-timeout-ms", LONG_MS)
    add(wire, 1)
    [entry] = xpoll(wire, "alice")
    with Wire(server.port) as waiter:
        words = "FAIL", "IDS", 1, entry.receipt, "DELAY", SHORT_MS, "REASON", "busy"
        assert wire.call("XNACK", *GROUP, *words) == 1

        [again] = xpoll(waiter, "bob", "BLOCK", 0)

    assert (again.attempts, again.reason) == (2, b"busy")
    [delayed, _] = explain(wire, 1)["history"]
    assert delayed["ended"] == b"fail"


@pytest.mark.parametrize(
    "words", [("SEEK", *GROUP, "EARLIEST"), ("RESUME", *GROUP)], ids=lambda w: w[0]
)
def test_a_seek_or_a_resume_wakes_a_waiter(
    server: Running, wire: Wire, words: tuple[str, ...]
) -> None:
    add(wire, 1)
    assert ack(wire, *poll(wire, "alice")) == 1
    if words[0] == "RESUME":
        wire.call("XGROUP", "PAUSE", *GROUP)
        add(wire, 2)
    with Wire(server.port) as waiter:
        send_poll(waiter, "bob", block_ms=0)
        until(wire, "blocked_clients", 1)

        wire.call("XGROUP", *words)

        assert len(numbers(waiter.read())) == 1


# --- XPOLL


def test_a_waiting_xpoll_is_woken_and_told_what_its_claim_is(
    server: Running, wire: Wire
) -> None:
    with Wire(server.port) as waiter:
        waiter.send("XPOLL", *GROUP, "alice", "BLOCK", 0)
        until(wire, "blocked_clients", 1)

        add(wire, 1)

        [entry] = given(waiter.read())
    assert (entry.number, entry.attempts) == (1, 1)
    assert wire.call("XACK", *GROUP, entry.receipt) == 1


def test_a_wait_of_xpoll_ends_at_the_groups_longest_with_an_empty_array(
    wire: Wire,
) -> None:
    wire.call("XGROUP", "CONFIG", "SET", *GROUP, "max-wait-ms", SHORT_MS)

    assert wire.call("XPOLL", *GROUP, "alice", "BLOCK", 0) == []
    assert wire.call("XPOLL", *GROUP, "alice", "BLOCK", LONG_MS) == []
    assert wire.call("XPOLL", *GROUP, "alice", "BLOCK", 1) == []


@pytest.mark.parametrize(
    ("gone", "error"),
    [
        (("XGROUP", "DESTROY", *GROUP), "NOGROUP"),
        (("DEL", "jobs"), "NOGROUP"),
        (("SET", "jobs", "x"), "WRONGTYPE"),
    ],
    ids=lambda words: words[0],
)
def test_a_waiting_xpoll_learns_that_its_group_is_gone_and_makes_no_other(
    server: Running, wire: Wire, gone: tuple[str, ...], error: str
) -> None:
    with Wire(server.port) as waiter:
        waiter.send("XPOLL", *GROUP, "alice", "BLOCK", 0)
        until(wire, "blocked_clients", 1)

        wire.call(*gone)

        with pytest.raises(Refused, match=error):
            waiter.read()
    if gone[0] == "XGROUP":
        assert wire.call("XINFO", "GROUPS", "jobs") == []


# --- claims and connections


def test_a_claim_follows_its_connections_and_lapses_after_the_last_one(
    site: Site,
) -> None:
    with site.start() as server, Wire(server.port) as wire:
        settings = "claims-follow", "connection", "visibility-timeout-ms", SHORT_MS
        make_group(wire, *settings)
        add(wire, 1)
        first = Wire(server.port)
        [entry] = xpoll(first, "alice")
        until_held_for(wire, 1, 10 * SHORT_MS)
        second = Wire(server.port)
        assert xpoll(second, "alice") == []
        first.close()
        until(wire, "connected_clients", 2)

        lasted_ms = until_held_for(wire, 1, 20 * SHORT_MS)
        assert xpoll(wire, "bob") == []
        with Wire(server.port) as waiter:
            waiter.send("XPOLL", *GROUP, "bob", "BLOCK", 0)
            until(wire, "blocked_clients", 1)
            second.close()
            [again] = given(waiter.read())

        history = explain(wire, 1)["history"]

    assert (again.number, again.attempts) == (1, 2)
    assert again.receipt != entry.receipt
    assert (history[0]["consumer"], history[0]["ended"]) == (b"alice", b"lapse")
    assert history[0]["lasted"] >= lasted_ms + SHORT_MS


@pytest.mark.parametrize("follow", ["timer", "connection"])
def test_with_a_disconnect_grace_of_0_a_killed_workers_entries_are_owed_at_once(
    site: Site, follow: str
) -> None:
    settings: dict[str, int | str] = {
        "group_claims_follow": follow,
        "group_disconnect_grace_ms": 0,
        "group_visibility_timeout_ms": LONG_MS,
    }
    with site.start(**settings) as server, Wire(server.port) as wire:
        make_group(wire)
        add(wire, 1, 2, 3)
        worker, other = Wire(server.port), Wire(server.port)
        assert poll(worker, "alice", count=2) == [1, 2]
        assert poll(other, "bob") == [3]
        with Wire(server.port) as waiter:
            send_poll(waiter, "carol", block_ms=0)
            until(wire, "blocked_clients", 1)

            worker.close()

            assert numbers(waiter.read()) == [1, 2]
        history = [explain(wire, number)["history"] for number in (1, 3)]
        other.close()

    assert history[0][0]["ended"] == b"disconnect"
    assert [attempt["consumer"] for attempt in history[1]] == [b"bob"]


def test_a_disconnect_grace_lets_a_worker_come_back(site: Site) -> None:
    settings = {
        "group_disconnect_grace_ms": LONG_MS // 2,
        "group_visibility_timeout_ms": LONG_MS,
    }
    with site.start(**settings) as server, Wire(server.port) as wire:
        make_group(wire)
        add(wire, 1)
        worker = Wire(server.port)
        [entry] = xpoll(worker, "alice")
        until_ms = explain(wire, 1)["until"]
        worker.close()
        until(wire, "connected_clients", 1)
        gone_ms = explain(wire, 1)["until"]

        with Wire(server.port) as back:
            assert xpoll(back, "alice") == []
            back_ms = explain(wire, 1)["until"]
            assert back.call("XACK", *GROUP, entry.receipt) == 1

    assert gone_ms < until_ms == back_ms


def test_a_reset_or_another_user_ends_what_a_connection_counts_for(
    site: Site,
) -> None:
    settings = {"group_disconnect_grace_ms": 0, "group_visibility_timeout_ms": LONG_MS}
    with (
        site.start(**settings) as server,
        Wire(server.port) as wire,
        Wire(server.port) as worker,
    ):
        make_group(wire)
        wire.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*")
        add(wire, 1)
        assert poll(worker, "alice") == [1]
        worker.call("RESET")
        assert poll(wire, "bob") == [1]
        wire.call("XNACK", *GROUP, "FAIL", "IDS", 1, "1-0")
        assert poll(worker, "alice") == [1]
        worker.call("AUTH", "u", "x")
        assert poll(wire, "bob") == [1]


def test_a_clean_restart_keeps_standing_claims_and_receipts(tmp_path: Path) -> None:
    site = ProcessSite(tmp_path)
    with site.start(group_visibility_timeout_ms=LONG_MS) as server:
        with Wire(server.port) as wire:
            make_group(wire)
            add(wire, 1, 2, 3)
            entries = xpoll(wire, "alice", "COUNT", 2)
            until_ms = explain(wire, 1)["until"]
        assert server.terminate() == 0

    with (
        site.start(group_visibility_timeout_ms=LONG_MS) as server,
        Wire(server.port) as wire,
    ):
        found = explain(wire, 1)
        assert (found["state"], found["consumer"]) == (b"claimed", b"alice")
        assert found["until"] <= until_ms
        assert [entry.number for entry in xpoll(wire, "bob")] == [3]
        [first, second] = [entry.receipt for entry in entries]
        words = 1000, "IDS", 1, second
        assert wire.call("XEXTEND", *GROUP, *words) == [1000]
        assert wire.call("XACK", *GROUP, first, second) == 2


def test_a_crash_voids_claims_and_receipts(tmp_path: Path) -> None:
    site = ProcessSite(tmp_path)
    with site.start(group_visibility_timeout_ms=LONG_MS) as server:
        with Wire(server.port) as wire:
            make_group(wire)
            add(wire, 1)
            [entry] = xpoll(wire, "alice")
        server.kill()

    with (
        site.start(group_visibility_timeout_ms=LONG_MS) as server,
        Wire(server.port) as wire,
    ):
        assert wire.call("XACK", *GROUP, entry.receipt) == 0
        assert [entry.number for entry in xpoll(wire, "bob")] == [1]


# --- members


def test_a_restarted_member_gets_its_own_claims_first_and_others_stay_untouched(
    server: Running, wire: Wire
) -> None:
    wire.call("XGROUP", "CONFIG", "SET", *GROUP, "visibility-timeout-ms", LONG_MS)
    add(wire, 1, 2, 3, 4)
    with Wire(server.port) as alice:
        assert poll(alice, "alice", count=2) == [1, 2]
    [theirs] = xpoll(wire, "bob", "COUNT", 1)

    with Wire(server.port) as back:
        entries = xpoll(back, "alice", "RECLAIM", "COUNT", 3)
        others = xpoll(back, "alice", "RECLAIM")

    assert [(e.number, e.attempts) for e in entries] == [(1, 2), (2, 2), (4, 1)]
    assert others == []
    assert wire.call("XACK", *GROUP, theirs.receipt) == 1


# --- what the operator reads


def test_the_operator_is_told_that_a_group_learned_its_visibility(
    tmp_path: Path,
) -> None:
    with ProcessSite(tmp_path).start() as server, Wire(server.port) as wire:
        make_group(wire)
        wire.call("XAUTOCLAIM", *GROUP, "alice", 600_000, 0)

        line = until_said(server, "visibility timeout is that now")

    assert line == (
        "felixresp: group 'workers' of stream 'jobs': its clients wait 600000 ms"
        " before they take work over: the visibility timeout is that now"
    )


def test_the_operator_is_told_once_that_a_list_of_dead_letters_is_full(
    tmp_path: Path,
) -> None:
    site = ProcessSite(tmp_path)
    with (
        site.start(group_max_dead_letters=1, group_visibility_timeout_ms=LONG_MS) as s,
        Wire(s.port) as wire,
    ):
        make_group(wire)
        add(wire, 1, 2)
        assert poll(wire, "alice", count=1) == [1]
        wire.call("XNACK", *GROUP, "FATAL", "IDS", 1, "1-0")
        assert poll(wire, "alice") == []
        assert poll(wire, "alice") == []
        until_said(s, "hands out nothing: its list of dead letters is full")

        assert wire.call("XDLQ", "DISCARD", *GROUP, "ALL") == 1

        assert poll(wire, "alice") == [2]
        assert s.terminate() == 0
        told = [line for line in s.lines if "hands out nothing" in line]
    assert len(told) == 1


def test_the_operator_is_told_of_claims_that_lapse_while_their_worker_is_there(
    tmp_path: Path,
) -> None:
    site = ProcessSite(tmp_path)
    with (
        site.start(group_visibility_timeout_ms=VISIBILITY_MS) as server,
        Wire(server.port) as wire,
    ):
        make_group(wire)
        add(wire, 1)
        assert poll(wire, "alice") == [1]

        line = until_said(server, "lapsed while their workers were connected")

    assert "group 'workers' of stream 'jobs': 1 claims lapsed" in line
