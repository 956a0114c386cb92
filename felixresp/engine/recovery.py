"""A group after a restart: which claims are over and which still stand.

After a crash every claim is over, unless the group writes its claims before
their replies. A clean stop wrote them all down. Deadlines on disk are wall
times: what is left of them is never more than a claim may last.
"""

from __future__ import annotations

from .changes import Lapsed
from .claims import extend_to
from .group import Group
from .handouts import HandOut
from .ids import EntryID


def resume_group(group: Group, now_ms: int, *, crashed: bool) -> None:
    """Start the clocks again; what was held by a lost claim is owed."""
    group.deadlines.clear()
    group.delays.clear()
    group.armed_ms = group.sweep_ms = None
    kept = group.durable_claims or not crashed
    if crashed and not kept:
        group.recovered_tail = group.stream.last_id
    held: dict[HandOut, list[EntryID]] = {}
    for id_, handout in group.pending.items():
        if group.is_claimed(id_):
            held.setdefault(handout, []).append(id_)
    restored = [h for h in held if kept and _may_stand(group, h, now_ms)]
    lost = [id_ for h in held.keys() - restored for id_ in held[h]]
    if lost:
        group.record(Lapsed(group, tuple(sorted(lost)), now_ms, b"restart"))
    if group.mode.leases:
        for handout in restored:
            _restore(group, handout, held[handout], now_ms)
    latest_ms = now_ms + group.visibility_max_ms
    for id_, until_ms in list(group.delayed.items()):
        group.delay(id_, min(until_ms, latest_ms))
    if group.consumers:
        expiry_ms = group.settings.group_consumer_expiry_ms
        group.stream.keyspace.sweep_at(group, now_ms + expiry_ms)


def _may_stand(group: Group, handout: HandOut, now_ms: int) -> bool:
    """Its time is not over, or nobody could tell it that it was."""
    if handout.member is None:
        return False
    follows = group.settings.group_claims_follow == "connection"
    return not group.mode.leases or follows or handout.deadline_ms > now_ms


def _restore(group: Group, handout: HandOut, ids: list[EntryID], now_ms: int) -> None:
    deadline_ms = min(handout.deadline_ms, now_ms + group.visibility_max_ms)
    if group.settings.group_claims_follow == "connection":
        deadline_ms = now_ms + group.visibility_ms  # time to come back
    # more time than the group gives is what the client asked for
    chosen = deadline_ms > now_ms + group.visibility_ms
    for restored in extend_to(group, tuple(ids), handout.handed_ms, deadline_ms):
        restored.chosen = chosen
