"""Entries that left memory: commands and timers read them back."""

from __future__ import annotations

from pathlib import Path

from felixresp.config import Settings
from felixresp.server.server import Server
from felixresp.storage.journal import JournalStore
from tests.server.running import Peer, RunningServer

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

        running.until(lambda server: server.keyspace.next_deadline() is None)

        assert client.call("XDLQ", "LEN", "s", "g") == 9
        assert client.call("XPENDING", "s", "g")[0] == 0
