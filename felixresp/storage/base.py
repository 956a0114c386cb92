"""The storage interface: what the server needs of any store.

The unit of ownership is a partition; every batch names its partition and the
epoch under which the writer owns it. Changes inside a batch are absolute and
replayable. ``submit`` may finish inside the call (journal), later (PostgreSQL,
the memory store's deferred mode), or never (``Unknown``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..engine.changes import Change
from ..engine.group import Group
from ..engine.keyspace import Keyspace
from ..engine.nodes import Node
from ..engine.stream import Stream


class StoreError(Exception):
    """The store cannot be opened or used; the text says what to do."""


class Corrupt(StoreError):
    """A record that is not a torn tail is damaged; names file and offset."""


class Unreadable(Corrupt):
    """A node's payload is damaged, or not there."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


class Locked(StoreError):
    """Another process owns the directory; names its pid where known."""


class Batch(NamedTuple):
    """Durable changes of one partition, in order, ending on a command boundary."""

    partition: int
    epoch: int
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What opening a store found, for the start line."""

    streams: int = 0
    groups: int = 0
    entries: int = 0
    changes_replayed: int = 0
    clean: bool = True  # the last stop was a clean one
    torn_bytes: int = 0  # cut off the journal's end


@dataclass(slots=True)
class Failure:
    """Partitions whose batches did not become durable, or may not have."""

    partitions: Sequence[int]
    unknown: bool  # False: fenced, nothing was written


class Store(Protocol):
    """See the module docstring. Every call is made on the server's one thread."""

    partitions: int  # how many the keys are spread over; 1 for one machine
    atomic: bool  # one submit is all or nothing over several partitions
    on_durable: Callable[[int], None]  # every seq up to this one is durable
    on_failure: Callable[[Failure], None]

    def open(self, keyspace: Keyspace) -> Recovered:
        """Lock the store and bring ``keyspace`` to its last durable state.

        Raises Locked, Corrupt or StoreError.
        """
        ...

    def acquire(self, partition: int) -> int:
        """Own the partition; returns the epoch."""
        ...

    def submit(self, batches: Sequence[Batch]) -> int:
        """Make the batches durable; returns their sequence number (1, 2, ...).

        An I/O error that leaves the journal in doubt raises OSError: the
        process must end without sending a reply.
        """
        ...

    def read(self, stream: Stream, nodes: Iterable[Node]) -> None:
        """Fill in the payload and index of nodes that are not in memory.

        Raises Unreadable for the first that is damaged; those before it are in.
        """
        ...

    def evict_groups(self, now_ms: int) -> None:
        """Let groups that nobody uses leave memory, where they can come back."""
        ...

    def read_groups(self, groups: Iterable[Group]) -> None:
        """Bring back groups that left memory. Raises StoreError."""
        ...

    def writable(self) -> bool:
        """False when space runs out: commands that need memory answer MISCONF."""
        ...

    def trouble(self) -> str:
        """For the log, why it is not writable; empty when it is."""
        ...

    def tick(self, now_ms: int, *, settled: bool = False) -> int | None:
        """Do background work (checkpoint slices); ms until the next call is due,
        0 for as soon as the loop is free, None when there is nothing to do.

        ``settled`` says that every change of the engine was submitted: only then,
        or in ``submit``, may a checkpoint start. A batch must hold all of them.
        """
        ...

    def close(self) -> None:
        """A clean stop: everything durable, the lock given back."""
        ...


@dataclass(slots=True)
class Statistics:
    """Counters for INFO."""

    commits: int = 0
    bytes_written: int = 0
    checkpoints: int = 0
    checkpoint_failures: int = 0
    segments_late: int = 0  # a segment was not ready, so the file grew
    extra: dict[str, int] = field(default_factory=dict)
