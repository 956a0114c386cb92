"""The journal's end: one write and one sync per frame.

A frame goes to the current segment; when it does not fit, to the next one that
is ready. Where none is, the file grows and ``segments_late`` says so. A frame
larger than a segment starts one of its own, which grows by it.
"""

from __future__ import annotations

import os
from pathlib import Path

from .base import Statistics
from .disk import Disk
from .frames import (
    BLOCK_BYTES,
    Position,
    align,
    encode_frame,
    segment_path,
)
from .segments import Filler, Segment


class Writer:
    """``append`` returns when the frame is durable, or raises OSError."""

    def __init__(  # noqa: PLR0913 - what it writes with
        self,
        directory: Path,
        filler: Filler,
        disk: Disk,
        statistics: Statistics,
        *,
        position: Position,
        segment: Segment,
        synced: bool,
    ) -> None:
        self.written_bytes = 0  # of the journal, since it was opened
        self._directory = directory
        self._filler = filler
        self._disk = disk
        self._statistics = statistics
        self._segment = segment
        self._seq = position.seq
        self._offset = position.offset
        self._synced = synced
        self._late = False
        self._used: list[int] = []  # earlier segments, not recycled yet

    @property
    def position(self) -> Position:
        """Where the next frame goes."""
        return Position(self._seq, self._segment.number, self._offset)

    def append(self, payload: bytes) -> int:
        """Returns the frame's number. After an OSError nothing may follow."""
        segment = self._segment
        frame = encode_frame(self._seq, payload, segment.salt, synced=self._synced)
        end = self._offset + len(frame)
        if end > segment.size_bytes and self._offset > BLOCK_BYTES and self._switch():
            return self.append(payload)
        self._disk.write(segment.file, frame, self._offset)
        if self._synced:
            self._disk.sync(segment.file)
        taken = align(end) - self._offset
        self._offset += taken
        self.written_bytes += taken
        self._statistics.commits += 1
        self._statistics.bytes_written += taken
        seq = self._seq
        self._seq += 1
        return seq

    def recycle(self, stored: Position) -> None:
        """A checkpoint holds what stands before ``stored``."""
        done = [number for number in self._used if number < stored.segment]
        self._used = [number for number in self._used if number >= stored.segment]
        for number in done:
            self._filler.recycle(segment_path(self._directory, number))

    def close(self) -> None:
        os.close(self._segment.file)

    def _switch(self) -> bool:
        segment = self._filler.take()
        if segment is None:
            if not self._late:
                self._late = True
                self._statistics.segments_late += 1
            return False
        os.close(self._segment.file)
        self._used.append(self._segment.number)
        self._segment, self._offset, self._late = segment, BLOCK_BYTES, False
        return True
