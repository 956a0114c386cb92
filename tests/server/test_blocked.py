"""Clients that wait: the order they are served in, and how a wait ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.running import Peer, RunningServer
from tests.wire import Refused, entry_ids


def wait_in_group(running: RunningServer, consumer: str, count: int = 10) -> Peer:
    """A consumer that waits for new entries; it stands in line when this returns."""
    before = running.look(lambda server: server.waiters.count)
    client = running.connect()
    client.send(
        *("XREADGROUP", "GROUP", "g", consumer, "COUNT", count, "BLOCK", 0),
        *("STREAMS", "s", ">"),
    )
    running.until_blocked(before + 1)
    return client


def ids(reply: Any) -> list[bytes]:
    return entry_ids(reply)


def test_waiters_of_a_group_are_served_in_the_order_of_blocking(
    running: RunningServer,
) -> None:
    client = running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    waiters = [wait_in_group(running, f"c{number}") for number in range(3)]

    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XADD", "s", "2-1", "f", "v")

    assert ids(waiters[0].read()) == [b"1-1"]
    assert ids(waiters[1].read()) == [b"2-1"]
    assert not waiters[2].has_reply()


def test_one_exec_of_several_entries_serves_as_many_waiters(
    running: RunningServer,
) -> None:
    client = running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    waiters = [wait_in_group(running, f"c{number}") for number in range(3)]

    client.call("MULTI")
    for number in range(1, 4):
        client.call("XADD", "s", f"{number}-1", "f", "v")
    client.call("EXEC")

    assert [ids(waiter.read()) for waiter in waiters] == [[b"1-1"], [b"2-1"], [b"3-1"]]


def test_every_reader_without_a_group_gets_the_entry(running: RunningServer) -> None:
    readers = [running.connect() for _ in range(3)]
    for reader in readers:
        reader.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(3)

    running.connect().call("XADD", "s", "1-1", "f", "v")

    assert [ids(reader.read()) for reader in readers] == [[b"1-1"]] * 3


def test_a_waiter_whose_client_is_gone_gets_nothing_and_blocks_nobody(
    running: RunningServer,
) -> None:
    client = running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    gone, next_one = wait_in_group(running, "gone"), wait_in_group(running, "next")

    gone.close()
    running.until_blocked(1)
    client.call("XADD", "s", "1-1", "f", "v")

    assert ids(next_one.read()) == [b"1-1"]


def test_a_wait_ends_at_its_first_deadline_however_often_it_was_woken(
    running: RunningServer,
) -> None:
    client, waiter = running.connect(), running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    waiter.send(
        *("XREADGROUP", "GROUP", "g", "c", "BLOCK", 300, "STREAMS", "s", ">"),
    )
    running.until_blocked(1)
    deadline = running.look(lambda server: server.waiters.next_deadline())

    client.call("XGROUP", "SETID", "s", "g", "$")  # wakes, and finds nothing

    assert running.look(lambda server: server.waiters.next_deadline()) == deadline
    assert waiter.read() is None
    assert running.look(lambda server: server.clock.now_ms()) >= (deadline or 0)


def test_a_blocked_reader_of_a_destroyed_group_is_told(running: RunningServer) -> None:
    client = running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    waiter = wait_in_group(running, "c")

    client.call("XGROUP", "DESTROY", "s", "g")

    with pytest.raises(Refused):
        waiter.read()


@pytest.mark.parametrize("error", [False, True])
def test_client_unblock_ends_a_wait(running: RunningServer, error: bool) -> None:
    waiter, client = running.connect(), running.connect()
    number = waiter.call("CLIENT", "ID")
    waiter.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(1)

    assert client.call("CLIENT", "UNBLOCK", number, *["ERROR"] * error) == 1
    assert client.call("CLIENT", "UNBLOCK", number) == 0

    if error:
        with pytest.raises(Refused, match="unblocked via CLIENT UNBLOCK"):
            waiter.read()
    else:
        assert waiter.read() is None


def test_a_lapsed_claim_wakes_a_waiter_without_any_command(
    running: RunningServer,
) -> None:
    client = running.connect()
    client.call("CONFIG", "SET", "group-visibility-timeout-ms", 50)
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s", ">")

    waiter = wait_in_group(running, "alive")

    assert ids(waiter.read()) == [b"1-1"]


def test_idle_waiters_set_no_timer(running: RunningServer) -> None:
    clients = [running.connect() for _ in range(20)]
    for client in clients:
        client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(20)

    assert running.look(lambda server: server.waiters.next_deadline()) is None


def test_at_the_cap_a_waiter_with_noack_is_served_past_those_without(
    running: RunningServer,
) -> None:
    client = running.connect()
    client.call("CONFIG", "SET", "group-max-in-flight", "1")
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    client.call("XADD", "s", "1-1", "f", "v")
    client.call("XREADGROUP", "GROUP", "g", "holder", "STREAMS", "s", ">")
    capped = wait_in_group(running, "capped")
    reader = running.connect()
    reader.send(
        *("XREADGROUP", "GROUP", "g", "reader", "BLOCK", 0, "NOACK"),
        *("STREAMS", "s", ">"),
    )
    running.until_blocked(2)

    for number in (2, 3):
        client.call("XADD", "s", f"{number}-1", "f", "v")

    assert ids(reader.read()) == [b"2-1"]
    assert not capped.has_reply()
    client.call("XACK", "s", "g", "1-1")
    assert ids(capped.read()) == [b"3-1"]


def test_waits_that_ended_early_leave_nothing_behind(running: RunningServer) -> None:
    day_ms = 86_400_000
    with running.connect() as reader, running.connect() as writer:
        for number in range(200):
            reader.send("XREAD", "BLOCK", day_ms, "STREAMS", "s", "$")
            running.until_blocked(1)
            writer.call("XADD", "s", "*", "f", number)
            reader.read()

    assert running.look(lambda server: len(server.waiters._deadlines)) <= 70
