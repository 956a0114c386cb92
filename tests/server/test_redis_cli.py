"""What people type at redis-cli 7, and what they must see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import pytest

from felixresp.config import Settings
from felixresp.storage.memory import MemoryStore
from tests.server.running import WAIT_S, RunningServer
from tests.server_process import missing

pytestmark = pytest.mark.skipif(
    bool(missing("redis-cli")), reason=missing("redis-cli") or "it is there"
)

_PROMPT = r"127\.0\.0\.1:\d+(\[\d+\])?(\(TX\))?> "
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours and the cursor's moves


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer(MemoryStore(Settings())) as server:
        client = server.connect()
        for number in range(1, 4):
            client.call("XADD", "jobs", f"{number}-1", "job", f"n{number}")
        client.call("SET", "greeting", "hello")
        yield server


def cli(running: RunningServer, *words: str) -> str:
    """One call that ends by itself; what it printed."""
    done = subprocess.run(
        ["redis-cli", "-p", str(running.port), *words],
        capture_output=True,
        check=True,
        text=True,
        timeout=WAIT_S,
    )
    return done.stdout


class Terminal:
    """redis-cli at a terminal; ended when the ``with`` block is left."""

    def __init__(self, running: RunningServer, *words: str) -> None:
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", 50, 200, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        self._process = subprocess.Popen(
            ["redis-cli", "-p", str(running.port), *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"TERM": "xterm", "HOME": "/nonexistent"},
            start_new_session=True,
        )
        os.close(slave)
        self._seen = ""

    def ask(self, line: str) -> str:
        """Type a line; what was shown until the next prompt. Not to be called
        before there is one: redis-cli drops what was typed earlier."""
        os.write(self._master, line.encode() + b"\r")
        return self.until(rf"\n\r*{_PROMPT}")

    def quit(self) -> int:
        os.write(self._master, b"quit\r")
        with suppress(OSError):  # how a terminal says that nobody is there
            while os.read(self._master, 65536):
                pass
        return self._process.wait(WAIT_S)

    def until(self, pattern: str) -> str:
        """What was shown up to the pattern, which must come."""
        give_up = time.monotonic() + WAIT_S
        while not (found := re.search(pattern, self._seen)):
            left_s = give_up - time.monotonic()
            assert select.select([self._master], [], [], max(0, left_s))[0], self._seen
            self._seen += os.read(self._master, 65536).decode()
            self._seen = _ESCAPES.sub("", self._seen)
        shown, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.mark.parametrize("protocol", ["-2", "-3"])
def test_one_command_prints_its_reply(running: RunningServer, protocol: str) -> None:
    assert cli(running, protocol, "GET", "greeting") == "hello\n"
    assert cli(running, protocol, "XLEN", "jobs") == "3\n"
    assert cli(running, protocol, "NOSUCH").startswith("ERR unknown command 'NOSUCH'")


def test_commands_on_its_input_run_one_by_one(running: RunningServer) -> None:
    done = subprocess.run(
        ["redis-cli", "-p", str(running.port)],
        input="SET k v\nGET k\nSELECT 3\nGET k\n",
        capture_output=True,
        check=True,
        text=True,
        timeout=WAIT_S,
    )

    assert done.stdout == "OK\nv\nOK\n\n"


def test_info_shows_its_sections(running: RunningServer) -> None:
    shown = cli(running, "INFO")

    assert {"# Server", "# Clients", "# Memory", "# Stats", "# Keyspace"} <= {
        line.strip() for line in shown.splitlines()
    }
    assert "db0:keys=2,expires=0" in shown


def test_xinfo_stream_full_shows_the_stream_and_its_groups(
    running: RunningServer,
) -> None:
    cli(running, "XGROUP", "CREATE", "jobs", "workers", "0")
    reading = "COUNT", "2", "STREAMS", "jobs", ">"
    cli(running, "XREADGROUP", "GROUP", "workers", "alice", *reading)

    lines = cli(running, "XINFO", "STREAM", "jobs", "FULL").splitlines()

    def after(name: str) -> str:
        return lines[lines.index(name) + 1]

    assert after("length") == "3"
    assert after("last-generated-id") == "3-1"
    assert after("entries") == "1-1"
    assert after("last-delivered-id") == "2-1"
    assert after("pel-count") == "2"
    assert after("consumers") == "name"
    assert "alice" in lines


def test_bigkeys_finds_the_biggest_of_each_type(running: RunningServer) -> None:
    shown = cli(running, "--bigkeys")

    assert "Sampled 2 keys in the keyspace!" in shown
    assert re.search(r"Biggest stream found .*jobs.* has 3 entries", shown)
    assert re.search(r"Biggest string found .*greeting.* has 5 bytes", shown)


def test_memkeys_finds_the_biggest_by_memory(running: RunningServer) -> None:
    shown = cli(running, "--memkeys")

    assert re.search(r"Biggest stream found .*jobs.* has \d+ bytes", shown)


def test_latency_prints_what_it_measured(running: RunningServer) -> None:
    """Not at a terminal it measures once and ends: min max avg samples."""
    shown = cli(running, "--latency", "-i", "0.2")

    assert re.fullmatch(r"\d+ \d+ \d+\.\d+ \d+\n", shown)
    assert int(shown.split()[3]) > 0


def test_latency_at_a_terminal_goes_on_measuring(running: RunningServer) -> None:
    with Terminal(running, "--latency") as terminal:
        shown = r"min: \d+, max: \d+, avg: \d+\.\d+ \(\d+ samples\)"

        for _ in range(3):
            terminal.until(shown)


def test_stat_prints_a_line_each_time(running: RunningServer) -> None:
    with Terminal(running, "--stat", "-i", "0.05") as terminal:
        head = terminal.until("connections *\r\n")
        lines = [terminal.until(r"\d+ \(\+\d+\) +\d+ *\r\n") for _ in range(3)]

    assert "keys" in head
    assert "requests" in head
    fields = [line.split() for line in lines]
    assert {row[0] for row in fields} == {"2"}  # keys
    assert all(re.fullmatch(r"[\d.]+[BKMG]", row[1]) for row in fields)  # memory
    requests = [int(row[4]) for row in fields]
    assert requests == sorted(set(requests))


def test_monitor_shows_what_others_do(running: RunningServer) -> None:
    with Terminal(running, "MONITOR") as terminal:
        terminal.until("OK\r\n")

        running.connect().call("XADD", "jobs", "9-1", "a b", "\n")

        shown = terminal.until(r'"XADD".*\r\n')
    assert shown.strip().endswith('"XADD" "jobs" "9-1" "a b" "\\n"')
    assert re.search(r"\d+\.\d{6} \[0 127\.0\.0\.1:\d+\]", shown)


def test_a_session_helps_edits_and_answers(running: RunningServer) -> None:
    with Terminal(running) as terminal:
        terminal.until(_PROMPT)

        help_ = terminal.ask("help xadd")
        added = terminal.ask("xadd jobs 10-1 job ten")
        ranged = terminal.ask("xrange jobs 10 +")
        chosen = terminal.ask("select 2")
        begun = terminal.ask("multi")
        queued = terminal.ask("dbsize")
        executed = terminal.ask("exec")
        refused = terminal.ask("xadd jobs")
        status = terminal.quit()

    assert "XADD key [NOMKSTREAM]" in help_
    assert "summary: " in help_
    assert "since: 5.0.0" in help_
    assert "group: stream" in help_
    assert '\r\n"10-1"\r\n' in added
    assert '1) 1) "10-1"\r\n   2) 1) "job"\r\n      2) "ten"\r\n' in ranged
    assert chosen.endswith("[2]> ")
    assert begun.endswith("[2](TX)> ")
    assert "QUEUED\r\n" in queued
    assert "1) (integer) 0\r\n" in executed
    assert "(error) ERR wrong number of arguments for 'xadd' command" in refused
    assert status == 0


def test_help_at_a_terminal_knows_what_redis_does_not(running: RunningServer) -> None:
    with Terminal(running) as terminal:
        terminal.until(_PROMPT)

        assert "XDLQ LIST key group" in terminal.ask("help xdlq list")
