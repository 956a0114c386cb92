"""Segments made ahead: a thread that takes space before it is needed.

A segment is zeroed for real, synced and renamed into place before a frame goes
into it; a recycled one gets a new header, and so a new salt. What fails here
(a full disk) is remembered, never raised: the server stops taking new data.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from ..config import MiB
from .disk import Disk
from .frames import BLOCK_BYTES, encode_segment, segment_path

READY_MIN = 2
_READY_MAX = 3  # a used segment more than this is removed, not recycled
_RETRY_MS = 1000
_SALT_BYTES = 16


@dataclass(slots=True)
class Segment:
    """An open segment file."""

    number: int
    file: int
    salt: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Make:
    """Make a segment, of a used file where one is given."""

    used: Path | None


@dataclass(frozen=True, slots=True)
class _Remove:
    used: Path


def make_short(directory: Path, number: int, disk: Disk) -> Segment:
    """A segment that has only its header, and grows as it is written."""
    return _make(directory, number, BLOCK_BYTES, disk)


class Filler:
    """Keeps segments ready. All but ``_work`` runs on the caller's thread."""

    def __init__(
        self, directory: Path, segment_bytes: int, next_number: int, disk: Disk
    ) -> None:
        self.failure: OSError | None = None
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._next_number = next_number
        self._disk = disk
        self._ready: deque[Segment] = deque()
        self._coming = 0  # asked for, not heard of yet
        self._retry_ms: int | None = None
        self._jobs: SimpleQueue[_Make | _Remove | None] = SimpleQueue()
        self._results: SimpleQueue[Segment | OSError] = SimpleQueue()
        self._thread = Thread(target=self._work, name="segments", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> int:
        self._collect()
        return len(self._ready)

    def take(self) -> Segment | None:
        """The next segment, None when it is not ready."""
        self._collect()
        segment = self._ready.popleft() if self._ready else None
        self._ask()
        return segment

    def recycle(self, path: Path) -> None:
        """No frame of this segment is needed any more."""
        self._collect()
        if path.stat().st_size != self._segment_bytes or (
            len(self._ready) + self._coming >= _READY_MAX
        ):
            self._jobs.put(_Remove(path))
        else:
            self._coming += 1
            self._jobs.put(_Make(path))

    def tick(self, now_ms: int) -> None:
        """Ask again a while after a failure."""
        self._collect()
        if self.failure is None:
            self._ask()
        elif self._retry_ms is None:
            self._retry_ms = now_ms + _RETRY_MS
        elif self._retry_ms <= now_ms:
            self._retry_ms = None
            self._ask()

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._collect()
        for segment in self._ready:
            os.close(segment.file)
        self._ready.clear()

    def _ask(self) -> None:
        while len(self._ready) + self._coming < READY_MIN:
            self._coming += 1
            self._jobs.put(_Make(None))

    def _collect(self) -> None:
        while not self._results.empty():
            result = self._results.get()
            self._coming -= 1
            if isinstance(result, OSError):
                self.failure = result
            else:
                self.failure = None
                self._ready.append(result)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if isinstance(job, _Remove):
                    self._disk.remove(job.used)
                    continue
                segment = self._fill(job.used)
            except OSError as exc:
                if isinstance(job, _Make):
                    self._results.put(exc)
            else:
                self._results.put(segment)

    def _fill(self, used: Path | None) -> Segment:
        number = self._next_number
        self._next_number += 1
        if used is None:
            return _make(self._directory, number, self._segment_bytes, self._disk)
        salt = os.urandom(_SALT_BYTES)
        file = os.open(used, os.O_RDWR)
        try:
            self._disk.write(file, encode_segment(number, salt), 0)
            self._disk.sync(file)
            self._disk.rename(used, segment_path(self._directory, number))
            self._disk.sync_directory(self._directory)
        except OSError:
            os.close(file)
            raise
        return Segment(number, file, salt, self._segment_bytes)


def _make(directory: Path, number: int, size_bytes: int, disk: Disk) -> Segment:
    salt = os.urandom(_SALT_BYTES)
    path = directory / f"filling-{number:016}"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        disk.write(file, encode_segment(number, salt), 0)
        for start in range(BLOCK_BYTES, size_bytes, MiB):
            disk.write(file, bytes(min(MiB, size_bytes - start)), start)
            disk.sync(file)  # step by step: a commit never waits behind much
        disk.sync(file)
        disk.rename(path, segment_path(directory, number))
        disk.sync_directory(directory)
    except OSError:
        os.close(file)
        disk.remove(path)
        raise
    return Segment(number, file, salt, size_bytes)
