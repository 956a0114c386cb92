"""The changes a verb yields: one list, read by everything that must know.

The journal records them, recovery applies them again, WATCH, waiters and
keyspace events look at them. A change names its target by object; the codec
writes the target's number. Every durable change is absolute: it carries the
ids, counts and times that the verb decided on, so that applying it reads
neither the clock nor a setting.

The class attributes are the change table:

``DURABLE``    written to the journal
``MUST_WAIT``  a reply that saw it waits for its commit (else it is lazy: it
               keeps its place and rides with the next commit)
``WAKES``      clients blocked on the target's key are served again
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from .ids import EntryID

if TYPE_CHECKING:
    from .dead_letters import DeadLetter
    from .group import Group
    from .handouts import Consumer
    from .keyspace import String, Value
    from .stream import Stream


class Tally(NamedTuple):
    """What one pending entry has been through."""

    attempts: int
    deliveries: int
    first_ms: int  # when it was first handed out


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
class Delivered:
    """New entries were handed out for the first time."""
    target: Group
    consumer: Consumer
    ids: list[EntryID]  # ascending, at least one
    head: EntryID
    entries_read: int | None
    passed: int
    now_ms: int
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
    WAKES: ClassVar[bool] = False


@dataclass(slots=True)
class Claimed:
    """Pending entries changed hands, or their counts changed."""
    target: Group
    consumer: Consumer
    tallies: dict[EntryID, Tally]
    handed_ms: int  # when their idle time starts
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
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
    """The head moved over entries that nobody has to settle (NOACK, holes)."""
    target: Group
    head: EntryID
    entries_read: int | None
    passed: int
    DURABLE: ClassVar[bool] = True
    MUST_WAIT: ClassVar[bool] = False
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
    """Claims ended at their deadline. After a crash every claim has."""
    target: Group
    ids: tuple[EntryID, ...]
    DURABLE: ClassVar[bool] = False
    MUST_WAIT: ClassVar[bool] = False
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
    | Forced
    | Passed
    | Finished
    | Died
    | Redriven
    | Discarded
    | Lapsed
    | Ready
)
