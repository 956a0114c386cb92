"""The system's clock jumps: IDs only rise, claims and waits do not notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from felixresp.clock import SystemClock
from felixresp.config import Settings
from felixresp.storage.journal import JournalStore
from tests.server.running import Peer, RunningServer
from tests.wire import entry_ids

HOUR_MS = 3_600_000


class Jump:
    """Puts the system's clock ahead, or back, of what it is."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ms = 0
        wall_ms, wall_us = SystemClock.wall_ms, SystemClock.wall_us
        patch.setattr(SystemClock, "wall_ms", lambda clock: wall_ms(clock) + self.ms)
        patch.setattr(
            SystemClock, "wall_us", lambda clock: wall_us(clock) + self.ms * 1000
        )

    def to(self, ms: int, client: Peer) -> None:
        """The client has seen it: a clock is read once a millisecond."""
        before_s = int(client.call("TIME")[0])
        far_s = (ms - self.ms) / 2000
        self.ms = ms
        while abs(int(client.call("TIME")[0]) - before_s) < abs(far_s):
            pass


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    return Jump(monkeypatch)


def test_when_the_clock_is_set_back_ids_still_rise(
    running: RunningServer, jump: Jump
) -> None:
    client = running.connect()
    first = client.call("XADD", "s", "*", "f", "v")

    jump.to(-HOUR_MS, client)

    ids = [client.call("XADD", "s", "*", "f", "v") for _ in range(3)]
    ms, seq = map(int, first.split(b"-"))
    assert ids == [b"%d-%d" % (ms, seq + n) for n in (1, 2, 3)]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_jump_ends_no_claim_and_no_wait(
    running: RunningServer, jump: Jump, hours: int
) -> None:
    client, waiter = running.connect(), running.connect()
    client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    id_ = client.call("XADD", "s", "*", "f", "v")
    client.call("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">")
    read = ("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 60_000, "STREAMS", "s", ">")
    waiter.send(*read)
    running.until_blocked(1)

    jump.to(hours * HOUR_MS, client)

    client.call("SET", "other", "v", "PX", 1)
    running.until(lambda server: server.keyspace.size(0) == 1)
    assert not waiter.has_reply()
    ((_, holder, idle_ms, _),) = client.call("XPENDING", "s", "g", "-", "+", 10)
    assert holder == b"alice"
    assert 0 <= idle_ms < HOUR_MS // 2
    second = client.call("XADD", "s", f"{2**63}-0", "f", "v")
    assert entry_ids(waiter.read()) == [second]
    assert client.call("XACK", "s", "g", id_, second) == 2


def test_keys_expire_by_the_clock_as_it_is(running: RunningServer, jump: Jump) -> None:
    client = running.connect()
    client.call("SET", "k", "v", "EX", 1800)

    jump.to(-HOUR_MS, client)
    assert client.call("TTL", "k") > 5000
    jump.to(HOUR_MS, client)

    assert client.call("GET", "k") is None


def test_a_clean_restart_on_a_clock_that_was_set_back_keeps_what_was_claimed(
    tmp_path: Path, jump: Jump
) -> None:
    jump.ms = HOUR_MS
    real = SystemClock.now_ms
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now_ms", lambda clock: real(clock) + HOUR_MS)
        with RunningServer(JournalStore(tmp_path, Settings())) as running:
            client = running.connect()
            client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
            ids = [client.call("XADD", "s", "*", "f", "v") for _ in range(3)]
            client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    jump.ms = 0

    with RunningServer(JournalStore(tmp_path, Settings())) as running:
        client = running.connect()
        rows = client.call("XPENDING", "s", "g", "-", "+", 10)
        assert [row[2] for row in rows] == [0, 0, 0]
        assert client.call("XINFO", "CONSUMERS", "s", "g")[0][5] == 0
        assert client.call("XREADGROUP", "GROUP", "g", "d", "STREAMS", "s", ">") is None
        assert client.call("XACK", "s", "g", *ids) == 3
        assert client.call("XADD", "s", "*", "f", "v") > ids[-1]
