"""Who holds what: consumers, and the hand-outs they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ids import EntryID

if TYPE_CHECKING:
    from .group import Group


class Consumer:
    """A durable name, and the hand-outs that still have pending entries."""

    __slots__ = ("active_ms", "handouts", "name", "number", "seen_ms")

    def __init__(self, number: int, name: bytes) -> None:
        self.number = number
        self.name = name
        self.seen_ms = 0
        self.active_ms = -1
        self.handouts: dict[HandOut, None] = {}

    @property
    def pending(self) -> int:
        return sum(handout.live for handout in self.handouts)


class HandOut:
    """Entries given to one consumer at once: one shared claim.

    One object for the whole batch keeps a claim small; an entry whose claim
    changes gets a hand-out of its own.
    """

    __slots__ = (
        "charged",
        "client_id",
        "consumer",
        "deadline_ms",
        "group",
        "handed_ms",
        "ids",
        "live",
    )

    def __init__(
        self,
        group: Group,
        consumer: Consumer | None,
        ids: list[EntryID],
        handed_ms: int,
    ) -> None:
        self.group = group
        self.consumer = consumer  # None: nobody holds it (redriven, removed)
        self.ids = ids
        self.handed_ms = handed_ms
        self.live = len(ids)  # entries that still point here
        self.deadline_ms = 0
        self.client_id = 0  # the connection that got it
        self.charged = False  # a history read elsewhere has cost its attempt
        if consumer is not None:
            consumer.handouts[self] = None

    def let_go(self) -> None:
        """One entry does not point here any more."""
        self.live -= 1
        if not self.live:
            self.end()

    def end(self) -> None:
        """No entry points here any more."""
        if self.consumer is not None:
            self.consumer.handouts.pop(self, None)
