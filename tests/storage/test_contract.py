"""What every store promises, run on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from felixresp.engine import settle
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
    assert found.groups == 3
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
        house.resume()
    house.commit()
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


def test_claims_are_over_after_a_crash(house: House) -> None:
    house.append(5)
    ids = house.poll(3)
    house.commit()
    house.settle()

    house.crash()
    house.resume()

    assert list(house.group().owed_from()) == ids
    assert [story[-1].how for story in house.group().stories.values()] == [
        b"restart"
    ] * 3


def test_durable_claims_stand_after_a_crash(house: House) -> None:
    house.configure({"durable-claims": "yes"})
    house.append(5)
    ids = house.poll(3, receipts=True)
    house.extend(ids[0], ms=900)
    house.commit()
    house.settle()
    before = house.describe()
    receipts = [(id_, house.group().pending[id_].nonce) for id_ in ids]

    house.crash()
    house.resume()
    again = settle.by_receipt(house.group(), receipts, house.now_ms)
    house.now_ms += 950
    later = settle.by_receipt(house.group(), receipts, house.now_ms)

    assert again == ids
    assert later == ids[1:]
    assert house.describe() != before  # that the first one lapsed is written


def test_what_a_start_ends_is_in_the_next_commit(house: House) -> None:
    house.append(5)
    house.poll(3)
    house.commit()
    house.settle()
    house.crash()
    house.resume()
    house.commit()
    house.settle()
    before = house.describe()

    house.crash()

    assert house.describe() == before
    assert len(house.group().owed) == 3


def test_an_entry_in_delay_is_owed_when_its_time_comes_after_a_restart(
    house: House,
) -> None:
    house.append(2)
    first, second = house.poll(2)
    house.nack(first, delay_ms=500)
    house.nack(second, delay_ms=600)
    house.commit()
    house.settle()

    house.crash()
    house.resume()
    early = house.poll(2)
    house.now_ms += 500
    house.keyspace.expire_claims(house.now_ms)

    assert early == []
    assert house.poll(2) == [first]


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


def test_a_claim_whose_worker_is_gone_has_its_whole_time_after_a_restart(
    house: House,
) -> None:
    house.configure({"disconnect-grace-ms": "100"})
    house.append(2)
    (id_,) = house.poll(1, client_id=1)
    house.disconnect(1)
    house.learn(3000)
    handout = house.group().pending[id_]
    ends_ms, returns_ms = handout.deadline_ms, handout.returns_ms
    house.commit()
    house.settle()
    before = house.describe()

    house.crash()

    assert (ends_ms, returns_ms) == (100, 3000)
    assert house.describe() == before
