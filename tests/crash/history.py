"""What the clients of a crashing server saw, and what must hold of it.

Only the clients' own notes count, and one clock for all of them. A command whose
reply was lost proves nothing: it may or may not have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Poll:
    started_ns: int
    ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """``answer`` is None when the reply was lost."""

    entry_id: bytes
    returned_ns: int
    answer: int | None


@dataclass(slots=True)
class History:
    """Every thread writes its own; they are merged when all have ended."""

    sent: set[bytes] = field(default_factory=set)  # payloads, each of them unique
    added: dict[bytes, bytes] = field(default_factory=dict)  # answered id: payload
    polls: list[Poll] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    reconnects: int = 0

    def merge(self, other: History) -> None:
        self.sent |= other.sent
        self.added |= other.added
        self.polls += other.polls
        self.acks += other.acks
        self.errors += other.errors
        self.reconnects += other.reconnects


@dataclass(frozen=True, slots=True)
class Final:
    """The server after the last entry was drained and it was killed once more."""

    entries: Mapping[bytes, bytes]  # id: payload
    last_id: bytes
    last_delivered_id: bytes
    lag: int | None
    pending: int
    returned: tuple[bytes, ...]  # what one more poll got


def violations(history: History, final: Final) -> Iterator[str]:
    """One line for each promise that was broken."""
    yield from history.errors
    yield from _lost(history, final)
    yield from _returned(history.polls, history.acks)
    yield from _finished_twice(history.acks)
    yield from _skipped(history, final)
    if final.pending:
        yield f"{final.pending} entries are still pending"
    if final.last_delivered_id != final.last_id:
        yield (
            f"the group stands at {final.last_delivered_id.decode()},"
            f" the stream ends at {final.last_id.decode()}"
        )
    if final.lag != 0:
        yield f"the lag is {final.lag}"
    for entry_id in final.returned:
        yield f"{entry_id.decode()} came again after the last restart"


def _lost(history: History, final: Final) -> Iterator[str]:
    for entry_id, payload in history.added.items():
        if final.entries.get(entry_id) != payload:
            yield f"{entry_id.decode()}: its XADD was answered and it is gone"
    copies = Counter(final.entries.values())
    for payload, count in copies.items():
        if payload not in history.sent:
            yield f"{payload.decode()} is there and nobody sent it"
        elif count > 1:
            yield f"{payload.decode()} is there {count} times"


def _returned(polls: Iterable[Poll], acks: Iterable[Ack]) -> Iterator[str]:
    """An answer of 0 also means finished: only what was received is ever acked."""
    finished_ns: dict[bytes, int] = {}
    for ack in acks:
        if ack.answer is not None:
            known = finished_ns.get(ack.entry_id, ack.returned_ns)
            finished_ns[ack.entry_id] = min(known, ack.returned_ns)
    for poll in polls:
        for entry_id in poll.ids:
            if finished_ns.get(entry_id, poll.started_ns) < poll.started_ns:
                yield f"{entry_id.decode()} was handed out after its ack was answered"


def _finished_twice(acks: Iterable[Ack]) -> Iterator[str]:
    finished = Counter(ack.entry_id for ack in acks if ack.answer == 1)
    for entry_id, count in finished.items():
        if count > 1:
            yield f"{entry_id.decode()} was acked {count} times, each answered with 1"


def _skipped(history: History, final: Final) -> Iterator[str]:
    """With nothing pending, an entry that nobody acked was lost by the group."""
    acked = {ack.entry_id for ack in history.acks}
    for entry_id in final.entries:
        if entry_id not in acked:
            yield f"{entry_id.decode()} is finished and nobody ever acked it"
