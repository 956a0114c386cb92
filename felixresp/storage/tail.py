"""The journal's frames after a position, read in recovery.

A frame that is not valid is the torn end of the last write, unless a valid one
with a higher number follows in this or any later segment: then what stands
between was durable and is damaged, and the server must not start. Frames
written without syncs are the exception: what a power cut left of them ends at
the first that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

from .base import Corrupt
from .frames import (
    BLOCK_BYTES,
    Position,
    find_frame,
    read_frame,
    read_salt,
    segment_numbers,
    segment_path,
    torn_length,
)


class Found(NamedTuple):
    """A frame's payload and where it stands, for messages."""

    payload: bytes
    path: Path
    offset: int


class Tail:
    """Iterate once; then ``next_seq`` and ``torn_bytes`` are known."""

    def __init__(self, directory: Path, start: Position) -> None:
        self.next_seq = start.seq
        self.torn_bytes = 0
        self._directory = directory
        self._start = start

    def __iter__(self) -> Iterator[Found]:
        """Raises Corrupt, or StoreError for an unknown version."""
        first = self._start.segment
        numbers = [n for n in segment_numbers(self._directory) if n >= first]
        if not numbers or numbers[0] != first:
            msg = (
                f"{segment_path(self._directory, first)} is missing:"
                " the last checkpoint needs it"
            )
            raise Corrupt(msg)
        offset, here = self._start.offset, 0
        while True:
            yield from (scan := _Scan(self._directory, numbers[here], offset)).frames(
                self
            )
            later = self._find_later(numbers[here:], scan.end)
            if later is None:
                self.torn_bytes = scan.torn_bytes
                return
            at, offset, seq, synced = later
            if at == 0 or offset != BLOCK_BYTES or seq != self.next_seq:
                if not synced:
                    self.torn_bytes = scan.torn_bytes
                    return
                path = segment_path(self._directory, numbers[here])
                msg = (
                    f"{path}: frame {self.next_seq} at offset {scan.end} is damaged,"
                    f" and frame {seq} after it is not: restore a backup"
                )
                raise Corrupt(msg)
            here += at

    def _find_later(
        self, numbers: list[int], offset: int
    ) -> tuple[int, int, int, bool] | None:
        """The next valid frame: how many segments on, offset, seq, synced."""
        for on, number in enumerate(numbers):
            path = segment_path(self._directory, number)
            with path.open("rb") as file, _map(file.fileno(), path) as data:
                salt = read_salt(data, path, number)
                found = find_frame(data, offset, salt, self.next_seq)
                if found is not None:
                    at, frame = found
                    return on, at, frame.seq, frame.synced
            offset = BLOCK_BYTES
        return None


class _Scan:
    """One segment's frames from an offset on."""

    def __init__(self, directory: Path, number: int, offset: int) -> None:
        self.end = offset
        self.torn_bytes = 0
        self._path = segment_path(directory, number)
        self._number = number

    def frames(self, tail: Tail) -> Iterator[Found]:
        with self._path.open("rb") as file, _map(file.fileno(), self._path) as data:
            salt = read_salt(data, self._path, self._number)
            while True:
                frame = read_frame(data, self.end, salt, tail.next_seq)
                if frame is None or frame.seq != tail.next_seq:
                    break
                found = Found(frame.payload, self._path, self.end)
                self.end = frame.end
                tail.next_seq += 1
                yield found
            self.torn_bytes = torn_length(data, self.end, tail.next_seq)


def _map(file: int, path: Path) -> mmap:
    try:
        return mmap(file, 0, access=ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        msg = f"{path}: the segment's header at offset 0 is damaged"
        raise Corrupt(msg) from None
