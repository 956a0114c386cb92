"""Nothing that saw a change leaves before the change is durable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident

import pytest

from felixresp.config import Settings, Value
from felixresp.engine.keyspace import Keyspace
from felixresp.storage.disk import Disk
from felixresp.storage.journal import JournalStore
from felixresp.storage.memory import Deferred, MemoryStore
from tests.server.running import RunningServer
from tests.wire import entry_ids

ALL = 1000  # batches: every one that waits


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(Settings(), deferred=Deferred())


@pytest.fixture
def running(store: MemoryStore) -> Iterator[RunningServer]:
    with RunningServer(store) as server:
        yield server
        server.look(lambda _: store.finish(ALL))


def test_a_reply_waits_for_its_commit(
    running: RunningServer, store: MemoryStore
) -> None:
    client = running.connect()
    done = running.look(lambda server: server.commands_processed)

    client.send("SET", "k", "v")
    running.until_processed(done + 1)
    assert not client.has_reply()
    running.look(lambda _: store.finish(ALL))

    assert client.read() == b"OK"


def test_a_read_that_saw_the_change_waits_too(
    running: RunningServer, store: MemoryStore
) -> None:
    writer, reader = running.connect(), running.connect()
    done = running.look(lambda server: server.commands_processed)

    writer.send("SET", "k", "v")
    running.until_processed(done + 1)
    reader.send("GET", "k")
    running.until_processed(done + 2)
    assert not reader.has_reply()
    running.look(lambda _: store.finish(ALL))

    assert reader.read() == b"v"


def test_errors_and_the_end_stay_behind_a_held_reply(
    running: RunningServer, store: MemoryStore
) -> None:
    client = running.connect_raw()
    done = running.look(lambda server: server.commands_processed)

    client.sendall(b"SET k v\r\nNOSUCH\r\nQUIT\r\n")
    running.until_processed(done + 3)
    running.look(lambda _: store.finish(ALL))

    replies = bytearray()
    while chunk := client.recv(1000):
        replies += chunk
    assert replies.split(b"\r\n")[0] == b"+OK"
    assert replies.split(b"\r\n")[1].startswith(b"-ERR unknown command")
    assert replies.endswith(b"\r\n+OK\r\n")


def test_a_blocked_reader_is_not_handed_what_is_not_durable(
    running: RunningServer, store: MemoryStore
) -> None:
    reader, writer = running.connect(), running.connect()
    reader.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(1)

    writer.send("XADD", "s", "1-1", "f", "v")
    running.until_blocked(0)
    assert not reader.has_reply()
    running.look(lambda _: store.finish(ALL))

    assert entry_ids(reader.read()) == [b"1-1"]


def test_a_client_killed_before_its_reply_left_gives_its_claims_back(
    running: RunningServer, store: MemoryStore
) -> None:
    setup, dead, alive = (running.connect() for _ in range(3))
    setup.send("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    dead.send("XREADGROUP", "GROUP", "g", "dead", "BLOCK", 0, "STREAMS", "s", ">")
    running.until_blocked(1)
    setup.send("XADD", "s", "1-1", "f", "v")
    running.until_blocked(0)

    dead.close()
    running.until(lambda server: len(server.clients()) == 2)
    alive.send("XREADGROUP", "GROUP", "g", "alive", "STREAMS", "s", ">")
    setup.send("XPENDING", "s", "g", "-", "+", 10)
    running.until(lambda server: not server.committer.settled)
    running.look(lambda _: store.finish(ALL))

    assert entry_ids(alive.read()) == [b"1-1"]
    assert [setup.read() for _ in range(2)][1] == b"1-1"
    running.look(lambda _: store.finish(ALL))
    ((_, consumer, _, deliveries),) = setup.read()
    assert (consumer, deliveries) == (b"alive", 1)


def test_with_an_interval_replies_do_not_wait() -> None:
    store = MemoryStore(Settings(), deferred=Deferred())
    with RunningServer(store, durability="interval 20") as running:
        client = running.connect()

        assert client.call("SET", "k", "v") == b"OK"
        assert client.call("GET", "k") == b"v"
        running.look(lambda _: store.finish(ALL))


def test_with_durability_none_replies_do_not_wait() -> None:
    store = MemoryStore(Settings(), deferred=Deferred())
    with RunningServer(store, durability="none") as running:
        client, waiter = running.connect(), running.connect()
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        waiter.send(*("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">"))
        running.until_blocked(1)

        assert client.call("XADD", "s", "1-1", "f", "v") == b"1-1"
        assert entry_ids(waiter.read()) == [b"1-1"]
        running.until(lambda server: server.committer.open_seq > 1)
        running.look(lambda _: store.finish(ALL))


class CountingDisk(Disk):
    """Counts the syncs of the thread that serves, not of the one that prepares
    segments."""

    def __init__(self) -> None:
        self.syncs: Counter[int] = Counter()

    def sync(self, file: int) -> None:
        self.syncs[get_ident()] += 1
        super().sync(file)


@pytest.mark.parametrize("durability", ["none", "interval 20", "always"])
def test_what_was_answered_is_there_after_a_clean_stop(
    tmp_path: Path, durability: str
) -> None:
    settings: dict[str, Value] = {"durability": durability}
    with RunningServer(
        JournalStore(tmp_path, Settings(**settings)), **settings
    ) as running:
        client = running.connect()
        for number in range(1, 51):
            client.call("XADD", "s", f"{number}-1", "f", "v")

    again = JournalStore(tmp_path, Settings(**settings))
    keyspace = Keyspace(Settings())
    found = again.open(keyspace)
    again.close()

    assert (found.entries, found.clean) == (50, True)


@pytest.mark.parametrize("durability", ["none", "interval 20"])
def test_changes_reach_the_journal_soon_without_being_waited_for(
    tmp_path: Path, durability: str
) -> None:
    settings: dict[str, Value] = {"durability": durability}
    disk = CountingDisk()
    store = JournalStore(tmp_path, Settings(**settings), disk)
    with RunningServer(store, **settings) as running:
        client = running.connect()
        syncs = running.look(lambda _: disk.syncs[get_ident()])
        commits = store.statistics.commits

        client.call("SET", "k", "v")
        running.until(lambda _: store.statistics.commits > commits)

        synced = running.look(lambda _: disk.syncs[get_ident()]) > syncs
    assert synced == (durability != "none")
