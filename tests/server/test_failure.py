"""Batches that were not written, or may not have been.

What is memory only is dropped with every reply that saw it, and the server goes on
from what the store holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from felixresp.config import MiB, Settings
from felixresp.storage.memory import Deferred, MemoryStore
from tests.server.running import Peer, RunningServer, read_to_end
from tests.wire import Lost, entry_ids

ALL = 1000  # batches: every one that waits

Fail = Callable[[MemoryStore], None]


def fence(store: MemoryStore) -> None:
    store.fence(0)


def lose(store: MemoryStore) -> None:
    store.make_unknown(0, kept=False)
    store.finish()


def keep(store: MemoryStore) -> None:
    store.make_unknown(0, kept=True)
    store.finish()


FAILURES = pytest.mark.parametrize("fail", [fence, lose, keep])


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(Settings(), deferred=Deferred())


@pytest.fixture
def running(store: MemoryStore) -> Iterator[RunningServer]:
    with RunningServer(store) as server:
        yield server
        server.look(lambda _: store.finish(ALL))


def call(running: RunningServer, store: MemoryStore, client: Peer, *words: str) -> None:
    """A command whose commit finishes."""
    send(running, client, *words)
    running.look(lambda _: store.finish(ALL))
    client.read()


def send(running: RunningServer, client: Peer, *words: str) -> None:
    """A command whose commit waits."""
    done = running.look(lambda server: server.commands_processed)
    client.send(*words)
    running.until_processed(done + 1)


@FAILURES
def test_who_waits_for_a_lost_batch_is_closed_unanswered(
    running: RunningServer, store: MemoryStore, fail: Fail
) -> None:
    writer, reader, other = (running.connect() for _ in range(3))
    assert other.call("PING") == b"PONG"
    send(running, writer, "SET", "k", "v")
    send(running, reader, "GET", "k")

    running.look(lambda _: fail(store))

    for client in (writer, reader):
        with pytest.raises(Lost):
            client.read()
    assert other.call("PING") == b"PONG"


@FAILURES
def test_memory_is_what_the_store_holds(
    running: RunningServer, store: MemoryStore, fail: Fail
) -> None:
    first, second, other = (running.connect() for _ in range(3))
    other.call("PING")
    send(running, first, "SET", "first", "v")
    send(running, second, "SET", "second", "v")

    running.look(lambda _: fail(store))

    assert other.call("EXISTS", "first") == int(fail is keep)
    assert other.call("EXISTS", "second") == 0


@FAILURES
def test_it_serves_again_and_what_is_answered_then_stays(
    running: RunningServer, store: MemoryStore, fail: Fail
) -> None:
    for number in range(3):
        client = running.connect()
        send(running, client, "SET", f"lost:{number}", "v")
        running.look(lambda _: fail(store))

        client = running.connect()
        send(running, client, "SET", f"k:{number}", "v")
        assert not client.has_reply()
        running.look(lambda _: store.finish(ALL))
        assert client.read() == b"OK"

    assert client.call("EXISTS", "k:0", "k:1", "k:2") == 3


@FAILURES
def test_claims_in_lost_replies_are_owed(
    running: RunningServer, store: MemoryStore, fail: Fail
) -> None:
    setup, lost = running.connect(), running.connect()
    call(running, store, setup, "XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    call(running, store, setup, "XADD", "s", "1-1", "f", "v")
    reading = "XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"
    send(running, setup, "XADD", "s", "2-1", "f", "v")
    send(running, lost, *reading)

    running.look(lambda _: fail(store))

    with pytest.raises(Lost):
        lost.read()
    again = running.connect()
    send(running, again, *reading)
    running.look(lambda server: server.committer.commit())
    running.look(lambda _: store.finish(ALL))
    expected = [b"1-1", b"2-1"] if fail is keep else [b"1-1"]
    assert entry_ids(again.read()) == expected


@FAILURES
def test_a_waiter_and_a_watcher_are_closed_too(
    running: RunningServer, store: MemoryStore, fail: Fail
) -> None:
    waiter, watcher, writer = (running.connect() for _ in range(3))
    assert watcher.call("WATCH", "k") == b"OK"
    waiter.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(1)
    send(running, writer, "SET", "other", "v")

    running.look(lambda _: fail(store))

    for client in (waiter, watcher, writer):
        with pytest.raises(Lost):
            client.read()
    running.until(lambda server: server.waiters.count == len(server.clients()) == 0)


def test_a_client_whose_command_met_the_loss_is_not_answered(
    running: RunningServer, store: MemoryStore
) -> None:
    """The batch is full, so it is submitted by the command itself."""
    setup, client, other = (running.connect() for _ in range(3))
    call(running, store, setup, "SET", "k", "v")
    other.call("PING")
    running.look(lambda _: store.acquire(0))  # another owner

    client.send("SET", "k", "x" * (2 * MiB))

    with pytest.raises(Lost):
        client.read()
    assert other.call("GET", "k") == b"v"


def test_a_waiter_whose_service_met_the_loss_is_not_answered(
    running: RunningServer, store: MemoryStore
) -> None:
    setup, waiter, writer = (running.connect() for _ in range(3))
    call(running, store, setup, "XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    waiter.send(
        *("XREADGROUP", "GROUP", "g", "c", "NOACK", "BLOCK", "0", "STREAMS", "s", ">")
    )
    running.until_blocked(1)
    running.look(lambda _: store.acquire(0))

    writer.send("XADD", "s", "1-1", "f", "x" * (2 * MiB))

    for client in (waiter, writer):
        with pytest.raises(Lost):
            client.read()
    assert running.connect().call("XLEN", "s") == 0


def test_a_pipeline_that_met_the_loss_ends_there(
    running: RunningServer, store: MemoryStore
) -> None:
    setup, client = running.connect(), running.connect_raw()
    call(running, store, setup, "SET", "k", "v")
    running.look(lambda _: store.acquire(0))

    client.sendall(b"SET k 1\r\nGET k\r\nECHO x\r\n" * 100)

    with suppress(ConnectionResetError):
        assert read_to_end(client) == b""
    assert setup.call("GET", "k") == b"v"


def test_with_several_partitions_all_that_waits_is_dropped() -> None:
    """The numbers that replies wait for span the partitions."""
    store = MemoryStore(Settings(), partitions=4, deferred=Deferred())
    with RunningServer(store) as running:
        clients = [running.connect() for _ in range(8)]
        for at, client in enumerate(clients):
            send(running, client, "SET", f"k{at}", "v")

        running.look(lambda _: store.finish(partition=1))
        running.look(lambda _: store.fence(0))

        for client in clients:
            with pytest.raises(Lost):
                client.read()
        again = running.connect()
        send(running, again, "SET", "k0", "new")
        running.look(lambda _: store.finish(ALL))
        assert again.read() == b"OK"
        assert again.call("GET", "k0") == b"new"
