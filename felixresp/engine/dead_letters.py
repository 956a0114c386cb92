"""Dead letters: pointers to entries that a group gave up on.

A listed letter is finished for the group; the entry stays in the stream. A
redriven one is off the list and owed, and its record is kept until the entry
is finished or dies again, so that a crash in between loses neither.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .changes import Discarded, Redriven
from .cold import need
from .ids import EntryID

if TYPE_CHECKING:
    from .group import Group


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why an entry is dead; times are unix ms."""

    id: EntryID
    attempts: int
    cause: bytes  # b"attempts" or b"consumer"
    reason: bytes
    consumer: bytes  # the last one that held it
    first_delivered_ms: int
    dead_ms: int
    redriven: int  # how often it was put back before


class DeadLetters:
    """The letters of one group: listed ones in ID order, and redriven ones."""

    __slots__ = ("_order", "listed", "redriven")

    def __init__(self) -> None:
        self.listed: dict[EntryID, DeadLetter] = {}
        self.redriven: dict[EntryID, DeadLetter] = {}
        self._order: list[EntryID] = []

    def add(self, letter: DeadLetter) -> None:
        self.redriven.pop(letter.id, None)
        if letter.id not in self.listed:
            insort(self._order, letter.id)
        self.listed[letter.id] = letter

    def remove(self, id_: EntryID) -> DeadLetter | None:
        letter = self.listed.pop(id_, None)
        if letter is not None:
            del self._order[bisect_left(self._order, id_)]
        return letter

    def redrive(self, id_: EntryID) -> None:
        letter = self.remove(id_)
        if letter is not None:
            self.redriven[id_] = letter

    def between(self, start: EntryID, end: EntryID) -> Iterator[DeadLetter]:
        """Listed letters with start <= ID <= end, in ID order."""
        order = self._order
        for at in range(bisect_left(order, start), len(order)):
            if order[at] > end:
                return
            yield self.listed[order[at]]

    def ids(self) -> list[EntryID]:
        return list(self._order)


def redrive(group: Group, ids: Iterable[EntryID]) -> int:
    """Put listed letters back whose entry is present; returns how many."""
    listed = group.dead_letters.listed
    known = [id_ for id_ in dict.fromkeys(ids) if id_ in listed]
    need(group.stream, known)
    wanted = tuple(id_ for id_ in known if group.stream.contains(id_))
    if wanted:
        group.record(Redriven(group, wanted))
    return len(wanted)


def discard(group: Group, ids: Iterable[EntryID]) -> int:
    """Take letters off the list for good; returns how many."""
    listed = group.dead_letters.listed
    wanted = tuple(id_ for id_ in dict.fromkeys(ids) if id_ in listed)
    if wanted:
        group.record(Discarded(group, wanted))
    return len(wanted)
