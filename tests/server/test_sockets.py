"""Sockets that fail, and the system that has no room for another one."""

from __future__ import annotations

import errno
import shutil
import socket
from pathlib import Path

import pytest

from felixresp.server.connection import Connection
from tests.server.running import RunningServer
from tests.server_process import ServerProcess, missing
from tests.wire import Wire


def test_with_few_files_clients_leave_the_journals_alone(tmp_path: Path) -> None:
    if reason := missing("prlimit"):
        pytest.skip(reason)
    limit = [str(shutil.which("prlimit")), "--nofile=100:100"]

    with ServerProcess.start(tmp_path, "--maxclients", "90", wrapper=limit) as server:
        clients = [Wire(server.port) for _ in range(36)]
        refused = socket.create_connection(("127.0.0.1", server.port))

        assert "maxclients is 36" in server.lines[0]
        assert refused.recv(100) == b"-ERR max number of clients reached\r\n"
        assert clients[0].call("XADD", "s", "1-1", "f", "v") == b"1-1"
        for client in clients:
            client.close()
        refused.close()


def test_who_cannot_be_accepted_waits_until_there_is_room(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    def accept(_: socket.socket) -> tuple[socket.socket, object]:
        nonlocal tried
        tried += 1
        raise OSError(errno.EMFILE, "Too many open files")

    first = running.connect()
    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "accept", accept)
        waiting = running.connect_raw()
        running.until(lambda _: tried)
        for number in range(100):
            assert first.call("ECHO", number) == b"%d" % number
        assert tried < 50  # not in every turn

    waiting.sendall(b"PING\r\n")
    assert waiting.recv(100) == b"+PONG\r\n"


def test_a_failure_with_one_client_is_not_the_others(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = running.connect_raw(), running.connect()
    victim = running.look(lambda server: server.connections()[0])
    received = Connection.data_received

    def fail(connection: Connection, data: bytes) -> None:
        if connection is victim:
            raise RuntimeError
        received(connection, data)

    monkeypatch.setattr(Connection, "data_received", fail)
    with running.stopped():
        bad.sendall(b"PING\r\n")
        good.send("XADD", "s", "1-1", "f", "v")

    assert good.read() == b"1-1"
    assert good.call("XLEN", "s") == 1
    running.until(lambda server: len(server.connections()) == 1)
