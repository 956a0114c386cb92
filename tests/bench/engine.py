"""The group engine alone: what a poll of ten and their ack cost, and a claim weighs."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator

from felixresp.config import Settings
from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.members import member_named
from felixresp.engine.poll import poll
from felixresp.engine.settle import ack

COUNT = 10
ROUNDS = 7
POLLS = 2000  # a round
BATCH = 100  # polls between two acks of as many: what is in flight stays the same
IN_FLIGHT = (1000, 10_000)
VALUE = b"x" * 100


def measure(entries: int = 1_000_000, groups: int = 1000) -> Iterator[str]:
    """Lines to print, as they become known."""
    keyspace = Keyspace(Settings(group_max_in_flight=100_000, cache_max_bytes=2**40))
    stream = keyspace.create_stream(0, b"jobs")
    for number in range(1, entries + 1):
        stream.append(number << 64, [b"job", VALUE])
        keyspace.take()
    all_groups = [
        keyspace.create_group(stream, b"group-%d" % number, 0, None)
        for number in range(groups)
    ]
    keyspace.take()
    gc.collect()
    gc.freeze()
    yield f"{entries} entries, {groups} groups, poll({COUNT}) + ack({COUNT})"
    busy = dict(zip(IN_FLIGHT, all_groups, strict=False))
    weights = {size: _fill(group, size) for size, group in busy.items()}
    for other in all_groups[len(IN_FLIGHT) :]:
        _poll(other, COUNT)  # every group has something under way
    rounds: dict[int, list[float]] = {size: [] for size in IN_FLIGHT}
    for _ in range(ROUNDS):  # in turns: the machine may be faster now than then
        for size, group in busy.items():
            rounds[size].append(_round(group))
    costs = {size: statistics.median(found) for size, found in rounds.items()}
    for size, found in rounds.items():
        yield (
            f"{size} in flight: {costs[size]:.2f} us an entry"
            f" ({min(found):.2f} to {max(found):.2f}),"
            f" {weights[size]:.0f} bytes a claim"
        )
    few, many = IN_FLIGHT
    yield f"from {few} to {many} in flight: {costs[many] / costs[few]:.2f}"


def _fill(group: Group, in_flight: int) -> float:
    """Bytes that one claim takes: hand-out, indexes, nonce."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    while group.in_flight < in_flight:
        _poll(group, COUNT, with_receipts=True)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / in_flight


def _poll(group: Group, count: int, *, with_receipts: bool = False) -> list[int]:
    keyspace = group.stream.keyspace
    member = member_named(group, b"worker", 1)
    polled = poll(group, member, 1, count=count, with_receipts=with_receipts)
    keyspace.take()
    keyspace.handed.clear()
    return list(polled.ids)


def _round(group: Group) -> float:
    """Microseconds of CPU for an entry's poll and ack."""
    keyspace = group.stream.keyspace
    began = time.process_time()
    for _ in range(POLLS // BATCH):
        handed = [_poll(group, COUNT) for _ in range(BATCH)]
        for ids in handed:
            ack(group, ids)
            keyspace.take()
    spent = time.process_time() - began
    return spent / (POLLS * COUNT) * 1e6
