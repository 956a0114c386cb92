"""Who asks what of a group, and what the answer lets them know.

An ask says before it is sent what may have happened if its answer is lost.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.crash.facts import Fact, Id, Kind, Rules, entry_id

CONSUMERS = 6
_HELD_MAX = 400
Word = bytes | str | int


@dataclass(frozen=True, slots=True)
class Held:
    """What a worker got, for whoever settles it."""

    id: bytes
    receipt: bytes
    consumer: str


@dataclass(frozen=True, slots=True)
class Use:
    """One group: how it is set up, and how often each verb is used on it."""

    stream: str
    name: str
    verbs: Mapping[str, float]
    rules: Rules = field(default_factory=Rules)
    settings: Sequence[Word] = ()
    visibility_ms: int = 400
    backoff_ms: int = 0
    leases: bool = True
    forces: bool = False  # also FORCE, RETRYCOUNT, LASTID
    all_letters: bool = False  # also XDLQ REDRIVE ALL and DISCARD ALL
    comes_and_goes: bool = False  # it may not be there

    @property
    def label(self) -> str:
        return f"{self.stream} {self.name}"


class Shared:
    """What the workers of one group tell each other."""

    def __init__(self, known: deque[bytes]) -> None:
        self.known = known  # entries of the stream
        self.letters: deque[bytes] = deque(maxlen=_HELD_MAX)
        self.backlog = 0
        self._held: deque[Held] = deque(maxlen=_HELD_MAX)
        self._lock = threading.Lock()

    def put(self, held: Iterable[Held]) -> None:
        with self._lock:
            self._held.extend(held)

    def take(self, dice: random.Random, most: int, *, keep: bool) -> list[Held]:
        """Some of what is held, each entry once."""
        with self._lock:
            found: dict[bytes, Held] = {}
            for _ in range(min(most, len(self._held))):
                self._held.rotate(dice.randrange(len(self._held)))
                held = self._held[-1] if keep else self._held.pop()
                found[held.id] = held
            return list(found.values())


@dataclass(slots=True)
class Turn:
    """Who asks, about which group."""

    use: Use
    shared: Shared
    dice: random.Random
    consumer: str
    reclaimed: set[str]  # groups in which this connection reclaims

    def fact(self, kind: Kind, id_: bytes | None = None, **more: Any) -> Fact:
        return Fact(kind, self.use.label, entry_id(id_) if id_ else None, **more)

    def unsure(self, kind: Kind, *ids: bytes, **more: Any) -> list[Fact]:
        return [self.fact(kind, id_, sure=False, **more) for id_ in ids]

    def applied(
        self, kind: Kind, ids: Sequence[bytes], count: int, **more: Any
    ) -> list[Fact]:
        """The answer says to how many it applied, not to which."""
        sure = count == len(ids)
        return [self.fact(kind, i, sure=sure, **more) for i in ids] if count else []

    def held(self, most: int, *, keep: bool = False) -> list[Held]:
        return self.shared.take(self.dice, most, keep=keep)

    def maybe(self, chance: float) -> bool:
        return self.dice.random() < chance


@dataclass(frozen=True, slots=True)
class Ask:
    verb: str
    words: Sequence[Word]
    learn: Callable[[Any], Iterable[Fact]]  # from an answer
    feared: Sequence[Fact] = ()  # what may have happened when the answer is lost


Verb = Callable[[Turn], Ask | None]


def nothing(_reply: Any) -> Iterable[Fact]:
    return ()


def ids_of(reply: Iterable[bytes]) -> frozenset[Id]:
    return frozenset(map(entry_id, reply))
