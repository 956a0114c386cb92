"""Durable means durable: no reply that must wait leaves before its sync returned.

The server runs under strace. Every entry has a payload found nowhere else, and the
ID that the server gave it is found in every reply about it, so the trace itself says
which write, which sync and which sends belong together. An ack is answered with a
number only: its connection does nothing else, so the order says whose it is.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.crash.trace import Trace, strace
from tests.server_process import ServerProcess, missing
from tests.wire import Wire, entry_ids

STREAM, GROUP = "fsync:stream", "fsync:group"
ROUNDS = 12
PIPELINE = 8
# Small, so that the trace sees changes of segment and checkpoints too.
FLAGS = ("--journal-segment-bytes=1mb", "--checkpoint-bytes=64kb")


@dataclass(slots=True)
class Run:
    """One traced server, and what its clients know of it."""

    port: int
    payloads: dict[bytes, bytes] = field(default_factory=dict)  # by ID
    settling: set[int] = field(default_factory=set)  # client ports: see early_replies
    acks: dict[int, list[bytes]] = field(default_factory=dict)  # likewise: early_acks
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))
    lock: threading.Lock = field(default_factory=threading.Lock)
    left: int = 0  # entries to be acked
    failures: list[BaseException] = field(default_factory=list)

    def payload(self) -> bytes:
        with self.lock:
            return b"payload-%d;" % next(self.numbers)

    def note(self, entry_id: bytes, payload: bytes) -> None:
        with self.lock:
            self.payloads[entry_id] = payload

    def settler(self) -> Wire:
        """A connection on which every further reply must wait."""
        wire = Wire(self.port)
        wire.call("PING")
        self.settling.add(wire.local_port)
        return wire

    def acker(self) -> tuple[Wire, list[bytes]]:
        """A connection that only acks, and the IDs it asks to ack, in order."""
        wire = self.settler()
        return wire, self.acks.setdefault(wire.local_port, [])


def ptrace_is_missing() -> str:
    if line := missing("strace"):
        return line
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], check=False)
    return "needs the right to trace a process" if probe.returncode else ""


pytestmark = pytest.mark.skipif(
    bool(ptrace_is_missing()), reason=ptrace_is_missing() or "-"
)


def traced(directory: Path, load: Callable[[Run], None], *flags: str) -> list[str]:
    """The violations that the trace of a server under this load shows."""
    output = directory / "trace"
    wrapper = strace(output)
    data = directory / "data"
    with ServerProcess.start(data, *FLAGS, *flags, wrapper=wrapper) as server:
        run = Run(server.port)
        with Wire(server.port) as wire:
            wire.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
        load(run)
        server.terminate()
    assert not run.failures, run.failures
    assert run.payloads
    with output.open() as lines:
        trace = Trace(lines)
    assert trace.syncs
    return [
        *trace.early_entries(run.payloads),
        *trace.early_replies(run.settling),
        *trace.early_acks(run.acks, run.payloads.values()),
    ]


def add_one(wire: Wire, run: Run) -> None:
    payload = run.payload()
    run.note(wire.call("XADD", STREAM, "*", "f", payload), payload)


def add_pipelined(wire: Wire, run: Run) -> None:
    payloads = [run.payload() for _ in range(PIPELINE)]
    ids = wire.call_many([("XADD", STREAM, "*", "f", p) for p in payloads])
    for entry_id, payload in zip(ids, payloads, strict=True):
        run.note(entry_id, payload)


def add_in_exec(wire: Wire, run: Run) -> None:
    payloads = [run.payload() for _ in range(PIPELINE)]
    adds = [("XADD", STREAM, "*", "f", payload) for payload in payloads]
    *_, ids = wire.call_many([("MULTI",), *adds, ("EXEC",)])
    for entry_id, payload in zip(ids, payloads, strict=True):
        run.note(entry_id, payload)


ADDERS = (add_one, add_pipelined, add_in_exec)


def ack_each(wire: Wire, ids: list[bytes]) -> int:
    return sum(wire.call("XACK", STREAM, GROUP, entry_id) for entry_id in ids)


def ack_pipelined(wire: Wire, ids: list[bytes]) -> int:
    acks = [("XACK", STREAM, GROUP, entry_id) for entry_id in ids]
    return sum(wire.call_many(acks)) if acks else 0


ACKERS = (ack_each, ack_pipelined)


def one_connection(run: Run) -> None:
    """Everything that writes, one thing at a time, nobody else around."""
    with run.settler() as wire, Wire(run.port) as other:
        for _ in range(ROUNDS):
            add_one(wire, run)
            add_pipelined(wire, run)
            add_in_exec(other, run)  # apart: its +OK and +QUEUED need not wait
    poll = ("XREADGROUP", "GROUP", GROUP, "c", "COUNT", 5, "STREAMS", STREAM, ">")
    acker, asked = run.acker()
    with acker, Wire(run.port) as reader:
        for ack in ACKERS * 3:
            ids = entry_ids(reader.call(*poll))
            asked += ids
            assert ack(acker, ids) == 5
    *_, kept_from, _, deleted = run.payloads  # none of those that were acked
    with run.settler() as wire:
        for command in (
            ("XDEL", STREAM, deleted),
            ("XTRIM", STREAM, "MINID", kept_from),
            ("XGROUP", "CREATECONSUMER", STREAM, GROUP, "new"),
            ("XGROUP", "DELCONSUMER", STREAM, GROUP, "new"),
            ("XGROUP", "CREATE", STREAM, "other", "0"),
            ("XGROUP", "SETID", STREAM, "other", "$"),
            ("XGROUP", "DESTROY", STREAM, "other"),
            ("XSETID", STREAM, "99999999999999-0"),
            ("PEXPIRE", STREAM, "100000"),
            ("PERSIST", STREAM),
            ("RENAME", STREAM, "renamed"),
            ("DEL", "renamed"),
        ):
            wire.call(*command)


def fifty_connections(run: Run) -> None:
    """20 producers, 10 blocked XREAD, 10 workers of two connections each."""
    producers, readers, workers = 20, 10, 10
    run.left = sum(
        ROUNDS * (1 if ADDERS[n % 3] is add_one else PIPELINE) for n in range(producers)
    )
    threads = [
        *(thread(run, produce, ADDERS[n % 3]) for n in range(producers)),
        *(thread(run, read, run.left) for _ in range(readers)),
        *(thread(run, work, ACKERS[n % 2]) for n in range(workers)),
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def thread(run: Run, part: Callable[..., None], detail: object) -> threading.Thread:
    def body() -> None:
        try:
            part(run, detail)
        except BaseException as error:
            run.failures.append(error)

    return threading.Thread(target=body)


def produce(run: Run, add: Callable[[Wire, Run], None]) -> None:
    with Wire(run.port) as wire:
        for _ in range(ROUNDS):
            add(wire, run)


def read(run: Run, entries: int) -> None:
    """XREAD, blocked whenever it has seen everything."""
    after = b"0-0"
    with Wire(run.port) as wire:
        while entries:
            ids = entry_ids(wire.call("XREAD", "BLOCK", 0, "STREAMS", STREAM, after))
            after = ids[-1]
            entries -= len(ids)


def work(run: Run, ack: Callable[[Wire, list[bytes]], int]) -> None:
    poll = ("XREADGROUP", "GROUP", GROUP, "c", "COUNT", 5, "BLOCK", 100)
    acker, asked = run.acker()
    with acker, Wire(run.port) as wire:
        while run.left:
            ids = entry_ids(wire.call(*poll, "STREAMS", STREAM, ">"))
            asked += ids
            finished = ack(acker, ids)
            with run.lock:
                run.left -= finished


@pytest.mark.parametrize("load", [one_connection, fifty_connections])
def test_no_reply_that_must_wait_leaves_before_its_sync(
    tmp_path: Path, load: Callable[[Run], None]
) -> None:
    assert traced(tmp_path, load) == []


def test_the_same_check_fails_without_durability(tmp_path: Path) -> None:
    assert traced(tmp_path, one_connection, "--durability=interval 1000") != []
