"""Connections over real sockets: order, fairness, limits, and ends."""

from __future__ import annotations

import hashlib
import socket
import threading

import pytest

from felixresp.config import Settings
from felixresp.server.connection import Connection
from felixresp.server.server import Server
from felixresp.storage.memory import MemoryStore
from tests.server.running import RunningServer, read_to_end
from tests.wire import Lost


def command(*words: bytes) -> bytes:
    bulks = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%b" % (len(words), b"".join(bulks))


def test_pipelined_replies_come_in_the_order_of_the_commands(
    running: RunningServer,
) -> None:
    client = running.connect()
    commands = [
        command
        for number in range(500)
        for command in (("SET", "k", number), ("ECHO", number), ("GET", "k"))
    ]

    replies = client.call_many(commands)

    expected = [
        reply
        for number in range(500)
        for reply in (b"OK", b"%d" % number, b"%d" % number)
    ]
    assert replies == expected


def test_a_long_pipeline_does_not_starve_another_client(running: RunningServer) -> None:
    greedy, modest = running.connect_raw(), running.connect()
    modest.call("PING")

    with running.stopped():
        greedy.sendall(command(b"PING") * 5000)
        modest.send("INFO", "stats")
    stats = modest.read()

    processed = int(stats.split(b"total_commands_processed:")[1].split()[0])
    assert processed < 1000


def test_a_large_value_arrives_whole(running: RunningServer) -> None:
    client = running.connect()
    value = hashlib.sha512(b"x").digest() * 65536  # 4 MiB

    client.call("SET", "k", value)

    assert client.call("GET", "k") == value


def test_a_client_that_does_not_read_stops_being_served_until_it_does(
    running: RunningServer,
) -> None:
    client, other = running.connect_raw(), running.connect()
    other.call("CONFIG", "SET", "client-output-buffer-bytes", 1 << 20)
    other.call("SET", "k", b"x" * 100_000)
    reply = b"$100000\r\n%b\r\n" % (b"x" * 100_000)

    client.sendall(command(b"GET", b"k") * 1000)
    running.until_processed(10)
    other.call_many([["PING"]] * 1000)  # the loop has turned often
    stuck = running.look(lambda server: server.commands_processed)
    most = running.look(
        lambda server: max(c.output.size_bytes() for c in server.connections())
    )
    client.shutdown(socket.SHUT_WR)

    assert stuck < 1500
    assert most < 1_500_000
    assert read_to_end(client) == reply * 1000


def test_requests_behind_a_parked_one_wait_for_it(running: RunningServer) -> None:
    client, other = running.connect(), running.connect()

    client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    client.send("PING")
    running.until_blocked(1)
    assert not client.has_reply()
    other.call("XADD", "s", "1-1", "f", "v")

    assert client.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert client.read() == b"PONG"


def test_a_request_that_came_while_parked_runs_after_it(running: RunningServer) -> None:
    client, other = running.connect(), running.connect()

    client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    running.until_blocked(1)
    client.send("PING")
    other.call("XADD", "s", "1-1", "f", "v")

    assert client.read() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert client.read() == b"PONG"


def test_what_was_asked_before_the_end_is_answered(running: RunningServer) -> None:
    client = running.connect_raw()

    client.sendall(command(b"PING") * 1000)
    client.shutdown(socket.SHUT_WR)

    assert read_to_end(client) == b"+PONG\r\n" * 1000


def test_a_protocol_error_is_answered_after_what_came_before_and_closes(
    running: RunningServer,
) -> None:
    client = running.connect_raw()

    client.sendall(command(b"PING") + b"*x\r\n" + command(b"PING"))

    assert read_to_end(client) == (
        b"+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"
    )


def test_quit_closes_after_its_reply(running: RunningServer) -> None:
    client = running.connect_raw()

    client.sendall(b"PING\r\nQUIT\r\nPING\r\n")

    assert read_to_end(client) == b"+PONG\r\n+OK\r\n"


def test_what_follows_auth_in_one_write_has_its_limits() -> None:
    with RunningServer(MemoryStore(Settings()), requirepass="pw") as running:
        client = running.connect_raw()
        many = command(b"DEL", *[b"k"] * 20)

        client.sendall(command(b"AUTH", b"pw") + many + b"QUIT\r\n")

        assert read_to_end(client) == b"+OK\r\n:0\r\n+OK\r\n"


def test_a_flood_without_auth_is_answered_a_piece_at_a_time() -> None:
    count = 500_000
    with RunningServer(MemoryStore(Settings()), requirepass="pw") as running:
        client = running.connect_raw()
        sender = threading.Thread(target=client.sendall, args=(b"PING\r\n" * count,))
        sender.start()
        kept: list[int] = []

        reply = b"-NOAUTH Authentication required.\r\n"
        left = count * len(reply)
        while left:
            left -= len(client.recv(min(left, 1 << 20)))
            connection = running.look(lambda server: server.connections()[0])
            kept.append(len(connection._parser._data))

        sender.join()
        assert max(kept) <= 2 * 64 * 1024


def test_without_auth_a_large_request_is_refused() -> None:
    with RunningServer(MemoryStore(Settings()), requirepass="pw") as running:
        client = running.connect_raw()

        client.sendall(b"PING\r\n" + command(b"DEL", *[b"k"] * 20))

        assert read_to_end(client) == (
            b"-NOAUTH Authentication required.\r\n"
            b"-ERR Protocol error: unauthenticated multibulk length\r\n"
        )


def test_one_client_too_many_is_told_so() -> None:
    with RunningServer(MemoryStore(Settings()), maxclients=1) as running:
        first = running.connect()
        first.call("PING")

        second = running.connect_raw()

        assert read_to_end(second) == b"-ERR max number of clients reached\r\n"
        assert first.call("PING") == b"PONG"


def test_an_idle_client_is_closed_after_the_timeout(running: RunningServer) -> None:
    idle, other = running.connect_raw(), running.connect()

    other.call("CONFIG", "SET", "timeout", 1)

    assert read_to_end(idle) == b""


def test_a_killed_client_is_gone_from_the_list(running: RunningServer) -> None:
    client, other = running.connect(), running.connect()
    number = client.call("CLIENT", "ID")

    assert other.call("CLIENT", "KILL", "ID", number) == 1

    assert b"id=%d " % number not in other.call("CLIENT", "LIST")
    with pytest.raises(Lost):
        client.call("PING")


def test_monitor_shows_commands_as_they_run_and_no_password(
    running: RunningServer,
) -> None:
    monitor, client = running.connect_raw(), running.connect_raw()
    monitor.sendall(b"MONITOR\r\n")
    assert monitor.recv(5) == b"+OK\r\n"

    client.sendall(b"MULTI\r\n" + command(b"SET", b"k", b'a"\n\xff') + b"EXEC\r\n")
    client.sendall(b"AUTH user secret\r\nNOSUCH\r\nCLIENT LIST\r\nPING\r\n")
    with monitor.makefile("rb") as reader:
        lines = [reader.readline().rstrip() for _ in range(5)]

    shown = [line.split(b"] ", 1)[-1] for line in lines]
    assert shown == [
        b'"MULTI"',
        b'"SET" "k" "a\\"\\n\\xff"',
        b'"EXEC"',
        b'"AUTH" "(redacted)" "(redacted)"',
        b'"PING"',
    ]


def test_a_monitor_sees_its_own_commands_after_their_replies(
    running: RunningServer,
) -> None:
    monitor = running.connect_raw()
    monitor.sendall(b"MONITOR\r\nECHO a\r\nRESET\r\nECHO b\r\nQUIT\r\n")

    lines = read_to_end(monitor).split(b"\r\n")
    shown = [line.split(b"] ", 1)[-1] for line in lines]
    assert shown == [
        *(b"+OK", b"$1", b"a", b'"ECHO" "a"', b"+RESET", b"$1", b"b", b"+OK", b""),
    ]


def test_a_http_request_is_cut_off(running: RunningServer) -> None:
    client = running.connect_raw()

    client.sendall(b"POST / HTTP/1.1\r\nHost: example\r\n\r\nPING\r\n")

    assert read_to_end(client) == b""


def test_shutdown_ends_the_server(running: RunningServer) -> None:
    client = running.connect_raw()

    client.sendall(b"SHUTDOWN NOSAVE\r\n")

    assert read_to_end(client) == b""


def test_input_past_its_limit_ends_a_parked_client() -> None:
    with RunningServer(
        MemoryStore(Settings()), client_query_buffer_limit=1 << 20
    ) as running:
        client = running.connect_raw()
        client.sendall(b"XREAD BLOCK 0 STREAMS s $\r\n")
        running.until_blocked(1)

        flood = command(b"SET", b"k", b"x" * 65536) * 1000
        with pytest.raises(OSError, match=r"reset|pipe"):
            client.sendall(flood)
        running.until_blocked(0)


def test_a_client_that_is_idle_or_gone_keeps_nothing_large(
    running: RunningServer,
) -> None:
    idle, gone = running.connect(), running.connect_raw()
    idle.call("SET", "s", b"x" * 1_000_000)
    gone.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\ns\r\n$1000000\r\n" + b"x" * 900_000)

    def held(server: Server) -> list[Connection]:
        return [c for c in server.connections() if c._parser._pieces]

    running.until(held)
    (connection,) = running.look(held)
    gone.close()
    running.until(lambda server: len(server.connections()) == 1)

    assert not connection._parser._pieces
    (connection,) = running.look(lambda server: server.connections())
    assert sum(map(len, connection.last_request)) < 10
    assert b"cmd=set" in running.look(lambda _: connection.describe(0))
