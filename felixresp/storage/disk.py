"""The system calls of the journal and its lock, in one place.

Faults are injected here: a test hands the store a disk of its own.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .base import Locked, StoreError

_LOCK = "lock"


class Disk:
    """Each call returns when the kernel has done it, or raises OSError."""

    def write(self, file: int, data: bytes, offset: int) -> None:
        written = os.pwrite(file, data, offset)
        while written < len(data):
            data = data[written:]
            offset += written
            written = os.pwrite(file, data, offset)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


class Lock:
    """Holds the directory for this process. Raises Locked or StoreError."""

    def __init__(self, directory: Path) -> None:
        self._file = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            pid = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            self.release()
            msg = (
                f"{directory} is in use by process {pid or 'unknown'};"
                " stop it or pass another --dir"
            )
            raise Locked(msg) from None
        except OSError as exc:
            self.release()
            msg = f"cannot write in {directory}: {exc.strerror}; pass another --dir"
            raise StoreError(msg) from None

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
