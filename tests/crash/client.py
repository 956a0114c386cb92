"""A client that notes what it asked, when, and what the answers let it know."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import RedisError

from tests.crash.facts import Fact, History
from tests.crash.turns import Ask
from tests.wire import Lost, Refused, Wire

_SEEK_OUTSIDE = "The ID is outside the stream"
_NOT_THERE = ("NOGROUP", "BUSYGROUP")


@dataclass(slots=True)
class Client:
    """One thread's connection, made again after every crash."""

    port: int
    up: threading.Event
    history: History = field(default_factory=History)
    reclaimed: set[str] = field(default_factory=set)
    _wire: Wire | None = None
    _lost: list[Fact] = field(default_factory=list)

    def run(self, turn: Callable[[], None], going: threading.Event) -> None:
        """Turn after turn, through every crash, until ``going`` is cleared."""
        while going.is_set():
            try:
                self.connect()
                while going.is_set():
                    turn()
            except Lost:
                self.history.reconnects += 1
            except RedisError as error:  # no reply in time, or none that makes sense
                self.history.errors.append(f"{type(error).__name__}: {error}")
                return
        self.close()

    def connect(self) -> None:
        """What was lost is over now: its server is gone. Raises Lost."""
        self.close()
        self.up.wait()
        self._wire = Wire(self.port)
        self.reclaimed.clear()
        self._wire.call("PING")
        for fact in self._lost:
            fact.ended_ns = time.monotonic_ns()
        self.history.facts += self._lost
        self._lost = []

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def ask(self, ask: Ask, *, may_not_be_there: bool = False) -> Any:
        """Ask and note; None where it was refused. Raises Lost."""
        assert self._wire is not None
        began_ns = time.monotonic_ns()
        try:
            reply = self._wire.call(*ask.words)
        except Refused as error:
            self._note(ask, "refused")
            text = str(error)
            if not (
                text.startswith(_SEEK_OUTSIDE)
                or (may_not_be_there and text.startswith(_NOT_THERE))
            ):
                self.history.errors.append(f"{ask.words}: {text}")
            return None
        except Lost:
            self._note(ask, "lost")
            for fact in ask.feared:
                fact.began_ns = began_ns
            self._lost += ask.feared
            raise
        ended_ns = time.monotonic_ns()
        self._note(ask, "answered")
        self._learn(ask.learn(reply), began_ns, ended_ns)
        return reply

    def _learn(self, facts: Iterable[Fact], began_ns: int, ended_ns: int) -> None:
        for fact in facts:
            fact.began_ns, fact.ended_ns = began_ns, ended_ns
            self.history.facts.append(fact)

    def _note(self, ask: Ask, how: str) -> None:
        self.history.answers[ask.verb, how] += 1
