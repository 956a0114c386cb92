"""``felixresp --demo``: the main job, shown with real processes in a terminal.

Every line printed is something that happened: the server, the workers and the
producer do what they do in production, only the visibility timeout is short. The
exit status is 0 only when each step came out as told.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from .clock import SystemClock

VISIBILITY_MS = 1200
ATTEMPTS_MAX = 3
ORDERS = 6
STEP_MAX_S = 15.0  # far more than any step takes: a demo must not hang
STREAM, GROUP = "orders", "billing"

Reply = bytes | int | list["Reply"] | None
Call = Callable[..., Reply]


class StepFailed(Exception):
    """What should have happened and did not."""


class Connection:
    """RESP2 in thirty lines."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._replies = self._socket.makefile("rb")

    def call(self, *words: object) -> Reply:
        self.send(*words)
        return self.read()

    def send(self, *words: object) -> None:
        bulks = [str(word).encode() for word in words]
        request = b"".join(b"$%d\r\n%s\r\n" % (len(bulk), bulk) for bulk in bulks)
        self._socket.sendall(b"*%d\r\n%s" % (len(bulks), request))

    def read(self) -> Reply:
        line = self._replies.readline()
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"+":
                return rest
            case b":":
                return int(rest)
            case b"$" if int(rest) >= 0:
                return self._replies.read(int(rest) + 2)[:-2]
            case b"*" if int(rest) >= 0:
                return [self.read() for _ in range(int(rest))]
            case b"$" | b"*":
                return None
            case _:
                msg = rest.decode() or "the server closed the connection"
                raise StepFailed(msg)

    def close(self) -> None:
        self._replies.close()
        self._socket.close()


class Stage:
    """Tells the story, and hears what the worker processes say they did."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._start_ms = self._clock.now_ms()
        self._heard = threading.Condition()
        self._deeds: list[tuple[str, str, str]] = []
        self._checked: Counter[tuple[str, str]] = Counter()

    def tell(self, text: str) -> None:
        seconds = (self._clock.now_ms() - self._start_ms) / 1000
        print(f"{seconds:6.2f} s  {text}", flush=True)

    def check(self, name: str, verb: str, wanted: list[str]) -> None:
        """Wait until the worker did ``verb`` to just these entries, in this order."""
        first = self._checked[name, verb]
        self._checked[name, verb] += len(wanted)

        def seen() -> list[str]:
            deeds = [deed[2] for deed in self._deeds if deed[:2] == (name, verb)]
            return deeds[first:]

        with self._heard:
            self._heard.wait_for(lambda: len(seen()) >= len(wanted), STEP_MAX_S)
            expect(f"the entries that {name} {verb}", seen(), wanted)

    @contextmanager
    def worker(self, port: int, name: str, kind: str) -> Iterator[int]:
        """A worker process, by its pid; it has asked for entries on entering."""
        process = subprocess.Popen(
            [sys.executable, "-m", "felixresp.demo", str(port), name, kind],
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the show, which ends them
            text=True,
        )
        assert process.stdout is not None
        reader = threading.Thread(target=self._listen, args=(name, process.stdout))
        reader.start()
        try:
            self.check(name, "waits", [""])
            yield process.pid
        finally:
            process.kill()
            process.wait()
            reader.join()

    def _listen(self, name: str, output: IO[str]) -> None:
        with output:
            for line in output:
                self.tell(f"    {name} {line.rstrip()}")
                verb, entry, *_ = [*line.split(), ""]
                with self._heard:
                    self._deeds.append((name, verb, entry))
                    self._heard.notify_all()


def run() -> int:
    """The whole show; 0 when everything happened as told, else 1."""
    stage = Stage()
    try:
        with (
            tempfile.TemporaryDirectory() as directory,
            _server(stage, directory) as port,
            ExitStack() as stack,
        ):
            connection = Connection(port)
            stack.callback(connection.close)
            call = connection.call
            call("XGROUP", "CREATE", STREAM, GROUP, "$", "MKSTREAM")
            with (
                stage.worker(port, "alice", "slow") as alice,
                stage.worker(port, "bob", "quick"),
            ):
                _lose_a_worker(stage, call, alice)
                poison = _give_up(stage, call)
            with stage.worker(port, "carol", "mended"):
                _redrive(stage, call, poison)
    except (StepFailed, OSError, subprocess.TimeoutExpired) as error:
        stage.tell(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    stage.tell("Nothing was lost and nothing is left over")
    return 0


@contextmanager
def _server(stage: Stage, directory: str) -> Iterator[int]:
    command = [sys.executable, "-m", "felixresp", "--port", "0", "--dir", directory]
    command += ["--group-visibility-timeout-ms", str(VISIBILITY_MS)]
    command += ["--group-max-attempts", str(ATTEMPTS_MAX)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={k: v for k, v in os.environ.items() if not k.startswith("FELIX_")},
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process.stdout, lines))
    reader.start()
    try:
        port = _port(lines)
        stage.tell(f"The server listens on 127.0.0.1:{port}, its data: {directory}")
        yield port
        process.terminate()
        expect("the server's exit status", process.wait(STEP_MAX_S), 0)
    finally:
        process.kill()
        process.wait()
        reader.join()


def _read_lines(output: IO[str], lines: queue.SimpleQueue[str]) -> None:
    with output:
        for line in output:
            lines.put(line)
    lines.put("")


def _port(lines: queue.SimpleQueue[str]) -> int:
    said = ""
    while True:
        try:
            line = lines.get(timeout=STEP_MAX_S)
        except queue.Empty:
            line = ""
        if found := re.search(r"127\.0\.0\.1:(\d+)", line):
            return int(found[1])
        said += line
        if not line:
            msg = f"the server did not start: {said.strip()}"
            raise StepFailed(msg)


def _lose_a_worker(stage: Stage, call: Call, alice: int) -> None:
    stage.tell("alice and bob, two processes, wait in XREADGROUP ... BLOCK 0 ... >")
    stage.tell(f"A claim lapses after {VISIBILITY_MS} ms; nobody calls XAUTOCLAIM")
    stage.tell(f"The producer adds {ORDERS} orders in one MULTI/EXEC")
    call("MULTI")
    for number in range(ORDERS):
        call("XADD", STREAM, "*", "order", number)
    ids = [text(entry) for entry in items(call("EXEC"))]
    held, others = ids[: ORDERS // 2], ids[ORDERS // 2 :]
    stage.check("alice", "took", held)
    stage.check("bob", "finished", others)
    stage.tell(f"SIGKILL to alice, process {alice}, who holds {len(held)} orders")
    os.kill(alice, signal.SIGKILL)
    stage.check("bob", "finished", held)
    stage.tell("Her orders came to bob by themselves, in the poll he was waiting in")
    expect("pending entries", items(call("XPENDING", STREAM, GROUP))[0], 0)


def _give_up(stage: Stage, call: Call) -> str:
    stage.tell(f"The producer adds poison; an entry is tried {ATTEMPTS_MAX} times")
    poison = text(call("XADD", STREAM, "*", "order", "poison"))
    stage.check("bob", "failed", [poison] * ATTEMPTS_MAX)
    pause = threading.Event()
    tries = int(STEP_MAX_S / 0.05)
    while call("XDLQ", "LEN", STREAM, GROUP) != 1 and (tries := tries - 1):
        pause.wait(0.05)
    stage.tell(f"The group gave up on it and goes on. XDLQ LIST {STREAM} {GROUP}:")
    letters = [mapping(letter) for letter in items(call("XDLQ", "LIST", STREAM, GROUP))]
    for name, content in letters[0].items() if letters else ():
        stage.tell(f"    {name}: {content}")
    expect("dead letters", [letter.get("id") for letter in letters], [poison])
    expect("the cause", letters[0].get("cause"), "attempts")
    expect("the attempts", letters[0].get("attempts"), str(ATTEMPTS_MAX))
    after = text(call("XADD", STREAM, "*", "order", "the next one"))
    stage.check("bob", "finished", [after])
    return poison


def _redrive(stage: Stage, call: Call, poison: str) -> None:
    stage.tell("carol, a worker that can process it, has replaced bob")
    stage.tell(f"XDLQ REDRIVE {STREAM} {GROUP} {poison}")
    redriven = call("XDLQ", "REDRIVE", STREAM, GROUP, poison)
    expect("redriven entries", redriven, 1)
    stage.check("carol", "finished", [poison])
    expect("dead letters", call("XDLQ", "LEN", STREAM, GROUP), 0)
    expect("pending entries", items(call("XPENDING", STREAM, GROUP))[0], 0)
    (group,) = items(call("XINFO", "GROUPS", STREAM))
    expect("the lag", mapping(group).get("lag"), "0")


def work(port: int, name: str, kind: str) -> None:
    """The whole of a worker: no XAUTOCLAIM, no timer, no second queue.

    A ``slow`` one never finishes, a ``quick`` one fails on poison.
    """
    connection = Connection(port)
    poll = ("XREADGROUP", "GROUP", GROUP, name, "COUNT", ORDERS // 2, "BLOCK", 0)
    attempts: Counter[str] = Counter()
    connection.send(*poll, "STREAMS", STREAM, ">")
    print("waits", flush=True)
    while True:
        ((_, entries),) = map(items, items(connection.read()))
        for entry in items(entries):
            entry_id, order = text(items(entry)[0]), text(items(items(entry)[1])[1])
            attempts[entry_id] += 1
            if kind == "slow":
                print(f"took {entry_id}", flush=True)
            elif order == "poison" and kind == "quick":
                print(f"failed {entry_id} attempt {attempts[entry_id]}", flush=True)
            else:
                expect("acked", connection.call("XACK", STREAM, GROUP, entry_id), 1)
                print(f"finished {entry_id} ({order})", flush=True)
        if kind == "slow":
            signal.pause()
        connection.send(*poll, "STREAMS", STREAM, ">")


def expect(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        msg = f"{what}: {got!r}, should be {wanted!r}"
        raise StepFailed(msg)


def items(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def text(reply: Reply) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def mapping(reply: Reply) -> dict[str, str]:
    words = [text(word) for word in items(reply)]
    return dict(zip(words[::2], words[1::2], strict=True))


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2], sys.argv[3])
