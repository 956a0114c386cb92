"""Replies much larger than memory may hold, to clients that read slowly.

They are sent node by node as the socket drains: what they show is the stream as it
was when the command ran, whatever happened to it meanwhile.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from felixresp.config import MiB, Settings, Value
from felixresp.server.server import Server
from felixresp.storage.journal import JournalStore
from felixresp.storage.memory import MemoryStore
from tests.server.running import RunningServer

ENTRIES = 12_000
VALUE = b"v" * 1000
OUTPUT_BYTES = MiB // 4
CACHE_BYTES = MiB
SLACK_BYTES = 4 * MiB  # what may be read between two looks at the cache
XRANGE = b"*4\r\n$6\r\nXRANGE\r\n$1\r\ns\r\n$1\r\n-\r\n$1\r\n+\r\n"


def entry(number: int) -> bytes:
    id_ = b"%d-1" % number
    return b"*2\r\n$%d\r\n%b\r\n*2\r\n$1\r\nf\r\n$1000\r\n%b\r\n" % (
        len(id_),
        id_,
        VALUE,
    )


def reply(numbers: range) -> bytes:
    return b"*%d\r\n" % len(numbers) + b"".join(map(entry, numbers))


ALL = range(1, ENTRIES + 1)


LIMITS: dict[str, Value] = {
    "client_output_buffer_bytes": OUTPUT_BYTES,
    "cache_max_bytes": CACHE_BYTES,
    "checkpoint_bytes": MiB,
    "checkpoint_seconds": 1,
}


@pytest.fixture(params=["journal", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> JournalStore | MemoryStore:
    if request.param == "journal":
        return JournalStore(tmp_path, Settings(**LIMITS))
    return MemoryStore(Settings(**LIMITS))


@pytest.fixture
def running(store: JournalStore | MemoryStore) -> Iterator[RunningServer]:
    """A stream of 12 MB, none of it in memory where there is a disk."""
    with RunningServer(store, durability="none", **LIMITS) as server:
        client = server.connect()
        for start in range(1, ENTRIES, 1000):
            numbers = range(start, start + 1000)
            client.call_many([("XADD", "s", f"{n}-1", "f", VALUE) for n in numbers])
        if isinstance(store, JournalStore):
            server.until(cold)
        yield server


def cold(server: Server) -> bool:
    """All but the newest entries are on disk, and as little in memory as may be."""
    stream = server.keyspace.stream(0, b"s")
    assert stream is not None
    stored = sum(node.stored or not node.resident for node in stream.nodes)
    server.keyspace.cache.shrink(0)
    return stored >= len(stream.nodes) - 1


def more_checkpoints(store: JournalStore, done: int, _: Server) -> bool:
    return store.statistics.checkpoints > done


def held_bytes(server: Server) -> int:
    """What the replies and the cache hold in memory."""
    outputs = sum(c.output.size_bytes() for c in server.connections())
    return outputs + server.keyspace.cache.bytes


def slow_reader(running: RunningServer) -> socket.socket:
    """A client with a small window, that has asked for everything."""
    reader = running.connect_raw(received_bytes=65536)
    done = running.look(lambda server: server.commands_processed)
    reader.sendall(XRANGE)
    running.until_processed(done + 1)
    return reader


def read_exactly(reader: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = reader.recv(min(65536, count - len(data)))
        assert chunk
        data += chunk
    return bytes(data)


def test_a_slow_reader_gets_everything_in_bounded_memory(
    running: RunningServer, store: JournalStore | MemoryStore
) -> None:
    before = running.look(held_bytes)
    reader = slow_reader(running)
    expected, at, most = reply(ALL), 0, 0

    while at < len(expected):
        data = read_exactly(reader, min(MiB, len(expected) - at))
        assert data == expected[at : at + len(data)]
        at += len(data)
        most = max(most, running.look(held_bytes))

    cache_bytes = CACHE_BYTES if isinstance(store, JournalStore) else before
    assert most < cache_bytes + OUTPUT_BYTES + SLACK_BYTES


def test_it_shows_the_stream_as_it_was_when_it_asked(
    running: RunningServer, store: JournalStore | MemoryStore
) -> None:
    reader, other = slow_reader(running), running.connect()
    expected = reply(ALL)
    first = read_exactly(reader, MiB)

    assert other.call("XTRIM", "s", "MAXLEN", 10) == ENTRIES - 10
    for number in (1, 2):
        other.call("XADD", "s", f"{ENTRIES + number}-1", "f", "new")
        if isinstance(store, JournalStore):  # checkpoints delete what was trimmed
            done = store.statistics.checkpoints
            running.until(partial(more_checkpoints, store, done))

    assert first + read_exactly(reader, len(expected) - MiB) == expected
    assert other.call("XLEN", "s") == 12


def test_it_outlives_its_stream(running: RunningServer) -> None:
    reader, other = slow_reader(running), running.connect()

    other.call("DEL", "s")
    other.call("SET", "s", "another value")

    expected = reply(ALL)
    assert read_exactly(reader, len(expected)) == expected


def test_two_readers_and_a_writer_share_the_server(running: RunningServer) -> None:
    readers = [slow_reader(running) for _ in range(2)]
    other = running.connect()

    for number in range(200):
        assert other.call("ECHO", number) == b"%d" % number
    expected = reply(ALL)

    for reader in readers:
        assert read_exactly(reader, len(expected)) == expected


def test_a_reader_that_goes_away_leaves_nothing_pinned(running: RunningServer) -> None:
    slow_reader(running).close()

    def pins(server: Server) -> int:
        stream = server.keyspace.stream(0, b"s")
        assert stream is not None
        return sum(node.pins for node in stream.nodes)

    running.until(lambda server: pins(server) == 0)


def test_what_is_behind_it_waits_for_its_turn(running: RunningServer) -> None:
    reader = slow_reader(running)
    reader.sendall(b"PING\r\n" + XRANGE + b"QUIT\r\n")

    expected = reply(ALL)

    assert read_exactly(reader, len(expected)) == expected
    assert read_exactly(reader, 7) == b"+PONG\r\n"
    assert read_exactly(reader, len(expected)) == expected
    assert read_exactly(reader, 5) == b"+OK\r\n"
    assert reader.recv(1) == b""


def test_what_waits_to_be_read_counts_against_the_limit(running: RunningServer) -> None:
    reader = slow_reader(running)
    reader.sendall(XRANGE * 500)
    running.until(lambda server: server.connections()[-1].output.full)
    running.connect().call("PING")

    def most_pins(server: Server) -> int:
        stream = server.keyspace.stream(0, b"s")
        assert stream is not None
        return max(node.pins for node in stream.nodes)

    assert running.look(most_pins) <= 3
    expected = reply(ALL)
    for _ in range(4):
        assert read_exactly(reader, len(expected)) == expected
