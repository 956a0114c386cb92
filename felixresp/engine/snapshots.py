"""A consistent cut: what changed in a stream since the cut before.

A snapshot is plain data that later changes do not touch; the store writes it
in a thread. Puts are whole values, deletions name what may be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .changes import Tally
from .ids import EntryID
from .nodes import Node, encode_index

if TYPE_CHECKING:
    from .dead_letters import DeadLetter
    from .group import Group
    from .handouts import Attempt
    from .stream import Stream


@dataclass(slots=True)
class NodeSnapshot:
    """One node's records; ``payload`` and ``index`` are None where the stored
    ones are good: the node may have left memory since it changed."""

    node: Node
    first: EntryID
    last: EntryID
    count: int
    dead: int
    listpack_bytes: int
    index: bytes | None
    payload: bytes | None

    @classmethod
    def of(cls, node: Node) -> NodeSnapshot:
        if node.ids is not None and node.entries is not None:
            index: bytes | None = encode_index(node.ids, node.entries)
            payload: bytes | None = b"".join(node.entries)
        elif node.stored:
            index = payload = None
        else:
            index, payload = node.index, node.payload
        return cls(
            node,
            node.first,
            node.last,
            node.count,
            node.dead,
            node.listpack_bytes,
            index,
            payload,
        )


CLAIMED, OWED, DELAYED = 0, 1, 2


class Claim(NamedTuple):
    """Who holds an entry, or held it last; ``consumer`` is 0 for nobody."""

    consumer: int
    user: bytes
    handed_ms: int
    began_ms: int
    deadline_ms: int
    nonce: int


class PendingRecord(NamedTuple):
    """One pending entry; ``state`` is CLAIMED, OWED or DELAYED."""

    claim: Claim
    state: int
    until_ms: int  # of a delay
    tally: Tally
    story: Sequence[Attempt]


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group's record, and the small records that changed."""

    group: Group
    number: int
    name: bytes
    head: EntryID
    cursor: EntryID
    entries_read: int | None
    passed: int
    next_consumer: int
    own_settings: dict[str, str]
    paused: bool
    learned_visibility_ms: int
    ahead: Sequence[EntryID]  # finished above the head
    consumers: Sequence[tuple[int, bytes, int, int]]  # number, name, seen, active ms
    dropped_consumers: Sequence[int]
    pending: dict[EntryID, PendingRecord]
    dropped_pending: Sequence[EntryID]
    dead: dict[EntryID, DeadLetter]  # listed
    redriven: dict[EntryID, DeadLetter]  # off the list, kept until finished
    dropped_dead: Sequence[EntryID]
    stories: dict[EntryID, Sequence[Attempt]]  # of the listed


@dataclass(frozen=True, slots=True)
class StreamSnapshot:
    """A stream's record, its changed nodes and groups, and what went."""

    stream: Stream
    number: int
    db: int
    key: bytes
    expire_ms: int | None
    last_id: EntryID
    entries_added: int
    max_deleted_id: EntryID
    nodes: Sequence[NodeSnapshot]
    dropped_nodes: Sequence[Node]
    groups: Sequence[GroupSnapshot]
    dropped_groups: Sequence[int]
