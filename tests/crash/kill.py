"""The server is killed again and again under load; nothing answered may be lost.

The load runs in threads of this process, so that all notes bear one clock.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from tests.crash.history import Ack, Final, History, Poll, violations
from tests.server_process import ServerProcess
from tests.wire import Lost, Refused, Wire, entry_ids, named

STREAM, GROUP = "kill:stream", "kill:group"
COUNT = 10
BLOCK_MS = 200
ABANDONED = 0.05  # of what a worker receives: not acked, comes back by lapse
PROGRESS_TIMEOUT_S = 60.0
_Threads = list[tuple[threading.Thread, History]]
FLAGS = (
    "--durability=always",
    "--group-visibility-timeout-ms=500",
    "--group-max-attempts=0",
    # Small, so that kills hit checkpoints and changes of segment too.
    "--journal-segment-bytes=1mb",
    "--journal-max-bytes=8mb",
    "--checkpoint-bytes=256kb",
)


class Broken(Exception):
    """The run cannot go on: no progress in a minute, or the group is gone."""


@dataclass(slots=True)
class Load:
    """What the threads share with the one that kills."""

    port: int
    up: threading.Event = field(default_factory=threading.Event)
    produce: threading.Event = field(default_factory=threading.Event)
    work: threading.Event = field(default_factory=threading.Event)
    answers: int = 0  # a racy count is good enough to see progress by
    progress: threading.Condition = field(default_factory=threading.Condition)

    def answered(self) -> None:
        with self.progress:
            self.answers += 1
            self.progress.notify_all()

    def wait_for(self, goal: int) -> None:
        with self.progress:
            met = self.progress.wait_for(
                lambda: self.answers >= goal, PROGRESS_TIMEOUT_S
            )
        if not met:
            msg = f"{goal - self.answers} answers are missing"
            raise Broken(msg)


@dataclass(frozen=True, slots=True)
class Report:
    kills: int
    history: History
    final: Final
    violations: list[str]

    def lines(self) -> list[str]:
        answers = Counter(ack.answer for ack in self.history.acks)
        received = Counter(e for poll in self.history.polls for e in poll.ids)
        return [
            f"kills of the server      {self.kills}",
            f"reconnects               {self.history.reconnects}",
            f"XADD sent                {len(self.history.sent)}",
            f"XADD answered            {len(self.history.added)}",
            f"entries in the stream    {len(self.final.entries)}",
            f"deliveries               {received.total()}",
            f"entries delivered again  {sum(n > 1 for n in received.values())}",
            f"XACK answered 1          {answers[1]}",
            f"XACK answered 0          {answers[0]}",
            f"XACK without an answer   {answers[None]}",
            f"pending at the end       {self.final.pending}",
            f"lag at the end           {self.final.lag}",
            f"last delivered id        {self.final.last_delivered_id.decode()}",
            f"last id                  {self.final.last_id.decode()}",
            f"violations               {len(self.violations)}",
            *(f"  {line}" for line in self.violations[:20]),
        ]


def run(kills: int, producers: int = 4, workers: int = 4, seed: int = 0) -> Report:
    """The whole run, on a directory of its own."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess.start(Path(directory), *FLAGS)
        load = Load(server.port)
        threads = _threads(load, producers, workers, seed)
        try:
            with Wire(server.port) as wire:
                wire.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
            for event in (load.produce, load.work, load.up):
                event.set()
            for thread, _ in threads:
                thread.start()
            for _ in range(kills):
                load.wait_for(load.answers + dice.randrange(1, 1500))
                load.up.clear()
                server = _crash(server, Path(directory))
                load.up.set()
            _end(load.produce, threads[:producers])
            _drain(load)
            _end(load.work, threads[producers:])
            server = _crash(server, Path(directory))
            final = _final(load.port)
        except Broken as broken:
            errors = [error for _, own in threads for error in own.errors]
            msg = "; ".join([str(broken), *errors[:5]])
            raise Broken(msg) from None
        finally:
            for event in (load.produce, load.work):
                event.clear()
            load.up.set()
            server.kill()
    history = History()
    for _, own in threads:
        history.merge(own)
    return Report(kills + 1, history, final, list(violations(history, final)))


def _crash(server: ServerProcess, directory: Path) -> ServerProcess:
    server.kill()
    return ServerProcess.start(directory, *FLAGS, port=server.port)


def _end(going: threading.Event, threads: _Threads) -> None:
    going.clear()
    for thread, _ in threads:
        thread.join()


def _threads(load: Load, producers: int, workers: int, seed: int) -> _Threads:
    threads: _Threads = []
    for number in range(producers + workers):
        history = History()
        turn: Callable[[Wire], None]
        if number < producers:
            turn, going = _producer(load, history, f"p{number}"), load.produce
        else:
            dice = random.Random(seed + number)
            turn, going = _worker(load, history, f"w{number}", dice), load.work
        arguments = (load, history, going, turn)
        threads.append(
            (threading.Thread(target=_reconnecting, args=arguments), history)
        )
    return threads


def _reconnecting(
    load: Load,
    history: History,
    going: threading.Event,
    turn: Callable[[Wire], None],
) -> None:
    """Turn after turn, through every crash, until ``going`` is cleared."""
    while going.is_set():
        load.up.wait()
        try:
            with Wire(load.port) as wire:
                while going.is_set():
                    turn(wire)
        except Lost:
            history.reconnects += 1
        except RedisError as error:  # an error reply, or none in time
            history.errors.append(repr(error))
            return


def _producer(load: Load, history: History, name: str) -> Callable[[Wire], None]:
    def turn(wire: Wire) -> None:
        payload = f"{name}-{len(history.sent)}".encode()
        history.sent.add(payload)
        entry_id = wire.call("XADD", STREAM, "*", "payload", payload)
        history.added[entry_id] = payload
        load.answered()

    return turn


def _worker(
    load: Load, history: History, name: str, dice: random.Random
) -> Callable[[Wire], None]:
    poll = ("XREADGROUP", "GROUP", GROUP, name, "COUNT", COUNT, "BLOCK", BLOCK_MS)

    def turn(wire: Wire) -> None:
        started_ns = time.monotonic_ns()
        ids = entry_ids(wire.call(*poll, "STREAMS", STREAM, ">"))
        history.polls.append(Poll(started_ns, tuple(ids)))
        dice.shuffle(ids)
        for entry_id in ids:
            if dice.random() >= ABANDONED:
                ack(wire, entry_id)

    def ack(wire: Wire, entry_id: bytes) -> None:
        answer = None
        try:
            answer = wire.call("XACK", STREAM, GROUP, entry_id)
        finally:
            history.acks.append(Ack(entry_id, time.monotonic_ns(), answer))
        load.answered()

    return turn


def _drain(load: Load) -> None:
    """The workers finish what is left; abandoned entries come back until then."""
    with Wire(load.port) as wire:
        while True:
            answers = load.answers
            group = _group(wire)
            if group["pending"] == 0 and group["lag"] == 0:
                return
            load.wait_for(answers + 1)


def _final(port: int) -> Final:
    with Wire(port) as wire:
        entries: dict[bytes, bytes] = {}
        start = b"-"
        while page := wire.call("XRANGE", STREAM, start, "+", "COUNT", 1000):
            entries |= {entry_id: fields[1] for entry_id, fields in page}
            start = b"(" + page[-1][0]
        group = _group(wire)
        stream = named(wire.call("XINFO", "STREAM", STREAM))
        poll = ("XREADGROUP", "GROUP", GROUP, "last", "COUNT", 100)
        returned = entry_ids(wire.call(*poll, "STREAMS", STREAM, ">"))
    return Final(
        entries=entries,
        last_id=stream["last-generated-id"],
        last_delivered_id=group["last-delivered-id"],
        lag=group["lag"],
        pending=group["pending"],
        returned=tuple(returned),
    )


def _group(wire: Wire) -> dict[str, Any]:
    try:
        (group,) = wire.call("XINFO", "GROUPS", STREAM)
    except (Refused, ValueError):
        msg = "the stream or its group is gone"
        raise Broken(msg) from None
    return named(group)
