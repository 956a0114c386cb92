"""Where the system has no epoll: asyncio's own transports under the same server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from felixresp.config import MiB, Settings
from felixresp.server import listener
from felixresp.storage.memory import Deferred, MemoryStore
from tests.server.running import STORES, RunningServer, read_to_end
from tests.wire import Lost, entry_ids


@pytest.fixture(autouse=True)
def _no_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "AVAILABLE", False)


@pytest.fixture(params=["journal", "memory late"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(STORES[request.param](tmp_path)) as server:
        assert server.look(lambda s: s._listener._sockets) is None
        yield server


def test_pipelined_replies_come_in_order(running: RunningServer) -> None:
    client = running.connect()
    numbers = range(500)

    replies = client.call_many(
        [c for n in numbers for c in (("SET", "k", n), ("GET", "k"))]
    )

    assert replies == [reply for n in numbers for reply in (b"OK", b"%d" % n)]


def test_single_commands_are_answered(running: RunningServer) -> None:
    client = running.connect()

    for number in range(50):
        assert client.call("XADD", "s", f"{number}-1", "f", "v") == b"%d-1" % number
        assert client.call("XLEN", "s") == number + 1


def test_a_waiter_is_served_and_what_is_behind_it_runs_then(
    running: RunningServer,
) -> None:
    client, other = running.connect(), running.connect()
    client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    client.send("PING")
    running.until_blocked(1)

    other.call("XADD", "s", "1-1", "f", "v")

    assert entry_ids(client.read()) == [b"1-1"]
    assert client.read() == b"PONG"


def test_a_wait_ends_with_its_client_or_its_deadline(running: RunningServer) -> None:
    gone, waits = running.connect(), running.connect()
    gone.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    waits.send("XREAD", "BLOCK", 20, "STREAMS", "s", "$")

    gone.close()

    assert waits.read() is None
    running.until_blocked(0)


def test_a_client_that_does_not_read_stops_being_served_until_it_does(
    running: RunningServer,
) -> None:
    client, other = running.connect_raw(received_bytes=65536), running.connect()
    other.call("CONFIG", "SET", "client-output-buffer-bytes", MiB)
    other.call("SET", "k", b"x" * 100_000)
    reply = b"$100000\r\n%b\r\n" % (b"x" * 100_000)

    client.sendall(b"GET k\r\n" * 500 + b"QUIT\r\n")
    other.call_many([["PING"]] * 1000)
    most = running.look(
        lambda server: max(c.output.size_bytes() for c in server.connections())
    )

    assert most < 2 * MiB
    assert read_to_end(client) == reply * 500 + b"+OK\r\n"


def test_a_long_answer_drains(running: RunningServer) -> None:
    client = running.connect()
    ids = [b"%d-1" % number for number in range(1, 3001)]
    client.call_many([("XADD", "s", id_, "f", b"v" * 1000) for id_ in ids])

    entries = client.call("XRANGE", "s", "-", "+")

    assert [entry[0] for entry in entries] == ids


def test_what_was_asked_before_the_end_is_answered(running: RunningServer) -> None:
    client = running.connect_raw()

    client.sendall(b"SET k v\r\n" + b"PING\r\n" * 1000 + b"QUIT\r\n")

    assert read_to_end(client) == b"+OK\r\n" + b"+PONG\r\n" * 1000 + b"+OK\r\n"


def test_nothing_leaves_before_it_is_durable_and_a_loss_closes() -> None:
    store = MemoryStore(Settings(), deferred=Deferred())
    with RunningServer(store) as running:
        client, other = running.connect(), running.connect()
        other.call("PING")
        done = running.look(lambda server: server.commands_processed)
        client.send("SET", "k", "v")
        running.until_processed(done + 1)
        running.look(lambda server: server.committer.commit())
        assert not client.has_reply()

        running.look(lambda _: store.fence(0))

        with pytest.raises(Lost):
            client.read()
        assert other.call("EXISTS", "k") == 0
