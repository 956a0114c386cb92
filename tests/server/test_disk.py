"""A disk that is full, or that fails, seen by clients."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from felixresp.config import MiB, Settings
from felixresp.storage.disk import Disk
from felixresp.storage.journal import JournalStore
from tests.server.running import RunningServer
from tests.wire import Refused, Wire


class Bad(Disk):
    """A call fails while its name is in ``failing``; "segment" is a large write."""

    def __init__(self) -> None:
        self.failing = ""

    def write(self, file: int, data: bytes, offset: int) -> None:
        if self.failing == "segment" and len(data) > MiB // 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._fail("write")
        super().write(file, data, offset)

    def sync(self, file: int) -> None:
        self._fail("sync")
        super().sync(file)

    def _fail(self, call: str) -> None:
        if self.failing == call:
            raise OSError(errno.EIO, "Input/output error")


def store(directory: Path, disk: Bad) -> JournalStore:
    return JournalStore(directory, Settings(journal_segment_bytes=MiB), disk)


def add_until_refused(client: Wire) -> None:
    """It is when a segment is wanted."""
    while True:
        client.call("XADD", "s", "*", "f", b"v" * 100_000)


def test_on_a_full_disk_work_is_finished_and_none_is_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    disk = Bad()
    with RunningServer(store(tmp_path, disk)) as running, running.connect() as client:
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        ids = [client.call("XADD", "s", "*", "f", "v") for _ in range(3)]
        disk.failing = "segment"
        with pytest.raises(Refused, match="MISCONF"):
            add_until_refused(client)

        client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", "3", "STREAMS", "s", ">")
        assert client.call("XACK", "s", "g", *ids) == 3
        assert client.call("XDEL", "s", ids[0]) == 1
        assert b"aof_last_write_status:err" in client.call("INFO", "persistence")
        client.call("MULTI")
        client.call("XACK", "s", "g", ids[0])
        assert client.call("EXEC") == [0]

        disk.failing = ""
        running.until(lambda server: not server.full)
        assert client.call("XADD", "s", "*", "f", "v")
    said = capfd.readouterr().err
    assert "No space left on device: commands that add data are refused" in said
    assert "there is room again" in said


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_commit_that_fails_ends_the_process_unanswered(
    call: str, tmp_path: Path
) -> None:
    disk = Bad()
    with RunningServer(store(tmp_path, disk)) as running:
        with running.connect() as client, running.connect() as reader:
            assert client.call("XADD", "s", "1-1", "f", "v") == b"1-1"
            reader.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
            running.until_blocked(1)
            disk.failing = call

            client.send("XADD", "s", "2-1", "f", "v")

            running.until(lambda _: running.deaths)
            assert not client.has_reply()
            assert not reader.has_reply()
        disk.failing = ""
    assert "Input/output error" in running.deaths[0]
