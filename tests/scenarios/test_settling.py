"""Settling: what acks, nacks and receipts do, early, late, twice."""

from __future__ import annotations

import random

import pytest

from felixresp.engine.settle import FAIL, FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World


def test_a_late_ack_after_redelivery_finishes_the_entry_once() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.lapse()
    assert world.poll(b"bob") == [1]

    assert world.ack(1) == 1  # alice's, late
    assert world.ack(1) == 0  # bob's
    world.lapse()
    assert world.poll(b"carol") == []


def test_an_ack_while_owed_finishes_the_entry() -> None:
    world = World(entries=1)
    world.poll()
    world.lapse()
    assert world.owed == [1]

    assert world.ack(1) == 1
    assert world.poll() == []
    assert world.cursor == 1


@pytest.mark.parametrize("delay_ms", [0, 500])
def test_an_ack_after_a_nack_finishes_the_entry(delay_ms: int) -> None:
    world = World(entries=1)
    world.poll()
    world.nack(1, delay_ms=delay_ms)

    assert world.ack(1) == 1
    world.run_to(VISIBILITY_MS)
    assert world.poll() == []
    assert world.cursor == 1


@pytest.mark.parametrize("mode", [SILENT, FAIL, FATAL])
def test_a_nack_after_an_ack_does_nothing(mode: bytes) -> None:
    world = World(entries=1)
    world.poll()
    receipt = world.receipt(1)
    world.ack(1)
    world.changes()

    assert world.nack(1, mode=mode) == world.nack(receipt, mode=mode) == 0
    assert world.changes() == []


def test_a_nack_owes_at_once_and_wakes_a_waiter() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    assert world.poll(b"waiter") == []
    world.changes()

    assert world.nack(1) == 1

    assert world.woken()
    assert world.poll(b"waiter") == [1]


def test_an_ack_or_nack_past_the_tail_changes_nothing_and_the_entry_still_comes() -> (
    None
):
    world = World(entries=1)
    world.poll()
    world.ack(1)
    world.changes()

    assert world.ack(2, 3) == 0
    assert world.nack(2, 3) == world.nack(2, mode=FATAL) == 0
    assert world.nack(2, force=True) == 0
    assert world.changes() == []
    world.append(2)
    assert world.poll() == [2]


def test_an_append_wakes_a_waiter() -> None:
    world = World()
    assert world.poll() == []
    world.changes()

    world.append(1)

    assert world.woken()
    assert world.poll() == [1]


def test_a_settle_of_a_written_but_never_handed_out_entry_changes_nothing() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.changes()

    assert world.ack(2) == 0
    assert world.nack(2) == world.nack(2, mode=FATAL) == 0
    assert world.changes() == []
    assert world.poll() == [2]


def test_after_a_crash_an_ack_up_to_the_tail_found_at_start_is_accepted() -> None:
    world = World(entries=2)
    world.changes()
    world.poll()  # lazy: lost in the crash
    world.crash(batches=1)
    world.append(3)

    assert world.ack(2, 3) == 1
    assert world.poll() == [1, 3]
    world.ack(1, 3)
    assert world.cursor == 3


def test_claims_from_before_a_restart_still_settle_in_any_order() -> None:
    world = World(entries=20)
    world.poll()
    world.crash()
    order = list(range(1, 21))
    random.Random(5).shuffle(order)

    for number in order:
        assert world.ack(number) == 1

    assert world.cursor == 20
    assert world.poll() == []


def test_a_receipt_from_before_a_redelivery_is_refused_by_ack_nack_and_extend() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    stale = world.receipt(1)
    world.lapse()
    world.poll(b"bob")
    world.changes()

    assert world.ack(stale) == world.extend(stale, 9000) == 0
    for mode in (SILENT, FAIL, FATAL):
        assert world.nack(stale, mode=mode) == 0

    assert world.changes() == []
    assert world.group.next_deadline() == 2 * VISIBILITY_MS
    assert world.ack(world.receipt(1)) == 1


def test_a_receipt_goes_stale_when_another_member_takes_the_claim() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    stale = world.receipt(1)

    world.claim(b"bob", 1)

    assert world.ack(stale) == 0


def test_a_receipt_from_before_a_crash_is_refused_and_a_plain_id_is_not() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    stale = world.receipt(1)

    world.crash()

    assert world.ack(stale) == 0
    assert world.ack(1) == 1


def test_a_forged_or_another_groups_receipt_is_refused() -> None:
    world = World(entries=2)
    other = world.keyspace.create_group(world.stream, b"others", 0, None)
    world.poll()
    world.poll(group=other)
    id_, nonce = world.receipt(1)
    foreign = id_, other.pending[id_].nonce
    world.changes()

    for receipt in (foreign, (id_, nonce + 1), (id_, 0), (9 << 64, nonce)):
        assert world.ack(receipt) == world.nack(receipt) == 0
        assert world.extend(receipt, 5000) == 0

    assert world.changes() == []


def test_the_nonce_0_of_a_claim_without_a_receipt_settles_nothing() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.claim(b"bob", 1)
    assert world.receipt(1) == (1 << 64, 0)

    assert world.ack(world.receipt(1)) == world.extend(world.receipt(1), 50) == 0
