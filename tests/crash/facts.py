"""What the clients of a crashing server noted, one fact for each thing learned.

All of them bear one clock. A fact that is not ``sure`` belongs to a command whose
answer was lost: it happened at some moment of its span, or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

Id = tuple[int, int]


class Kind(Enum):
    HANDED = auto()  # a poll handed it out; ms: its visibility, amount: attempts
    TAKEN = auto()  # XCLAIM, XAUTOCLAIM or RECLAIM handed it out
    SHOWN = auto()  # a reply says that it is pending
    FINISHED = auto()  # acked, discarded, or read with NOACK
    BACK = auto()  # nacked; ms: the delay
    EXTENDED = auto()  # ms: from now
    DEAD = auto()  # FATAL, or seen on the list; amount: attempts
    LISTED = auto()  # ids: the whole list of dead letters
    REDRIVEN = auto()
    FORCED = auto()  # by FORCE, whatever it was before
    REMOVED = auto()  # a consumer
    SOUGHT = auto()  # SEEK, SETID, LASTID
    DESTROYED = auto()
    CURSOR = auto()  # id: where DESCRIBE says it stands
    REFUSED = auto()  # a receipt that stood for no claim
    DELETED = auto()  # of a stream
    TRIMMED = auto()  # of a stream: what is below id
    CRASHED = auto()  # SIGKILL, of every group


@dataclass(slots=True)
class Fact:
    """``group`` is "stream group", or the stream; ``id`` None: any entry of it.

    Of a fact that is not about one entry, ``amount`` says how many it may have met.
    """

    kind: Kind
    group: str
    id: Id | None = None
    began_ns: int = 0
    ended_ns: int = 0
    sure: bool = True
    amount: int = 0
    ms: int = 0
    payload: bytes = b""  # empty: the reply had none
    receipt: bytes = b""
    ids: frozenset[Id] = frozenset()


@dataclass(slots=True)
class History:
    """Every thread writes its own; they are merged when all have ended."""

    sent: dict[bytes, int] = field(default_factory=dict)  # payload: when, in ns
    added: dict[tuple[str, Id], bytes] = field(default_factory=dict)  # answered
    facts: list[Fact] = field(default_factory=list)
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    reconnects: int = 0
    drift_ns: int = 0  # the system's clock against that of the notes

    def merge(self, other: History) -> None:
        self.sent |= other.sent
        self.added |= other.added
        self.facts += other.facts
        self.answers += other.answers
        self.errors += other.errors
        self.reconnects += other.reconnects
        self.drift_ns = max(self.drift_ns, other.drift_ns)


@dataclass(frozen=True, slots=True)
class Rules:
    """What one group promises, by the way it is used."""

    attempts_max: int = 0  # 0: not judged
    claims_stand: bool = False  # a claim is not given to others before its time
    durable_claims: bool = False  # not after a crash either
    once: bool = False  # mode redis: ``>`` hands out new entries only


@dataclass(frozen=True, slots=True)
class GroupEnd:
    """A group after it was drained and the server was killed once more."""

    dead: frozenset[Id]
    pending: int = 0
    lag: int = 0
    returned: tuple[Id, ...] = ()  # what one more poll got


@dataclass(frozen=True, slots=True)
class End:
    entries: Mapping[str, Mapping[Id, bytes]]  # by stream
    groups: Mapping[str, GroupEnd]


def entry_id(text: bytes) -> Id:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)


def shown(id_: Id) -> str:
    return f"{id_[0]}-{id_[1]}"
