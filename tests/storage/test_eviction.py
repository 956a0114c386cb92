"""Groups that nobody uses leave memory, and come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from felixresp.engine.errors import NotResident
from felixresp.engine.group import Group
from tests.state import describe_group
from tests.storage.house import JournalHouse, small

MINUTE_MS = 60_000
IDLE_MS = 10 * MINUTE_MS


@pytest.fixture
def house(tmp_path: Path) -> Iterator[JournalHouse]:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    yield house
    house.store.close()


def look(house: JournalHouse, passed_ms: int) -> None:
    house.now_ms += passed_ms
    house.store.evict_groups(house.now_ms)


def look_twice(house: JournalHouse) -> None:
    """Idle since the first look, and for long at the second."""
    house.checkpoint()
    look(house, MINUTE_MS)
    look(house, IDLE_MS)


def busy_past(house: JournalHouse) -> Group:
    """A group with owed, dead and redriven entries, and one finished ahead."""
    house.append(8)
    ids = house.poll(6)
    house.nack(ids[0], mode=b"FATAL")
    house.nack(ids[1], mode=b"FATAL")
    house.redrive(ids[1])
    house.ack(ids[4])
    house.lapse()
    house.commit()
    return house.group()


def test_an_idle_group_is_dropped_from_memory_and_rebuilt(house: JournalHouse) -> None:
    group = busy_past(house)
    before = describe_group(group)
    owed = list(group.owed_from())

    look_twice(house)
    assert not group.resident
    assert not group.pending
    with pytest.raises(NotResident) as missing:
        group.stream.group(group.name)
    house.store.read_groups(missing.value.groups)

    assert house.group() is group
    assert describe_group(group) == before
    assert house.poll(2, b"bob") == owed[:2]


def test_a_group_that_left_memory_goes_on_counting(house: JournalHouse) -> None:
    group = busy_past(house)
    look_twice(house)

    house.delete(house.stream().last_id)
    house.append(2)
    house.commit()
    house.crash()
    lag = house.group().lag

    house.stop()
    assert house.group().lag == lag == 3 + len(house.group().owed)
    assert group is not house.group()


def test_a_group_with_a_claim_is_kept(house: JournalHouse) -> None:
    house.append(2)
    house.configure({"visibility-timeout-ms": str(2 * IDLE_MS)})
    house.poll(1)

    look_twice(house)

    assert house.group().resident


def test_a_group_with_a_delay_is_kept(house: JournalHouse) -> None:
    house.append(2)
    house.nack(*house.poll(1), delay_ms=3 * IDLE_MS)

    look_twice(house)

    assert house.group().resident


def test_a_group_somebody_may_wait_for_is_kept_until_the_client_is_gone(
    house: JournalHouse,
) -> None:
    house.append(1)
    house.ack(*house.poll(1, client_id=7))
    group = house.group()

    look_twice(house)
    assert group.resident
    house.disconnect(7)
    look(house, IDLE_MS)

    assert not group.resident


def test_a_group_that_changed_since_the_checkpoint_is_kept(
    house: JournalHouse,
) -> None:
    group = busy_past(house)
    house.checkpoint()
    house.ack(next(group.owed_from()))
    house.commit()

    look(house, MINUTE_MS)
    look(house, IDLE_MS)

    assert group.resident


def test_consumers_of_a_group_that_left_memory_expire(house: JournalHouse) -> None:
    house.append(1)
    house.ack(*house.poll(1))
    group = house.group()
    look_twice(house)

    house.now_ms += house.settings.group_consumer_expiry_ms
    house.run(lambda: house.keyspace.expire_claims(house.now_ms))

    assert not group.consumers
