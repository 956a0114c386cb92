"""What every store promises, run on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from felixresp.storage.base import Batch
from felixresp.storage.memory import Deferred
from tests.storage.house import House, JournalHouse, MemoryHouse, small


@pytest.fixture(params=["journal", "memory", "memory deferred", "memory late"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    houses: dict[str, Callable[[], House]] = {
        "journal": lambda: JournalHouse(tmp_path, small()),
        "memory": lambda: MemoryHouse(small()),
        "memory deferred": lambda: MemoryHouse(small(), Deferred()),
        "memory late": lambda: MemoryHouse(small(), Deferred(ticks=3)),
    }
    house = houses[request.param]()
    house.open()
    yield house
    house.store.close()


def test_a_new_store_is_empty(house: House) -> None:
    found = house.crash()

    assert (found.streams, found.groups, found.entries) == (0, 0, 0)
    assert house.describe()["keys"] == {}


def test_what_was_durable_is_there_after_a_crash(house: House) -> None:
    house.everything()
    house.settle()
    before = house.describe()

    found = house.crash()

    assert house.describe() == before
    assert found.streams == 2
    assert found.groups == 2
    assert found.entries == house.stream().length + house.stream(b"second").length


def test_replaying_again_gives_the_same(house: House) -> None:
    house.everything()
    house.settle()
    before = house.describe()

    house.crash()
    house.crash()

    assert house.describe() == before


def test_what_was_submitted_is_there_after_a_clean_stop(house: House) -> None:
    house.everything()
    before = house.describe()

    house.stop()

    assert house.describe() == before


def test_work_goes_on_after_a_restart(house: House) -> None:
    for _ in range(3):
        house.everything()
        house.settle()
        house.crash()
    before = house.describe()

    house.stop()

    assert house.describe() == before


def test_what_was_not_submitted_is_gone(house: House) -> None:
    house.append(3)
    house.commit()
    house.settle()
    before = house.describe()
    house.append(1)

    house.crash()

    assert house.describe() == before


def test_numbers_of_commits_count_up_from_one(house: House) -> None:
    seqs = []
    for _ in range(4):
        house.append()
        seqs.append(house.commit())
    house.settle()

    assert seqs == [1, 2, 3, 4]
    assert house.durable == sorted(house.durable)
    assert house.durable[-1] == 4


def test_a_number_is_never_used_again(house: House) -> None:
    house.append()
    first = house.stream().number
    house.keyspace.drop(house.stream())
    house.commit()
    house.settle()

    house.crash()

    assert house.stream().number > first


def test_pending_entries_are_owed_after_a_restart(house: House) -> None:
    house.append(5)
    ids = house.poll(3)
    house.commit()
    house.settle()

    house.crash()

    assert list(house.group().owed_from()) == ids


def test_each_owner_has_a_higher_epoch_than_the_one_before(house: House) -> None:
    before = house.epoch

    house.crash()

    assert house.epoch > before
    assert house.store.acquire(0) > house.epoch


def test_a_batch_under_an_old_epoch_is_refused(house: House) -> None:
    house.append()
    house.commit()
    house.settle()
    before = house.describe()
    old = house.epoch
    house.epoch = house.store.acquire(0)
    house.append()

    house.store.submit([Batch(0, old, house.keyspace.take())])

    assert house.failures == [([0], False)]
    house.settle()
    house.crash()
    assert house.describe() == before


def test_a_store_has_room(house: House) -> None:
    assert house.store.writable()
