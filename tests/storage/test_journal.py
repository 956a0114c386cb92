"""What the journal keeps, cuts and refuses; what it does on a bad disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from time import sleep

import pytest

from felixresp.engine.keyspace import Keyspace
from felixresp.storage.base import Batch, Corrupt, Locked, StoreError
from felixresp.storage.disk import Disk
from felixresp.storage.frames import BLOCK_BYTES, FRAME_BYTES, align
from felixresp.storage.journal import JournalStore
from tests.storage.house import JournalHouse, copy_directory, small

FRAME_SEQ = 10  # offset in a frame of its number


@pytest.fixture
def house(tmp_path: Path) -> Iterator[JournalHouse]:
    house = JournalHouse(tmp_path / "data", small(checkpoint_bytes=2**30))
    house.open()
    yield house
    house.store.close()


def commit(house: JournalHouse, count: int) -> None:
    for _ in range(count):
        house.append()
        house.commit()


def written(house: JournalHouse) -> list[tuple[Path, int, int]]:
    """Path, offset and bytes of each frame, in order."""
    found = []
    for path in sorted(house.directory.glob("journal-*")):
        data, at = path.read_bytes(), BLOCK_BYTES
        while data[at : at + 4] == b"\xf5fxJ":
            length = FRAME_BYTES + int.from_bytes(data[at + 18 : at + 26], "little")
            seq = int.from_bytes(data[at + FRAME_SEQ : at + 18], "little")
            found.append((seq, path, at, length))
            at = align(at + length)
    return [(path, at, length) for _, path, at, length in sorted(found)]


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def reopened(house: JournalHouse, directory: Path) -> JournalHouse:
    """Another house in a copy of what is on the disk; not opened yet."""
    shutil.rmtree(directory, ignore_errors=True)
    copy_directory(house.directory, directory / "life-0")
    return JournalHouse(directory, house.settings)


# --- a torn end


def test_a_torn_last_frame_is_cut_wherever_it_tore(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 2)
    before = house.describe()
    commit(house, 1)
    path, offset, length = written(house)[-1]

    for kept in range(length):
        copy = reopened(house, tmp_path / "copy")
        torn = copy.directory / path.name
        overwrite(torn, offset + kept, bytes(length - kept))
        found = copy.open()

        assert copy.describe() == before
        assert found.torn_bytes <= length
        copy.store.close()


def test_a_damaged_byte_of_the_last_frame_cuts_it(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 2)
    before = house.describe()
    commit(house, 1)
    path, offset, length = written(house)[-1]
    whole = path.read_bytes()

    for at in range(offset, offset + length, 3):
        copy = reopened(house, tmp_path / "copy")
        overwrite(copy.directory / path.name, at, bytes((whole[at] ^ 0x55,)))
        copy.open()

        assert copy.describe() == before
        copy.store.close()


def test_the_end_may_be_in_a_file_that_is_cut_short(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 2)
    before = house.describe()
    commit(house, 1)
    path, offset, length = written(house)[-1]
    copy = reopened(house, tmp_path / "copy")
    os.truncate(copy.directory / path.name, offset + length - 1)

    copy.open()

    assert copy.describe() == before
    copy.store.close()


def test_a_cut_frame_does_not_come_back(house: JournalHouse, tmp_path: Path) -> None:
    commit(house, 2)
    path, offset, length = written(house)[-1]
    overwrite(path, offset + length - 1, b"\xaa")
    copy = reopened(house, tmp_path / "copy")
    copy.open()
    commit(copy, 1)
    before = copy.describe()

    copy.crash()

    assert copy.describe() == before
    copy.store.close()


# --- damage


def test_damage_before_the_end_is_refused_with_file_and_offset(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 5)
    path, offset, length = written(house)[2]
    copy = reopened(house, tmp_path / "copy")
    overwrite(copy.directory / path.name, offset + length - 1, b"\xaa")

    with pytest.raises(Corrupt, match=f"{path.name}.*offset {offset} "):
        copy.open()


def test_damage_at_a_segments_end_is_refused_when_the_next_one_goes_on(
    house: JournalHouse, tmp_path: Path
) -> None:
    while len({path for path, _, _ in written(house)}) < 3:
        house.append(10, size=200)
        house.commit()
        house.tick()
    frames = written(house)
    last = [f for f in frames if f[0] == frames[0][0]][-1]
    copy = reopened(house, tmp_path / "copy")
    overwrite(copy.directory / last[0].name, last[1] + 40, b"\xaa\x55\xaa")

    with pytest.raises(Corrupt, match=f"{last[0].name}.*offset {last[1]} "):
        copy.open()


def test_a_missing_segment_is_refused(house: JournalHouse, tmp_path: Path) -> None:
    commit(house, 1)
    path = written(house)[0][0]
    copy = reopened(house, tmp_path / "copy")
    (copy.directory / path.name).unlink()

    with pytest.raises(Corrupt, match=path.name):
        copy.open()


def test_a_damaged_segment_header_is_refused(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 1)
    path = written(house)[0][0]
    copy = reopened(house, tmp_path / "copy")
    overwrite(copy.directory / path.name, 9, b"\xaa")

    with pytest.raises(Corrupt, match=f"{path.name}.*offset 0"):
        copy.open()


def test_a_journal_without_its_checkpoint_is_refused(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 1)
    copy = reopened(house, tmp_path / "copy")
    shutil.rmtree(copy.directory / "lmdb")

    with pytest.raises(Corrupt, match="no checkpoint"):
        copy.open()


def test_a_store_that_refused_to_open_can_be_tried_again(
    house: JournalHouse, tmp_path: Path
) -> None:
    commit(house, 5)
    path, offset, _ = written(house)[2]
    copy = reopened(house, tmp_path / "copy")
    damaged = copy.directory / path.name
    good = damaged.read_bytes()[offset + 40 : offset + 43]
    overwrite(damaged, offset + 40, b"\xaa\x55\xaa")
    with pytest.raises(Corrupt):
        copy.open()

    overwrite(damaged, offset + 40, good)
    copy.open()

    assert copy.describe() == house.describe()
    copy.store.close()


# --- versions


@pytest.mark.parametrize(
    ("what", "version"),
    [("SEGMENT", 7), ("FRAME", 7), ("FRAME", 1), ("RECORD", 7), ("RECORD", 2)],
)
def test_an_unknown_version_is_refused_by_name(
    what: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        module = "records" if what == "RECORD" else "frames"
        patch.setattr(f"felixresp.storage.{module}.{what}_VERSION", version)
        other = JournalHouse(tmp_path / "other", small())
        other.open()
        other.append()
        other.commit()
    copy = reopened(other, tmp_path / "copy")

    with pytest.raises(StoreError, match=f"version {version} is unknown"):
        copy.open()

    other.store.close()


# --- segments


def test_frames_of_an_earlier_life_of_a_segment_are_not_replayed(
    house: JournalHouse,
) -> None:
    for _ in range(6):
        commit(house, 70)
        house.checkpoint()
        commit(house, 3)
    before = house.describe()

    found = house.crash()

    assert house.describe() == before
    assert found.changes_replayed == 3


def test_segments_are_recycled(house: JournalHouse) -> None:
    for _ in range(10):
        commit(house, 140)
        house.checkpoint()

    assert len(list(house.directory.glob("journal-*"))) <= 6


def test_a_large_frame_gets_a_segment_of_its_own(house: JournalHouse) -> None:
    commit(house, 1)
    while house.store._filler.ready < 2:
        sleep(0.001)
    house.append(1, size=200_000)
    house.commit()
    commit(house, 1)
    before = house.describe()
    small_one, large, after = (path for path, _, _ in written(house))

    house.crash()

    assert len({small_one, large, after}) == 3
    assert house.describe() == before


def test_a_file_grows_where_no_segment_is_ready(tmp_path: Path) -> None:
    house = JournalHouse(tmp_path, small(checkpoint_bytes=2**30), Full())
    house.open()
    commit(house, 300)
    before = house.describe()

    assert house.store.statistics.segments_late == 1
    house.crash()
    assert house.describe() == before
    house.store.close()


# --- a bad disk


class Full(Disk):
    """No room for segments; what is open can be written."""

    full = True

    def write(self, file: int, data: bytes, offset: int) -> None:
        if self.full and len(data) > 60_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(file, data, offset)


class Failing(Disk):
    """One call fails once ``failing`` is set."""

    def __init__(self, call: str) -> None:
        self.failing = False
        self._call = call

    def write(self, file: int, data: bytes, offset: int) -> None:
        self._fail("write")
        super().write(file, data, offset)

    def sync(self, file: int) -> None:
        self._fail("sync")
        super().sync(file)

    def _fail(self, call: str) -> None:
        if self.failing and call == self._call:
            raise OSError(errno.EIO, "Input/output error")


def wait_until(condition: Callable[[], bool], house: JournalHouse) -> None:
    while not condition():
        house.tick(500)
        sleep(0.001)


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_failed_commit_ends_it_all(call: str, tmp_path: Path) -> None:
    disk = Failing(call)
    house = JournalHouse(tmp_path / "data", small(), disk)
    house.open()
    commit(house, 2)
    before = house.describe()
    house.append()
    disk.failing = True

    with pytest.raises(OSError, match="Input/output error"):
        house.commit()

    assert house.durable == [1, 2]
    disk.failing = False
    house.store.close()
    found = house._start()
    assert not found.clean
    assert house.describe()["keys"].keys() == before["keys"].keys()
    house.store.close()


def test_a_full_disk_takes_no_new_data_until_there_is_room(tmp_path: Path) -> None:
    disk = Full()
    house = JournalHouse(tmp_path, small(), disk)
    house.open()
    wait_until(lambda: not house.store.writable(), house)
    commit(house, 3)

    disk.full = False
    wait_until(house.store.writable, house)

    assert house.durable == [1, 2, 3]
    house.store.close()


def test_without_syncs_what_a_power_cut_left_ends_at_the_first_gap(
    tmp_path: Path,
) -> None:
    house = JournalHouse(tmp_path / "data", small(durability="none"), Failing("sync"))
    house.open()
    commit(house, 2)
    before = house.describe()
    commit(house, 3)
    path, offset, length = written(house)[2]
    copy = reopened(house, tmp_path / "copy")
    overwrite(copy.directory / path.name, offset, bytes(length))

    copy.open()
    assert copy.describe() == before
    commit(copy, 1)
    after = copy.describe()
    copy.crash()
    assert copy.describe() == after
    copy.store.close()
    house.store.close()


def test_without_syncs_a_commit_does_not_sync(tmp_path: Path) -> None:
    disk = Failing("sync")
    house = JournalHouse(tmp_path, small(durability="none"), disk)
    house.open()
    while house.store._filler.ready < 2:
        sleep(0.001)
    disk.failing = True

    commit(house, 3)

    assert house.durable == [1, 2, 3]
    disk.failing = False
    house.store.close()


# --- the directory


def test_a_second_owner_is_told_the_first_ones_pid(house: JournalHouse) -> None:
    second = JournalStore(house.directory, house.settings)

    with pytest.raises(Locked, match=f"process {os.getpid()};"):
        second.open(Keyspace(house.settings))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = JournalStore(tmp_path / "file" / "data", small())

    with pytest.raises(StoreError, match=r"file/data.*--dir"):
        store.open(Keyspace(small()))


def test_a_start_cut_short_before_the_first_checkpoint_starts_again(
    house: JournalHouse, tmp_path: Path
) -> None:
    copy = reopened(house, tmp_path / "copy")
    shutil.rmtree(copy.directory / "lmdb")

    found = copy.open()

    assert found.clean
    copy.store.close()


# --- every step


class Witness(Disk):
    """Copies the directory before each call: what a kill there would leave."""

    def __init__(self, copies: Path) -> None:
        self.copies = copies
        self.directory: Path | None = None
        # a copy, and the commits before and after it: the filler's thread copies too
        self.seen: list[tuple[Path, int, int]] = []
        self.commits = 0
        self._lock = Lock()

    def write(self, file: int, data: bytes, offset: int) -> None:
        self._copy()
        half = len(data) // 2
        super().write(file, data[:half], offset)
        self._copy()
        super().write(file, data[half:], offset + half)

    def sync(self, file: int) -> None:
        self._copy()
        super().sync(file)

    def rename(self, old: Path, new: Path) -> None:
        self._copy()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._copy()
        super().remove(path)

    def sync_directory(self, path: Path) -> None:
        self._copy()
        super().sync_directory(path)

    def _copy(self) -> None:
        with self._lock:
            if self.directory is not None:
                path = self.copies / f"{len(self.seen)}"
                before = self.commits
                copy_directory(self.directory, path / "life-0")
                self.seen.append((path, before, self.commits))


def test_a_kill_at_any_step_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    disk = Witness(tmp_path / "copies")
    settings = small(journal_segment_bytes=4096, checkpoint_bytes=4096)
    house = JournalHouse(tmp_path / "data", settings, disk)
    house.open()
    states = [house.describe()]
    disk.directory = house.directory
    for _ in range(14):
        house.append(2)
        house.store.submit([Batch(0, house.epoch, house.keyspace.take())])
        states.append(house.describe())
        disk.commits += 1
        wait_until(lambda: house.store._checkpoint is None, house)
    disk.directory = None
    house.store.close()

    assert house.store.statistics.checkpoints >= 2
    assert len(disk.seen) > 40
    for path, before, after in disk.seen:
        copy = JournalHouse(path, settings)
        copy.open()
        assert copy.describe() in states[before : after + 2]
        copy.store.close()
        shutil.rmtree(path)
