"""The changes a verb yields: one list, read by everything that must know.

The journal records them, recovery applies them again, WATCH, waiters and
keyspace events look at them. A change names its target by object; the codec
writes the target's number. Every durable change is absolute: it carries the
ids, counts and times that the verb decided on, so that applying it reads
neither the clock nor a setting.

The class attributes are the change table:

``DURABLE``    written to the journal
``MUST_WAIT``  a reply that saw it waits for its commit (else it is lazy: it
               keeps its place and rides with the next commit). Deliveries leave
               it to the group: ``DurableDeliveries``
``WAKES``      clients blocked on the target's key are served again
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from .ids import EntryID

if TYPE_CHECKING:
    from .dead_letters import DeadLetter
    from .group import Group
    from .handouts import Consumer, Member
    from .stream import Stream
    from .values import String, Value


COUNT_MAX = 2**63 - 1  # what a client may set a count to


class Tally(NamedTuple):
    """What one pending entry has been through."""

    attempts: int
    deliveries: int
    first_ms: int  # when it was first handed out

    def again(self, now_ms: int, *, attempts: int = 1, deliveries: int = 1) -> Tally:
        """After another hand-out. No count passes what a reply can say."""
        return Tally(
            min(self.attempts + attempts, COUNT_MAX),
            min(self.deliveries + deliveries, COUNT_MAX),
            self.first_ms or now_ms,
        )

    def undone(self) -> Tally:
        """As if the last hand-out had not been."""
        return Tally(
            max(self.attempts - 1, 0), max(self.deliveries - 1, 0), self.first_ms
        )


class DurableDeliveries:
    """Lazy, but in a group whose claims are durable: its replies wait for them."""

    __slots__ = ()
    target: Group

    @property
    def MUST_WAIT(self) -> bool:  # noqa: N802 - a column of the change table
        return self.target.durable_claims


# fmt: off
@dataclass(slots=True)
class Created:
    """A stream or string came into being; a rename may follow at once."""
    target: Value
    db: int
    key: bytes
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Dropped:
    """The key is gone: DEL, FLUSH, expiry, or overwritten."""
    target: Value
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Renamed:
    """The value lives under another key (of another database) now."""
    target: Value
    old_db: int
    old_key: bytes
    db: int
    key: bytes
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True  # under both names


@dataclass(slots=True)
class ExpirySet:
    target: Value
    expire_ms: int | None  # wall clock; None: no expiry
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class StringSet:
    target: String
    data: bytes
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Appended:
    target: Stream
    id: EntryID
    entry: bytes  # raw RESP
    size: int  # bytes it would take in Redis's listpack node
    opens: bool  # it is the first of a new node
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Deleted:
    """XDEL: these entries, all of them present, are gone."""
    target: Stream
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Trimmed:
    """Every entry below ``before`` is gone."""
    target: Stream
    before: EntryID
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Lost:
    """The node that starts at ``first`` cannot be read: its entries are gone."""
    target: Stream
    first: EntryID
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class StreamSet:
    """XSETID."""
    target: Stream
    last_id: EntryID
    entries_added: int
    max_deleted_id: EntryID
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class GroupCreated:
    """Head and counts as they were then: more may change in the same batch."""
    target: Group
    head: EntryID
    entries_read: int | None
    passed: int  # live entries at or below the head
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class GroupDestroyed:
    target: Group
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class GroupMoved:
    """XGROUP SETID, XCLAIM LASTID: the head stands at ``head`` now."""
    target: Group
    head: EntryID
    entries_read: int | None
    passed: int  # live entries at or below the head
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class ConsumerCreated:
    target: Group
    consumer: Consumer
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class ConsumerDeleted:
    """The consumer is gone; what it held is owed, and held by nobody."""
    target: Group
    consumer: Consumer
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Delivered(DurableDeliveries):
    """New entries were handed out for the first time."""
    target: Group
    member: Member
    ids: list[EntryID]  # ascending, at least one
    head: EntryID
    entries_read: int | None
    passed: int
    now_ms: int
    deadline_ms: int  # 0: none
    nonce: int = 0  # 0: no receipt was given
    DURABLE: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Claimed(DurableDeliveries):
    """Pending entries changed hands, or their counts changed."""
    target: Group
    member: Member
    tallies: dict[EntryID, Tally]
    handed_ms: int  # when their idle time starts
    began_ms: int  # when the attempt began; a heartbeat goes on with the old one
    deadline_ms: int  # 0: none
    nonce: int = 0
    how: bytes = b""  # how a claim that still stood ended; empty: it goes on
    DURABLE: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Extended(DurableDeliveries):
    """These claims stand until another deadline."""
    target: Group
    ids: tuple[EntryID, ...]
    handed_ms: int  # when their idle time starts
    deadline_ms: int
    DURABLE: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Forced:
    """XCLAIM FORCE put these entries back in play, held by nobody yet."""
    target: Group
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Passed:
    """The head moved over entries that nobody has to settle (NOACK, holes): they are
    finished, and the cursor moves with it."""
    target: Group
    head: EntryID
    entries_read: int | None
    passed: int
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Finished:
    """These entries are done: acked, skipped, or read with NOACK."""
    target: Group
    ids: list[EntryID]
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Died:
    """The group gave up on these entries: finished, and on the list."""
    target: Group
    letters: tuple[DeadLetter, ...]
    how: bytes  # how a claim that still stood ended
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Redriven:
    """Dead letters are owed again, with no attempts, and off the list."""
    target: Group
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Discarded:
    """Dead letters are off the list for good."""
    target: Group
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True  # room on a full list


@dataclass(slots=True)
class Lapsed:
    """Claims ended by themselves: owed, and shown under their last holder."""
    target: Group
    ids: tuple[EntryID, ...]
    now_ms: int
    how: bytes  # empty: the reply never left, there was no attempt
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class HandedBack:
    """Claims were given back: held by nobody, owed at once or after a delay."""
    target: Group
    untils: dict[EntryID, int]  # when the delay is over; 0: owed now
    tallies: dict[EntryID, Tally]  # of those whose counts changed
    now_ms: int
    how: bytes
    reason: bytes
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Due:
    """Delays are over: the entries are owed. On disk their times say so."""
    target: Group
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = False
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Sought:
    """XGROUP SEEK: every claim, delay and count is void; it starts at ``head``."""
    target: Group
    head: EntryID
    entries_read: int | None
    passed: int
    now_ms: int
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Configured:
    """The group's own settings, and whether it is paused: all of them."""
    target: Group
    own: dict[str, str]  # setting, without "group-" -> value
    paused: bool
    learned_visibility_ms: int
    deadline_ms: int  # of the claims, where it becomes a leasing group
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = True
    WAKES: ClassVar[bool] = True


@dataclass(slots=True)
class Ready:
    """Room appeared under a cap that had turned a poll away."""
    target: Group
    DURABLE: ClassVar[bool] = False
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = True
# fmt: on


Change = (
    Created
    | Dropped
    | Renamed
    | ExpirySet
    | StringSet
    | Appended
    | Deleted
    | Trimmed
    | Lost
    | StreamSet
    | GroupCreated
    | GroupDestroyed
    | GroupMoved
    | ConsumerCreated
    | ConsumerDeleted
    | Delivered
    | Claimed
    | Extended
    | Forced
    | Passed
    | Finished
    | Died
    | Redriven
    | Discarded
    | Lapsed
    | HandedBack
    | Due
    | Sought
    | Configured
    | Ready
)
