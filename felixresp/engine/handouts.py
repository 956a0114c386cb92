"""Who holds what: consumers, members, and the hand-outs they were given."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .ids import EntryID

if TYPE_CHECKING:
    from .group import Group

DEFAULT_USER = b"default"


class Consumer:
    """A durable name, and the hand-outs that still have pending entries."""

    __slots__ = ("active_ms", "handouts", "members", "name", "number", "seen_ms")

    def __init__(self, number: int, name: bytes) -> None:
        self.number = number
        self.name = name
        self.seen_ms = 0
        self.active_ms = -1
        self.handouts: dict[HandOut, None] = {}
        self.members: dict[bytes, Member] = {}

    @property
    def pending(self) -> int:
        return sum(handout.live for handout in self.handouts)

    @property
    def is_connected(self) -> bool:
        return any(member.connections for member in self.members.values())

    def member(self, user: bytes) -> Member:
        member = self.members.get(user)
        if member is None:
            member = self.members[user] = Member(self, user)
        return member


class Attachment:
    """What one connection did as one member."""

    __slots__ = ("reclaimed", "reserved")

    def __init__(self) -> None:
        self.reclaimed = False  # its one RECLAIM is used up
        self.reserved: list[EntryID] = []  # descending; some may be settled


class Member:
    """A consumer name together with the user that uses it: who owns a claim."""

    __slots__ = ("connections", "consumer", "user")

    def __init__(self, consumer: Consumer, user: bytes) -> None:
        self.consumer = consumer
        self.user = user
        self.connections: dict[int, Attachment] = {}  # by client id

    def handouts(self) -> list[HandOut]:
        return [h for h in self.consumer.handouts if h.member is self]


class Attempt(NamedTuple):
    """One time an entry was held, and how that ended; times are unix ms."""

    consumer: bytes
    began_ms: int
    ended_ms: int
    how: bytes
    reason: bytes


class HandOut:
    """Entries given to one member at once: one shared claim.

    One object for the whole batch keeps a claim small; an entry whose claim
    changes gets a hand-out of its own.
    """

    __slots__ = (
        "began_ms",
        "charged",
        "chosen",
        "client_id",
        "consumer",
        "deadline_ms",
        "group",
        "handed_ms",
        "ids",
        "left",
        "live",
        "member",
        "nonce",
        "returns_ms",
    )

    def __init__(
        self,
        group: Group,
        member: Member | None,
        ids: list[EntryID],
        handed_ms: int,
        began_ms: int,
    ) -> None:
        self.group = group
        self.member = member  # None: nobody holds it (redriven, handed back)
        self.consumer = None if member is None else member.consumer
        self.ids = ids
        self.handed_ms = handed_ms  # when the idle time starts
        self.began_ms = began_ms  # when the attempt began
        self.live = len(ids)  # entries that still point here
        self.deadline_ms = 0
        self.client_id = 0  # the connection that got it
        self.charged = False  # a history read elsewhere has cost its attempt
        self.chosen = False  # the client chose the deadline
        self.nonce = 0  # of its receipts; 0: none was given
        self.left = False  # it ends so early because its member is gone
        self.returns_ms = 0  # the deadline to go back to when the member is back
        if self.consumer is not None:
            self.consumer.handouts[self] = None

    def let_go(self) -> None:
        """One entry does not point here any more."""
        self.live -= 1
        if not self.live:
            self.end()

    def end(self) -> None:
        """No entry points here any more."""
        if self.consumer is not None:
            self.consumer.handouts.pop(self, None)

    def part(self, ids: list[EntryID]) -> HandOut:
        """The same claim on some of its entries, to be changed by itself."""
        part = HandOut(self.group, self.member, ids, self.handed_ms, self.began_ms)
        part.client_id, part.charged = self.client_id, self.charged
        part.nonce, part.chosen = self.nonce, self.chosen
        part.deadline_ms = self.deadline_ms
        return part
