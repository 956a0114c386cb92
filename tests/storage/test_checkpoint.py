"""Checkpoints: what is in one, what it costs nobody, and what when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import lmdb
import pytest

from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Slice
from felixresp.engine.stream import Stream
from felixresp.storage.base import Corrupt, StoreError, Unreadable
from felixresp.storage.database import Database
from felixresp.storage.records import RECORD_VERSION
from tests.storage.house import JournalHouse, small

LATER_MS = 40_000  # more than checkpoint-seconds


@pytest.fixture
def house(tmp_path: Path) -> Iterator[JournalHouse]:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    yield house
    house.store.close()


def begin(house: JournalHouse) -> None:
    """A cut is made, and not read yet."""
    house.commit()
    house.tick()
    house.tick(LATER_MS)


def end(house: JournalHouse) -> None:
    before = house.store.statistics.checkpoints
    while house.store.statistics.checkpoints == before:
        house.tick()
        sleep(0.0005)


def records(house: JournalHouse) -> dict[str, int]:
    """How many records each part of a stopped store's database has."""
    names = ("values", "nodes", "payloads", "groups", "pending", "garbage")
    with (
        lmdb.open(str(house.directory / "lmdb"), max_dbs=16) as env,
        env.begin() as txn,
    ):
        return {
            name: txn.stat(env.open_db(name.encode(), txn))["entries"] for name in names
        }


# --- what is in it


def test_a_checkpoint_holds_the_state_at_its_start(house: JournalHouse) -> None:
    house.everything()
    begin(house)
    at_cut = house.describe()
    house.append(5)
    house.delete(house.stream().first_id())
    house.ack(*house.group().pending)
    house.keyspace.drop(house.stream(b"second"))

    end(house)  # what came after the cut was never submitted

    house.crash()
    assert house.describe() == at_cut


def test_changes_after_the_cut_are_replayed_upon_it(house: JournalHouse) -> None:
    house.everything()
    begin(house)
    house.everything()
    before = house.describe()

    end(house)

    house.crash()
    assert house.describe() == before


def test_no_checkpoint_starts_while_changes_wait_for_their_commit(
    house: JournalHouse,
) -> None:
    house.append()
    house.commit()
    house.append()

    for _ in range(20):
        house.store.tick(house.now_ms, settled=False)
        house.now_ms += LATER_MS

    assert house.store._checkpoint is None
    house.commit()
    end(house)


def test_a_checkpoint_starts_when_the_journal_has_grown(tmp_path: Path) -> None:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=4096))
    house.open()

    for _ in range(8):
        house.append()
        house.commit()

    end(house)
    house.store.close()


def test_a_store_with_nothing_to_do_asks_for_no_tick(house: JournalHouse) -> None:
    house.append()
    house.checkpoint()

    assert house.tick() is None


def test_a_commit_past_the_journals_limit_waits_for_the_checkpoint(
    tmp_path: Path,
) -> None:
    house = JournalHouse(tmp_path, small(journal_max_bytes=16 * 1024))
    house.open()

    for _ in range(300):
        house.append()
        house.commit()  # never a tick

    assert house.store._tail_bytes <= 16 * 1024 + 512
    assert house.store.statistics.checkpoints > 5
    house.store.close()


# --- memory


def test_stored_nodes_leave_memory_and_come_back(house: JournalHouse) -> None:
    house.append(30)
    before = house.describe()

    house.checkpoint()

    assert house.keyspace.cache.bytes == 0
    assert [node.resident for node in house.stream().nodes] == [False] * 9 + [True]
    assert house.describe() == before


def test_a_deletion_in_a_node_that_left_memory_again_is_stored(
    house: JournalHouse,
) -> None:
    house.append(30)
    house.checkpoint()
    house.delete(house.stream().nodes[3].first)
    house.tick()  # shrinks the cache
    house.checkpoint()
    before = house.describe()

    house.crash()

    assert house.describe() == before


@pytest.mark.parametrize("whole_stream", [True, False])
def test_a_reply_on_its_way_can_still_read_what_was_deleted(
    whole_stream: bool, house: JournalHouse
) -> None:
    house.append(30)
    house.checkpoint()
    stream = house.stream()
    _, parts = house.run(lambda: stream.range(0, 2**128 - 1, None, reverse=False))
    slices = [part for part in parts if isinstance(part, Slice)]
    if whole_stream:
        house.keyspace.drop(stream)
    else:
        house.trim(0)

    house.checkpoint()

    assert len(slices) == 9
    for part in slices:
        if not part.node.resident:
            house.store.read(part.stream, [part.node])
        assert part.bytes().count(b"field") == 3
        part.release()


# --- what was dropped


def test_a_large_deletion_is_spread_over_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felixresp.storage.database._GARBAGE_MAX", 10)
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    house.append(120)
    house.poll(15)
    house.keyspace.destroy_group(house.group())
    house.poll(5)
    house.checkpoint()
    house.keyspace.drop(house.stream())
    house.commit()

    house.stop()
    house.store.close()
    after_one = records(house)
    house._start()
    while house.tick(LATER_MS) is not None:
        sleep(0.0005)

    house.store.close()
    assert after_one["payloads"] > 20
    assert set(records(house).values()) == {0}


def test_nothing_of_a_dropped_stream_is_found_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felixresp.storage.database._GARBAGE_MAX", 1)
    house = JournalHouse(tmp_path, small())
    house.open()
    house.append(30)
    house.poll(5)
    house.checkpoint()
    house.keyspace.drop(house.stream())
    house.append(2)
    house.group()
    house.checkpoint()

    house.crash()

    assert house.stream().length == 2
    assert not house.group().pending
    house.store.close()


# --- what when it fails


def test_a_failed_checkpoint_is_tried_again_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    house.append(50)
    with monkeypatch.context() as patch:
        patch.setattr("felixresp.storage.records.encode_node", _no_space)
        begin(house)
        while house.store.writable():
            house.tick()
            sleep(0.0005)
    failures = house.store.statistics.checkpoint_failures
    house.append(5)
    house.commit()
    before = house.describe()

    while not house.store.writable():
        house.tick(1000)
        sleep(0.0005)

    assert failures == 1
    house.crash()
    assert house.describe() == before
    house.store.close()


def test_a_full_database_is_a_failed_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("felixresp.storage.database._MAP_BYTES", 256 * 1024)
        house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
        house.open()
        house.append(100, size=4000)
        begin(house)
        while house.store.writable():
            house.tick()
            sleep(0.0005)
        house.append(5)
        house.commit()
        before = house.describe()
        house.store.close()

    found = house._start()

    assert not found.clean
    assert house.describe() == before
    house.store.close()


def test_a_crash_while_a_checkpoint_fails_replays_the_whole_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30))
    house.open()
    house.everything()
    with monkeypatch.context() as patch:
        patch.setattr("felixresp.storage.records.encode_node", _no_space)
        begin(house)
        while house.store.writable():
            house.tick()
            sleep(0.0005)
        house.everything()
        before = house.describe()
        patch.undo()
        house.crash()

    assert house.describe() == before
    house.store.close()


def _no_space(_: object) -> bytes:
    raise OSError(28, "No space left on device")


# --- damage


@pytest.mark.parametrize(
    "name", ["state", "values", "nodes", "groups", "consumers", "pending", "dead"]
)
def test_a_damaged_record_is_refused_with_its_key(name: str, tmp_path: Path) -> None:
    house = JournalHouse(tmp_path, small())
    house.open()
    house.everything()
    house.store.close()
    with lmdb.open(str(house.directory / "lmdb"), max_dbs=16) as env:
        db = env.open_db(name.encode())
        with env.begin(write=True) as txn, txn.cursor(db) as cursor:
            assert cursor.first()
            key = bytes(cursor.key())
            txn.put(key, bytes(cursor.value())[:1], db=db)

    with pytest.raises(Corrupt, match=key.hex()):
        house._start()


PARTS = ("state", "values", "nodes", "groups", "consumers", "pending", "dead")


def test_a_flipped_bit_anywhere_in_a_record_is_refused_with_its_key(
    tmp_path: Path,
) -> None:
    house = JournalHouse(tmp_path, small())
    house.open()
    house.everything()
    house.store.close()
    database = Database(house.directory)
    tried = 0

    for name in PARTS:
        for key, data in read_all(database, name):
            for at in range(len(data)):
                flipped = bytes((*data[:at], data[at] ^ 1 << at % 8, *data[at + 1 :]))
                put(database, name, key, flipped)
                with pytest.raises(StoreError, match=key.hex()):
                    load(database)
                tried += 1
            put(database, name, key, data)
    load(database)
    database.close()
    assert tried > 300


def test_a_record_under_another_key_is_refused(tmp_path: Path) -> None:
    house = JournalHouse(tmp_path, small())
    house.open()
    house.append(9)
    house.store.close()
    database = Database(house.directory)
    (first, _), (second, data), *_ = read_all(database, "nodes")

    put(database, "nodes", first, data)

    with pytest.raises(Corrupt, match=f"{first.hex()} is damaged"):
        load(database)
    put(database, "nodes", second, bytes((99, *data[1:])))
    put(database, "nodes", first, bytes((RECORD_VERSION,)))
    with pytest.raises(Corrupt, match=first.hex()):
        load(database)
    database.close()


@pytest.mark.parametrize("version", [1, 2, RECORD_VERSION + 1])
def test_a_record_of_another_version_is_refused_by_name(
    version: int, tmp_path: Path
) -> None:
    house = JournalHouse(tmp_path, small())
    house.open()
    house.append(9)
    house.store.close()
    database = Database(house.directory)
    key, data = read_all(database, "values")[0]

    put(database, "values", key, bytes((version, *data[1:])))

    with pytest.raises(StoreError, match=f"version {version} is unknown"):
        load(database)
    database.close()


def read_all(database: Database, name: str) -> list[tuple[bytes, bytes]]:
    with database._env.begin() as txn, txn.cursor(database._dbs[name]) as cursor:
        return [(bytes(key), bytes(data)) for key, data in cursor]


def put(database: Database, name: str, key: bytes, data: bytes) -> None:
    with database._env.begin(write=True) as txn:
        txn.put(key, data, db=database._dbs[name])


def load(database: Database) -> None:
    database.read_state()
    database.load(Keyspace(small()))


def test_a_flipped_bit_in_a_payload_is_found_when_it_is_read(
    house: JournalHouse,
) -> None:
    house.append(30)
    house.checkpoint()
    stream, database = house.stream(), house.store._database
    assert isinstance(stream, Stream)
    node = stream.nodes[2]
    house.tick()
    key, data = read_all(database, "payloads")[2]

    for at in range(len(data)):
        node.evict()
        flipped = bytes((*data[:at], data[at] ^ 1 << at % 8, *data[at + 1 :]))
        put(database, "payloads", key, flipped)
        with pytest.raises(Unreadable, match=f"{key.hex()} is damaged") as damage:
            house.store.read(stream, stream.nodes[1:4])
        assert damage.value.node is node

    put(database, "payloads", key, data)
    house.store.read(stream, stream.nodes[1:4])
    assert node.resident


def test_a_payload_that_does_not_fit_its_node_is_unreadable(
    house: JournalHouse,
) -> None:
    house.append(30)
    house.checkpoint()
    stream = house.stream()
    stream.nodes[2].count = 10_000

    with pytest.raises(Unreadable, match="damaged"):
        house.store.read(stream, stream.nodes[2:3])


def test_a_checkpoint_leaves_a_damaged_payload_to_its_reader(
    house: JournalHouse,
) -> None:
    house.append(30)
    house.checkpoint()
    stream, database = house.stream(), house.store._database
    _, parts = stream.range(0, 2**127, None, reverse=False)
    slices = [part for part in parts if isinstance(part, Slice)]
    for node in stream.nodes[:-1]:
        node.evict()
    key, data = read_all(database, "payloads")[2]
    put(database, "payloads", key, data[:-1])
    house.keyspace.drop(stream)

    house.checkpoint()

    assert [part.node.resident for part in slices].count(False) <= 1
    for part in slices:
        part.release()
