"""The scenarios that need a socket, a connection that dies, or a killed server.

They run on a process of its own and on memory stores whose commits come late.
A waiter is known to wait when INFO counts it as blocked: no test guesses how long
that takes, and none asserts how long anything took.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.scenarios.asking import (
    LONG_MS,
    POLL_S,
    ack,
    add,
    info,
    numbers,
    poll,
    send_poll,
    until,
)
from tests.scenarios.servers import Running, Site
from tests.scenarios.world import VISIBILITY_MS
from tests.server_process import ServerProcess
from tests.wire import Wire


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1]
    return (int(fields.split()[11]) + int(fields.split()[12])) / 100


def test_a_killed_server_resumes_at_the_cursor_and_redelivers_only_what_was_not_acked(
    site: Site,
) -> None:
    with site.start(group_visibility_timeout_ms=LONG_MS) as server:
        with Wire(server.port) as wire:
            wire.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
            add(wire, 1, 2, 3, 4, 5, 6)
            assert poll(wire, "alice", count=5) == [1, 2, 3, 4, 5]
            assert ack(wire, 1, 2, 4) == 3
        server.kill()

    with (
        site.start(group_visibility_timeout_ms=LONG_MS) as server,
        Wire(server.port) as wire,
    ):
        assert poll(wire, "bob") == [3, 5, 6]
        assert ack(wire, 3, 5, 6) == 3
        assert poll(wire, "bob") == []


def test_a_crash_leaves_an_entry_listed_or_owed_never_neither(site: Site) -> None:
    with site.start(group_max_attempts=1, group_visibility_timeout_ms=1) as server:
        with Wire(server.port) as wire:
            wire.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
            add(wire, 1, 2)
            assert poll(wire, "alice") == [1, 2]
            while wire.call("XDLQ", "LEN", "jobs", "workers") != 2:
                time.sleep(POLL_S)
            assert wire.call("XDLQ", "REDRIVE", "jobs", "workers", "1-0") == 1
        server.kill()

    with (
        site.start(group_max_attempts=1) as server,
        Wire(server.port) as wire,
    ):
        assert wire.call("XDLQ", "LEN", "jobs", "workers") == 1
        assert poll(wire, "bob") == [1]
        assert ack(wire, 1, 2) == 2


def test_an_append_wakes_a_waiter(server: Running, wire: Wire) -> None:
    with Wire(server.port) as waiter:
        send_poll(waiter, "alice", block_ms=0)
        until(wire, "blocked_clients", 1)

        add(wire, 1)

        assert numbers(waiter.read()) == [1]


def test_a_lapse_wakes_a_waiter(server: Running, wire: Wire) -> None:
    add(wire, 1, 2)
    assert poll(wire, "alice") == [1, 2]
    with Wire(server.port) as waiter:
        assert poll(waiter, "bob", block_ms=0) == [1, 2]

        pending = wire.call("XPENDING", "jobs", "workers", "-", "+", 10)
        assert [(row[1], row[3]) for row in pending] == [(b"bob", 2)] * 2


def test_a_redrive_wakes_a_waiter(site: Site) -> None:
    settings = {"group_visibility_timeout_ms": VISIBILITY_MS, "group_max_attempts": 1}
    with (
        site.start(**settings) as server,
        Wire(server.port) as wire,
        Wire(server.port) as waiter,
    ):
        wire.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
        add(wire, 1)
        assert poll(wire, "alice") == [1]
        while not wire.call("XDLQ", "LEN", "jobs", "workers"):
            time.sleep(POLL_S)
        send_poll(waiter, "bob", block_ms=0)
        until(wire, "blocked_clients", 1)

        wire.call("XDLQ", "REDRIVE", "jobs", "workers", "1-0")

        assert numbers(waiter.read()) == [1]


def test_an_ack_at_the_cap_wakes_a_waiter(site: Site) -> None:
    settings = {"group_max_in_flight": 1, "group_visibility_timeout_ms": LONG_MS}
    with (
        site.start(**settings) as server,
        Wire(server.port) as wire,
        Wire(server.port) as waiter,
    ):
        wire.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
        add(wire, 1, 2)
        assert poll(wire, "alice") == [1]
        send_poll(waiter, "bob", block_ms=0)
        until(wire, "blocked_clients", 1)

        assert ack(wire, 1) == 1

        assert numbers(waiter.read()) == [2]


def test_the_end_of_the_wait_is_empty_however_often_it_was_woken(
    server: Running, wire: Wire
) -> None:
    with Wire(server.port) as waiter:
        send_poll(waiter, "waiter", block_ms=300)
        until(wire, "blocked_clients", 1)
        for number in range(20):
            wire.call("XGROUP", "CREATECONSUMER", "jobs", "workers", f"c{number}")

        assert waiter.read() is None
        assert poll(waiter, "waiter") == []


def test_one_exec_of_n_entries_serves_n_waiters_a_different_one_each(
    server: Running, wire: Wire
) -> None:
    waiters = [Wire(server.port) for _ in range(8)]
    for at, waiter in enumerate(waiters):
        send_poll(waiter, f"w{at}", count=1, block_ms=0)
        until(wire, "blocked_clients", at + 1)

    adds = [("XADD", "jobs", f"{number}-0", "job", "x") for number in range(1, 9)]
    wire.call_many([("MULTI",), *adds, ("EXEC",)])

    given = [numbers(waiter.read()) for waiter in waiters]
    assert given == [[number] for number in range(1, 9)]
    for waiter in waiters:
        waiter.close()


def test_a_waiter_whose_client_is_gone_gets_nothing_and_blocks_nobody(
    server: Running, wire: Wire
) -> None:
    gone, next_one = Wire(server.port), Wire(server.port)
    send_poll(gone, "gone", block_ms=0)
    until(wire, "blocked_clients", 1)
    send_poll(next_one, "next", block_ms=0)
    until(wire, "blocked_clients", 2)

    gone.close()
    until(wire, "blocked_clients", 1)
    add(wire, 1)

    assert numbers(next_one.read()) == [1]
    pending = wire.call("XPENDING", "jobs", "workers", "-", "+", 10)
    assert [(row[1], row[3]) for row in pending] == [(b"next", 1)]
    next_one.close()


def stretch(pid: int, wire: Wire) -> tuple[float, int]:
    """CPU seconds and commands of a while in which nobody asks for anything."""
    commands, before = info(wire, "total_commands_processed"), cpu_s(pid)
    time.sleep(1.0)
    spent = cpu_s(pid) - before
    return spent, info(wire, "total_commands_processed") - commands


def test_a_thousand_idle_waiters_cost_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ServerProcess.start(tmp_path / "data") as server, Wire(server.port) as wire:
        wire.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
        alone_s, alone_commands = stretch(server.pid, wire)
        waiters = [Wire(server.port) for _ in range(1000)]
        for at, waiter in enumerate(waiters):
            send_poll(waiter, f"w{at}", block_ms=0)
        until(wire, "blocked_clients", 1000)
        waiting_s, waiting_commands = stretch(server.pid, wire)
        for waiter in waiters:
            waiter.close()

    with capsys.disabled():
        print(
            f"\nCPU in 1 s: {alone_s:.2f} s alone, {waiting_s:.2f} s with 1,000 waiters"
        )
    assert waiting_commands == alone_commands  # no poll was made again
