"""What a clean stop keeps, and when a start takes it for one."""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest

from felixresp.engine import settle
from felixresp.storage.frames import encode_frame, read_salt, segment_path
from tests.storage.house import JournalHouse, small
from tests.storage.test_journal import commit, overwrite


@pytest.fixture
def house(tmp_path: Path) -> Iterator[JournalHouse]:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    yield house
    house.store.close()


def test_a_stop_is_clean_and_a_crash_is_not(house: JournalHouse) -> None:
    commit(house, 1)
    assert house.stop().clean
    assert house.stop().clean
    commit(house, 1)
    assert not house.crash().clean


def test_claims_stand_after_a_stop_for_the_time_that_is_left(
    house: JournalHouse,
) -> None:
    house.append(3)
    ids = house.poll(3, receipts=True)
    house.extend(ids[0], ms=5000)
    house.commit()
    receipts = [(id_, house.group().pending[id_].nonce) for id_ in ids]

    house.stop()
    house.now_ms += 999
    house.resume()
    standing = settle.by_receipt(house.group(), receipts, house.now_ms)
    house.now_ms += 1
    later = settle.by_receipt(house.group(), receipts, house.now_ms)

    assert standing == ids
    assert later == ids[:1]
    assert house.group().stories[ids[1]][-1].how == b"lapse"


def test_claims_of_a_checkpoint_are_over_when_the_stop_was_not_clean(
    house: JournalHouse,
) -> None:
    house.append(3)
    ids = house.poll(3)
    house.checkpoint()

    house.crash()
    house.resume()

    assert list(house.group().owed_from()) == ids


@pytest.mark.parametrize("torn", [True, False])
def test_a_stop_is_not_clean_when_anything_follows_it(
    torn: bool, house: JournalHouse
) -> None:
    commit(house, 2)
    house.store.close()
    seq, segment, offset = house.store._writer.position
    path = segment_path(house.directory, segment)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        salt = read_salt(data, path, segment)
    frame = encode_frame(seq, bytes(20), salt, synced=True)
    overwrite(path, offset, frame[:-20] if torn else frame[:-20] + bytes(20))

    found = house._start()

    assert not found.clean
    assert (found.torn_bytes > 0) == torn


def test_a_stop_is_spent_by_the_start_after_it(house: JournalHouse) -> None:
    commit(house, 1)
    house.stop()

    assert not house.crash().clean
