"""What the model counts with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

CLAIMED, DELAYED, OWED = "claimed", "delayed", "owed"
LEASE, REDIS = "lease", "redis"
NEVER = 2**63 - 1  # the deliveries that Redis shows after FATAL
GROUPS = (b"workers", b"others")
DEFAULT, OPS = b"default", b"ops"  # users

Member = tuple[bytes, bytes]  # consumer, user


class Attempt(NamedTuple):
    consumer: bytes
    began_ms: int
    ended_ms: int
    how: bytes
    reason: bytes


@dataclass
class Ask:
    """Who asks for what, when. Each verb reads the fields that it has."""

    consumer: bytes
    now_ms: int
    user: bytes = DEFAULT
    client: int = 0
    count: int = 1
    bytes_max: int = 2**63
    # polls
    no_ack: bool = False
    receipts: bool = False  # XPOLL
    visibility_ms: int | None = None
    reclaim: bool = False
    # claims
    min_idle_ms: int = 0
    idle_ms: int = 0
    retry_count: int | None = None
    force: bool = False
    just_id: bool = False
    last_id: int = 0

    @property
    def member(self) -> Member:
        return self.consumer, self.user


@dataclass
class Nacked:
    """What an XNACK asks for."""

    mode: bytes
    delay_ms: int | None = None
    reason: bytes = b""
    retry_count: int | None = None
    force: bool = False
    member: Member | None = None  # CONSUMER


@dataclass
class Pending:
    """One entry that was handed out and not settled, or was put back."""

    state: str = OWED
    member: Member | None = None  # who holds it, or held it last
    handed_ms: int = 0
    began_ms: int = 0
    deadline_ms: int = 0  # 0: none
    until_ms: int = 0  # of a delay
    client: int = 0
    charged: bool = False  # a history read on another connection has cost its attempt
    chosen: bool = False  # the client chose the deadline
    nonce: int = 0
    handout: int = 0  # entries with the same number share a claim
    returns_ms: int = 0  # its member left; the deadline to go back to
    reserved_for: int = 0
    attempts: int = 0
    deliveries: int = 0
    first_ms: int = 0
    story: list[Attempt] = field(default_factory=list)

    @property
    def consumer(self) -> bytes:
        return self.member[0] if self.member else b""

    @property
    def reason(self) -> bytes:
        """Why it was last handed back; empty where nobody said."""
        return next((a.reason for a in self.story[::-1] if a.reason), b"")

    @property
    def last_consumer(self) -> bytes:
        """Who holds it, or who held it last."""
        told = (a.consumer for a in self.story[::-1] if a.consumer)
        return self.consumer or next(told, b"")

    def count(self, attempts: int, deliveries: int) -> None:
        self.attempts += attempts
        self.deliveries = min(self.deliveries + deliveries, NEVER)

    def tell(self, now_ms: int, how: bytes, reason: bytes = b"") -> None:
        """How the attempt ended, if there was one."""
        if self.state == CLAIMED:
            told = self.consumer, self.began_ms, now_ms, how, reason
            self.story.append(Attempt(*told))
            del self.story[:-16]

    def owe(self) -> None:
        self.state, self.reserved_for, self.until_ms = OWED, 0, 0

    def let_go(self, until_ms: int = 0) -> None:
        """Nobody's; owed, or delayed until then."""
        self.owe()
        self.member, self.handed_ms, self.began_ms, self.nonce = None, 0, 0, 0
        self.deadline_ms = self.handout = self.returns_ms = 0
        if until_ms:
            self.state, self.until_ms = DELAYED, until_ms


@dataclass
class Letter:
    """A dead letter."""

    attempts: int
    cause: bytes
    reason: bytes
    consumer: bytes
    first_ms: int
    dead_ms: int
    redriven: int
    story: list[Attempt]
