"""Groups that nobody uses leave memory; the first touch brings them back.

An evicted group keeps what other keys' commands change (head, counts, what is
finished above the head); its consumers, pending entries and dead letters are in
the store. Only a group whose every change is stored may go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cuts import Cut
from .dead_letters import DeadLetters
from .group import Group

if TYPE_CHECKING:
    from .stream import Stream

_IDLE_MS_MIN = 600_000


def evict_idle(stream: Stream, now_ms: int) -> int:
    """Look at the stream's groups; returns how many went.

    A group that was used since the last look is idle from now on at the earliest.
    """
    gone = 0
    for group in stream.groups.values():
        if group.used:
            group.used, group.idle_since_ms = False, now_ms
        elif _may_go(group, now_ms):
            _evict(group)
            gone += 1
    return gone


def is_idle(group: Group) -> bool:
    """Nothing of it is on its way: no claim, no delay, nobody who might wait."""
    return not group.in_flight and not any(
        consumer.is_connected for consumer in group.consumers.values()
    )


def _may_go(group: Group, now_ms: int) -> bool:
    idle_ms = max(_IDLE_MS_MIN, 2 * group.visibility_ms)
    return (
        group.resident
        and not group.changed
        and now_ms >= group.idle_since_ms + idle_ms
        and is_idle(group)
    )


def _evict(group: Group) -> None:
    group.resident = False
    group.consumers = {}
    group.pending, group.tallies, group.stories = {}, {}, {}
    group.dead_letters = DeadLetters()
    group.skips = {}
    group.disown(set(group.owed))
    group.deadlines, group.delays = [], []
    group.cut = Cut(set())
    group.reorder()
