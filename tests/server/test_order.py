"""Pipelines over stores that finish in step, late, and out of step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from felixresp.config import Settings
from felixresp.engine.keyspace import Keyspace
from felixresp.server.committer import hash_slot
from felixresp.server.server import Server
from felixresp.storage.journal import JournalStore
from felixresp.storage.memory import Deferred, MemoryStore
from tests.server.running import STORES, Peer, RunningServer
from tests.state import describe
from tests.wire import Refused, entry_ids

CLIENTS = 6
ROUNDS = 60
Word = bytes | str | int


def key_of(partition: int, partitions: int) -> bytes:
    """A key that the store keeps in that partition."""
    keys = (b"k%d" % number for number in range(10_000))
    return next(k for k in keys if hash_slot(k) * partitions // 16384 == partition)


def round_of(client: int, number: int) -> list[Sequence[Word]]:
    """Writes to keys of several partitions, reads of them, and an error."""
    own, other = f"own:{client}", f"other:{client}:{number % 5}"
    return [
        ("SET", own, number),
        ("XADD", f"s:{client}", f"{number}-1", "f", "v"),
        ("GET", own),
        ("NOSUCH",),
        ("SET", other, number),
        ("MULTI",),
        ("SET", own, f"{number}x"),
        ("GET", own),
        ("EXEC",),
        ("XRANGE", f"s:{client}", f"{number}-1", f"{number}-1"),
        ("ECHO", number),
    ]


def answers_of(number: int) -> list[object]:
    n = b"%d" % number
    entry = [n + b"-1", [b"f", b"v"]]
    return [
        *(b"OK", n + b"-1", n, Refused, b"OK", b"OK", b"QUEUED", b"QUEUED"),
        *([b"OK", n + b"x"], [entry], n),
    ]


def read(client: Peer) -> object:
    try:
        return client.read()
    except Refused:
        return Refused


def test_every_connection_has_its_replies_in_order(running: RunningServer) -> None:
    clients = [running.connect() for _ in range(CLIENTS)]

    for number in range(1, ROUNDS + 1):
        for at, client in enumerate(clients):
            for request in round_of(at, number):
                client.send(*request)

    expected = [answer for n in range(1, ROUNDS + 1) for answer in answers_of(n)]
    for client in clients:
        assert [read(client) for _ in expected] == expected


def test_waiters_on_many_keys_get_every_entry_once_and_in_order(
    running: RunningServer,
) -> None:
    setup = running.connect()
    streams = [f"s{number}" for number in range(12)]
    for name in streams:
        setup.call("XGROUP", "CREATE", name, "g", "0", "MKSTREAM")
    workers = {stream: running.connect() for stream in streams}
    reading = ("XREADGROUP", "GROUP", "g", "c", "COUNT", 3, "BLOCK", 0, "STREAMS")
    for stream, worker in workers.items():
        worker.send(*reading, stream, ">")
    running.until_blocked(len(streams))

    entries = [(stream, f"{n}-1") for n in range(1, 21) for stream in streams]
    producer = running.connect()
    for stream, id_ in entries:
        producer.send("XADD", stream, id_, "f", "v")

    for stream, worker in workers.items():
        got: list[bytes] = []
        while len(got) < 20:
            ids = entry_ids(worker.read())
            got += ids
            assert worker.call("XACK", stream, "g", *ids) == len(ids)
            if len(got) < 20:
                worker.send(*reading, stream, ">")
        assert got == [b"%d-1" % number for number in range(1, 21)]
    assert [producer.read() for _ in entries] == [id_.encode() for _, id_ in entries]


def test_what_was_answered_is_durable() -> None:
    store = MemoryStore(Settings(), partitions=8, deferred=Deferred(1, spread=5))
    keys = [b"k%d" % number for number in range(16)]
    with RunningServer(store) as running:
        clients = {key: running.connect() for key in keys}

        for number in range(20):
            for key, client in clients.items():
                client.send("SET", key, number)
            for key, client in clients.items():
                assert client.read() == b"OK"
                assert running.look(partial(durable, store, key)) == number


def test_a_commit_that_overtook_another_waits_for_it() -> None:
    store = MemoryStore(Settings(), partitions=2, deferred=Deferred())
    with RunningServer(store) as running:
        first, second = running.connect(), running.connect()
        done = running.look(lambda server: server.commands_processed)
        first.send("SET", key_of(0, 2), "v")
        running.until_processed(done + 1)
        second.send("SET", key_of(1, 2), "v")
        running.until_processed(done + 2)

        running.look(lambda _: store.finish(partition=1))
        running.look(lambda _: None)
        early = first.has_reply(), second.has_reply()
        running.look(lambda _: store.finish(partition=0))

        assert early == (False, False)
        assert (first.read(), second.read()) == (b"OK", b"OK")


def test_a_store_opened_after_a_stop_holds_the_state_that_was_live(
    store: JournalStore | MemoryStore, tmp_path: Path
) -> None:
    with RunningServer(store) as running:
        client = running.connect()
        for stream in ("s", "t", "u"):
            client.call("XGROUP", "CREATE", stream, "g", "0", "MKSTREAM")
            for number in range(1, 8):
                client.call("XADD", stream, f"{number}-1", "f", "v")
            reading = "COUNT", 5, "STREAMS", stream, ">"
            client.call("XREADGROUP", "GROUP", "g", "c", *reading)
            client.call("XACK", stream, "g", "1-1", "3-1", "4-1")
            client.call("XDEL", stream, "2-1", "6-1")
        live = running.look(lambda server: describe(server.keyspace))

    again = store
    if isinstance(store, JournalStore):
        again = STORES["journal"](tmp_path)
    keyspace = Keyspace(Settings())
    again.open(keyspace)
    for name in (b"s", b"t", b"u"):
        found = keyspace.stream(0, name)
        assert found is not None
        again.read(found, [node for node in found.nodes if not node.resident])
    assert describe(keyspace) == live
    again.close()


def durable(store: MemoryStore, key: bytes, _: Server) -> int:
    """What the store has of the key, whatever memory says."""
    keyspace = Keyspace(Settings())
    store.replay(keyspace)
    string = keyspace.string(0, key)
    return -1 if string is None else int(string.data)
