"""Entries that left memory: commands and timers read them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from felixresp.config import Settings
from felixresp.engine.group import Group
from felixresp.server.server import Server
from felixresp.storage.journal import JournalStore
from felixresp.storage.records import node_key
from tests.server.running import Peer, RunningServer
from tests.storage.house import copy_directory
from tests.wire import Lost, entry_ids

ENTRIES = 200
VALUE = b"x" * 1000


def chilled(running: RunningServer, client: Peer) -> None:
    """Fill a stream, wait for a checkpoint, and evict every stored node."""
    for number in range(1, ENTRIES + 1):
        client.call("XADD", "s", f"{number}-0", "f", VALUE)

    def stored_nodes(server: Server) -> int:
        stream = server.keyspace.stream(0, b"s")
        assert stream is not None
        return sum(node.stored for node in stream.nodes)

    running.until(lambda server: stored_nodes(server) > ENTRIES // 8)


def evict(server: Server) -> None:
    server.keyspace.cache.shrink(0)


def group_of(server: Server) -> Group:
    stream = server.keyspace.stream(0, b"s")
    assert stream is not None
    return stream.groups[b"g"]


def test_claims_on_evicted_entries_lapse_and_die(tmp_path: Path) -> None:
    settings = {
        "checkpoint_bytes": 65536,
        "journal_segment_bytes": 1 << 20,
        "group_visibility_timeout_ms": 300,
        "group_max_attempts": 1,
    }
    store = JournalStore(tmp_path, Settings(**settings))
    with RunningServer(store, **settings) as running:
        client = running.connect()
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        chilled(running, client)
        read = ("XREADGROUP", "GROUP", "g", "dead", "COUNT", 10, "STREAMS", "s", ">")
        client.call(*read)
        client.call("XDEL", "s", "3-0", f"{ENTRIES}-0")  # so each must be looked at
        running.look(evict)

        running.until(lambda server: group_of(server).next_deadline() is None)

        assert client.call("XDLQ", "LEN", "s", "g") == 9
        assert client.call("XPENDING", "s", "g")[0] == 0


# --- what cannot be read


SMALL = {"checkpoint_bytes": 65536, "journal_segment_bytes": 1 << 20}


def damage(server: Server, number: int) -> int:
    """Flip a bit of the node that holds the entry, evict it; its live entries."""
    stream = server.keyspace.stream(0, b"s")
    assert stream is not None
    node = next(n for n in stream.nodes if n.first >> 64 <= number <= n.last >> 64)
    assert node.stored
    assert isinstance(server.store, JournalStore)
    database = server.store._database
    key = node_key(stream.number, node.first)
    with database._env.begin(write=True) as txn:
        data = bytearray(txn.get(key, db=database._dbs["payloads"]) or b"")
        data[-100] ^= 1
        txn.put(key, bytes(data), db=database._dbs["payloads"])
    evict(server)
    return node.live


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[tuple[RunningServer, Peer, int]]:
    """Entry 7 and its neighbours cannot be read; how many they are."""
    store = JournalStore(tmp_path / "data", Settings(**SMALL))
    with RunningServer(store, **SMALL) as running:
        client = running.connect()
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        chilled(running, client)
        yield running, client, running.look(lambda server: damage(server, 7))


def test_an_unreadable_record_is_skipped_and_the_next_delivered_in_the_same_poll(
    damaged: tuple[RunningServer, Peer, int], capfd: pytest.CaptureFixture[str]
) -> None:
    _, client, lost = damaged
    poll = ("XREADGROUP", "GROUP", "g", "c", "COUNT", 30, "STREAMS", "s", ">")

    ids = entry_ids(client.call(*poll))

    assert b"7-0" not in ids
    assert len(ids) == 30
    assert ids[-1] == b"%d-0" % (30 + lost)
    assert client.call("XLEN", "s") == ENTRIES - lost
    assert b"unreadable_entries:%d\r\n" % lost in client.call("INFO", "stats")
    said = capfd.readouterr().err
    assert "is damaged" in said
    assert f"{lost} entries of 's' in database 0" in said


def test_what_was_claimed_of_an_unreadable_record_is_skipped(
    damaged: tuple[RunningServer, Peer, int],
) -> None:
    running, client, _ = damaged
    client.call("XGROUP", "SETID", "s", "g", 0)
    client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 30, "STREAMS", "s", ">")
    running.look(lambda server: damage(server, 20))

    _, taken, deleted = client.call("XAUTOCLAIM", "s", "g", "d", 0, "-", "COUNT", 100)

    assert b"20-0" in deleted
    assert len(taken) + len(deleted) == 30
    assert b"20-0" not in [entry[0] for entry in taken]


def test_a_reply_that_had_promised_what_is_unreadable_ends_with_its_connection(
    damaged: tuple[RunningServer, Peer, int],
) -> None:
    running, client, lost = damaged
    other = running.connect()

    client.send("XRANGE", "s", "-", "+")
    with pytest.raises(Lost):
        client.read()

    assert len(other.call("XRANGE", "s", "-", "+")) == ENTRIES - lost
    assert running.look(pins) == 0


def test_what_is_lost_stays_lost_after_a_restart(
    damaged: tuple[RunningServer, Peer, int], tmp_path: Path
) -> None:
    running, client, lost = damaged
    client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 30, "STREAMS", "s", ">")
    client.call("XADD", "s", "*", "f", "v")
    copy = tmp_path / "copy"
    with running.stopped():  # as a crash would leave it
        copy_directory(tmp_path / "data", copy)

    with RunningServer(JournalStore(copy, Settings(**SMALL)), **SMALL) as again:
        client = again.connect()
        assert client.call("XLEN", "s") == ENTRIES - lost + 1
        assert len(client.call("XRANGE", "s", "-", "+")) == ENTRIES - lost + 1


def pins(server: Server) -> int:
    stream = server.keyspace.stream(0, b"s")
    assert stream is not None
    return sum(node.pins for node in stream.nodes)
