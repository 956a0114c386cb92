"""Commits that finish later, out of step, or not at all."""

from __future__ import annotations

import pytest

from felixresp.engine.keyspace import Keyspace
from felixresp.storage.base import Batch, Failure
from felixresp.storage.memory import Deferred, MemoryStore
from tests.storage.house import MemoryHouse, small


@pytest.fixture
def house() -> MemoryHouse:
    house = MemoryHouse(small(), Deferred())
    house.open()
    return house


def test_a_deferred_commit_finishes_when_it_is_told_to(house: MemoryHouse) -> None:
    house.append()
    house.commit()
    house.append()
    house.commit()

    house.store.finish()

    assert house.durable == [1]


def test_a_commit_that_did_not_finish_is_lost(house: MemoryHouse) -> None:
    house.append(1)
    house.commit()
    house.append(1)
    house.commit()
    house.store.finish()

    found = house.crash()

    assert found.entries == 1


def test_a_late_commit_finishes_after_its_ticks() -> None:
    house = MemoryHouse(small(), Deferred(ticks=2))
    house.open()
    house.append()
    house.commit()

    early = house.tick(), list(house.durable)
    late = house.tick(), list(house.durable)

    assert early == (1, [])
    assert late == (None, [1])


def test_a_fenced_batch_is_not_kept(house: MemoryHouse) -> None:
    house.append()
    house.commit()

    house.store.fence(0)

    assert house.failures == [([0], False)]
    assert house.crash().entries == 0


@pytest.mark.parametrize("kept", [True, False])
def test_a_batch_in_doubt_may_have_been_kept(house: MemoryHouse, kept: bool) -> None:
    house.append()
    house.commit()
    house.store.make_unknown(0, kept=kept)

    house.store.finish()

    assert house.failures == [([0], True)]
    assert house.durable == []
    assert house.crash().entries == kept


def test_partitions_finish_out_of_step_and_numbers_in_order() -> None:
    store = MemoryStore(small(), partitions=2, deferred=Deferred(ticks=1, spread=2))
    keyspace = Keyspace(small())
    durable: list[int] = []
    store.on_durable = durable.append
    store.open(keyspace)
    epochs = [store.acquire(0), store.acquire(1)]
    for partition, key in ((1, b"a"), (0, b"b")):
        keyspace.create_stream(0, key)
        store.submit([Batch(partition, epochs[partition], keyspace.take())])

    store.tick(1)
    first = list(durable)
    store.tick(2)

    assert first == []  # number 2 is done, but 1 is not
    assert durable == [2]


def test_after_a_failure_the_store_opens_again_with_new_epochs() -> None:
    house = MemoryHouse(small(), Deferred())
    house.open()
    failures: list[Failure] = []
    house.append()
    house.commit()
    house.store.on_failure = failures.append
    house.store.fence(0)
    old = house.epoch

    house.open()
    house.append()
    house.commit()
    house.settle()

    assert failures
    assert house.epoch > old
    assert house.durable[-1] == 2
