"""Every verb at random, on a server that is killed or stopped again and again.

The load runs in threads of this process, so that all notes bear one clock.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.client import Client
from tests.crash.consuming import CONSUMING, ack, autoclaim, read
from tests.crash.facts import End, Fact, GroupEnd, History, Id, Kind, entry_id
from tests.crash.managing import MANAGING, create, resume
from tests.crash.promises import Verdict, judge
from tests.crash.turns import CONSUMERS, Ask, Shared, Turn, Use, nothing
from tests.crash.uses import USES
from tests.server_process import ServerProcess
from tests.wire import Wire, entry_ids, named

PRODUCERS = 2
BETWEEN_S = (1.0, 3.0)  # between two ends of the server
CLEAN = 0.25  # of them are orderly stops
DISCONNECTS = 0.005  # of a worker's turns begin on a new connection
BACKLOG_MAX = 150  # producers wait for the slowest group of their stream
DRAIN_TIMEOUT_S = 120.0
FLAGS = (
    "--durability=always",
    "--group-visibility-timeout-ms=400",
    # Small, so that kills hit checkpoints and changes of segment too.
    "--journal-segment-bytes=1mb",
    "--journal-max-bytes=8mb",
    "--checkpoint-bytes=128kb",
    "--stream-node-max-entries=20",
)
_VERBS = {**CONSUMING, **MANAGING}


@dataclass(slots=True)
class Load:
    """What the threads share with the one that kills."""

    port: int
    seed: int
    up: threading.Event = field(default_factory=threading.Event)
    going: threading.Event = field(default_factory=threading.Event)
    shared: dict[str, Shared] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known: dict[str, deque[bytes]] = {}
        for use in USES:
            ids = known.setdefault(use.stream, deque(maxlen=1000))
            self.shared[use.label] = Shared(ids)


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    kills: int
    stops: int
    history: History
    end: End
    verdict: Verdict

    def lines(self) -> list[str]:
        answers = self.history.answers
        verbs = sorted({verb for verb, _ in answers})
        kinds = Counter(fact.kind for fact in self.history.facts)
        return [
            f"seed {self.seed}",
            f"{self.kills:8} kills (SIGKILL)",
            f"{self.stops:8} clean stops (SIGTERM)",
            f"{self.history.reconnects:8} reconnects",
            f"{self.history.drift_ns // 1000:8} us drift of the system's clock",
            f"{len(self.history.sent):8} XADD sent",
            f"{len(self.history.added):8} XADD answered",
            f"{kinds[Kind.HANDED] + kinds[Kind.TAKEN]:8} deliveries",
            "answered  refused     lost",
            *(
                f"{answers[verb, 'answered']:8} {answers[verb, 'refused']:8}"
                f" {answers[verb, 'lost']:8}  {verb}"
                for verb in verbs
            ),
            "checked",
            *(f"{n:8} {what}" for what, n in sorted(self.verdict.checked.items())),
            f"violations {len(self.verdict.broken)}",
            *(f"  {line}" for line in self.verdict.broken[:50]),
        ]


def run(seconds: float, seed: int = 0) -> Report:
    """The whole run, on a directory of its own."""
    dice = random.Random(seed)
    offset_ns = _offset_ns()
    history = History()
    ends: Counter[bool] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess.start(Path(directory), *FLAGS)
        load = Load(server.port, seed)
        threads, clients = _threads(load)
        try:
            _set_up(load.port)
            load.going.set()
            load.up.set()
            for thread in threads:
                thread.start()
            stop_at = time.monotonic() + seconds
            while time.monotonic() < stop_at:
                time.sleep(dice.uniform(*BETWEEN_S))
                clean = dice.random() < CLEAN
                ends[clean] += 1
                server = _again(server, Path(directory), load, history, clean=clean)
            load.going.clear()
            for thread in threads:
                thread.join()
            drainer = Client(load.port, load.up)
            clients.append(drainer)
            _drain(drainer, load)
            for clean in (True, False):
                ends[clean] += 1
                server = _again(server, Path(directory), load, history, clean=clean)
            end = _end(load.port)
        finally:
            load.going.clear()
            load.up.set()
            server.kill()
    for client in clients:
        history.merge(client.history)
    history.drift_ns = abs(_offset_ns() - offset_ns)
    rules = {use.label: use.rules for use in USES}
    verdict = judge(history, rules, end)
    return Report(seed, ends[False], ends[True], history, end, verdict)


def _again(
    server: ServerProcess,
    directory: Path,
    load: Load,
    history: History,
    *,
    clean: bool,
) -> ServerProcess:
    load.up.clear()
    began_ns = time.monotonic_ns()
    if server.process.poll() is not None:
        history.errors += ["the server ended by itself", *server.lines[-10:]]
        clean = False
    elif clean:
        status = server.terminate()
        if status != 0:
            history.errors.append(f"a clean stop ended with {status}")
    else:
        server.kill()
    if any("Traceback" in line for line in server.lines):
        history.errors += ["the server met an error", *server.lines[-30:]]
    server = ServerProcess.start(directory, *FLAGS, port=load.port)
    if not clean:
        history.facts.append(
            Fact(Kind.CRASHED, "", None, began_ns, time.monotonic_ns())
        )
    load.up.set()
    return server


def _offset_ns() -> int:
    """Deadlines are wall times on the disk, and the notes are not."""
    return time.time_ns() - time.monotonic_ns()


def _set_up(port: int) -> None:
    with Wire(port) as wire:
        for use in USES:
            wire.call("XGROUP", "CREATE", use.stream, use.name, "0", "MKSTREAM")
            if use.settings:
                names = use.stream, use.name
                wire.call("XGROUP", "CONFIG", "SET", *names, *use.settings)


def _threads(load: Load) -> tuple[list[threading.Thread], list[Client]]:
    threads, clients = [], []
    streams = sorted({use.stream for use in USES})
    for number in range(CONSUMERS + PRODUCERS):
        client = Client(load.port, load.up)
        if number < CONSUMERS:
            worker = _Worker(load, client, f"w{number}")
            turn = worker.turn
        else:
            stream = streams[number % len(streams)]
            turn = _Producer(load, client, f"p{number}", stream).turn
        arguments = (turn, load.going)
        threads.append(threading.Thread(target=client.run, args=arguments))
        clients.append(client)
    return threads, clients


class _Producer:
    def __init__(self, load: Load, client: Client, name: str, stream: str) -> None:
        self.client, self.name, self.stream = client, name, stream
        groups = [use.label for use in USES if use.stream == stream]
        self.shared = [load.shared[label] for label in groups]

    def turn(self) -> None:
        if max(shared.backlog for shared in self.shared) > BACKLOG_MAX:
            time.sleep(0.01)
            return
        history, stream = self.client.history, self.stream
        payload = f"{self.name}-{len(history.sent)}".encode()
        history.sent[payload] = time.monotonic_ns()

        def learn(id_: Any) -> Iterable[Fact]:
            history.added[stream, entry_id(id_)] = payload
            self.shared[0].known.append(id_)
            return ()

        self.client.ask(Ask("XADD", ("XADD", stream, "*", "payload", payload), learn))
        time.sleep(0.004)


class _Worker:
    def __init__(self, load: Load, client: Client, name: str) -> None:
        self.client = client
        self.dice = random.Random(f"{load.seed} {name}")
        self.turns = [
            Turn(use, load.shared[use.label], self.dice, name, client.reclaimed)
            for use in USES
        ]

    def turn(self) -> None:
        if self.dice.random() < DISCONNECTS:
            self.client.history.reconnects += 1
            self.client.connect()
        turn = self.dice.choice(self.turns)
        verbs = turn.use.verbs
        (verb,) = self.dice.choices(list(verbs), list(verbs.values()))
        ask = _VERBS[verb](turn)
        if ask is not None:
            self.client.ask(ask, may_not_be_there=turn.use.comes_and_goes)


def _drain(client: Client, load: Load) -> None:
    """Take and settle what is left; delays and claims end by themselves."""
    dice = random.Random(load.seed)
    client.connect()
    for use in USES:
        turn = Turn(use, load.shared[use.label], dice, "last", client.reclaimed)
        if use.comes_and_goes:
            client.ask(create(turn), may_not_be_there=True)
        client.ask(resume(turn))
        reset = ("visibility-timeout-ms", 300, "max-in-flight", 1000)
        more = ("max-dead-letters", 100000, "claims-follow", "timer")
        words = ("XGROUP", "CONFIG", "SET", use.stream, use.name, *reset, *more)
        client.ask(Ask("XGROUP CONFIG SET", words, nothing))
        give_up_at = time.monotonic() + DRAIN_TIMEOUT_S
        while _backlog(client, use):
            if time.monotonic() > give_up_at:
                break  # what is left is a violation
            client.ask(read(turn))
            if not use.leases:
                client.ask(autoclaim(turn))
            if (settled := ack(turn)) is not None:
                client.ask(settled)
    client.close()


def _backlog(client: Client, use: Use) -> int:
    words = ("XGROUP", "DESCRIBE", use.stream, use.name)
    told = named(client.ask(Ask("XGROUP DESCRIBE", words, nothing)))
    backlog: int = told["backlog"]
    return backlog


def _end(port: int) -> End:
    entries: dict[str, dict[Id, bytes]] = {}
    groups: dict[str, GroupEnd] = {}
    with Wire(port) as wire:
        for use in USES:
            names = use.stream, use.name
            if use.stream not in entries:
                entries[use.stream] = {
                    entry_id(id_): fields[1]
                    for id_, fields in wire.call("XRANGE", use.stream, "-", "+")
                }
            told = named(wire.call("XGROUP", "DESCRIBE", *names))
            letters = wire.call("XDLQ", "LIST", *names)
            words = ("XREADGROUP", "GROUP", use.name, "last", "COUNT", 1000)
            returned = entry_ids(wire.call(*words, "STREAMS", use.stream, ">"))
            groups[use.label] = GroupEnd(
                frozenset(entry_id(named(row)["id"]) for row in letters),
                told["backlog"] - told["lag"],
                told["lag"],
                tuple(map(entry_id, returned)),
            )
    return End(entries, groups)
