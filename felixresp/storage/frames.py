"""Segments and frames: the journal's bytes.

A segment starts with a block that names its version, number and random salt.
Frames follow, each on a block boundary. A frame's checksum covers the salt, so
what an earlier life of the file left behind is never taken for a frame.
"""

from __future__ import annotations

import os
import re
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from .base import Corrupt, StoreError

SEGMENT_VERSION = 1
FRAME_VERSION = 2  # of the frame and of the changes in it, see layouts.py
BLOCK_BYTES = 512

_NAME = re.compile(r"journal-(\d{16})")
_SEGMENT_MAGIC = b"felixjnl"
_SEGMENT = Struct("<8sIQ16sI")  # magic, version, number, salt, checksum of these
_MAGIC = b"\xf5fxJ"
_FRAME = Struct("<4sBBIQQ")  # magic, version, flags, checksum, seq, payload bytes
_SEALED = Struct("<BBQQ")  # what the checksum covers beside salt and payload
_UNSYNCED = 1  # flag: written without a sync; frames before it may be missing
FRAME_BYTES = _FRAME.size


class Position(NamedTuple):
    """Where the frame ``seq`` stands, or will."""

    seq: int
    segment: int
    offset: int


class Frame(NamedTuple):
    seq: int
    payload: bytes
    end: int  # where the next one starts
    synced: bool


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"journal-{number:016}"


def segment_numbers(directory: Path) -> list[int]:
    """The segments in a directory, ascending."""
    found = map(_NAME.fullmatch, os.listdir(directory))
    return sorted(int(match[1]) for match in found if match)


def encode_segment(number: int, salt: bytes) -> bytes:
    """The first block."""
    fixed = _SEGMENT.pack(_SEGMENT_MAGIC, SEGMENT_VERSION, number, salt, 0)[:-4]
    return (fixed + crc32(fixed).to_bytes(4, "little")).ljust(BLOCK_BYTES, b"\0")


def read_salt(data: mmap, path: Path, number: int) -> bytes:
    """Raises Corrupt, or StoreError for an unknown version."""
    if len(data) >= BLOCK_BYTES:
        magic, version, named, salt, check = _SEGMENT.unpack_from(data)
        if crc32(data[: _SEGMENT.size - 4]) == check and magic == _SEGMENT_MAGIC:
            refuse_unknown(version, SEGMENT_VERSION, str(path))
            if named == number:
                return bytes(salt)
    msg = f"{path}: the segment's header at offset 0 is damaged"
    raise Corrupt(msg)


def refuse_unknown(version: int, known: int, place: str) -> None:
    if version != known:
        msg = (
            f"{place}: format version {version} is unknown to this felixresp,"
            f" which reads version {known}; use the release that wrote it"
        )
        raise StoreError(msg)


def encode_frame(seq: int, payload: bytes, salt: bytes, *, synced: bool) -> bytes:
    flags = 0 if synced else _UNSYNCED
    sealed = salt + _SEALED.pack(FRAME_VERSION, flags, seq, len(payload))
    check = crc32(payload, crc32(sealed))
    return _FRAME.pack(_MAGIC, FRAME_VERSION, flags, check, seq, len(payload)) + payload


def read_frame(data: mmap, offset: int, salt: bytes, seq_min: int) -> Frame | None:
    """The frame at ``offset``, None where no valid one with that seq or more is.

    Raises StoreError for an unknown version.
    """
    if offset + FRAME_BYTES > len(data):
        return None
    magic, version, flags, check, seq, length = _FRAME.unpack_from(data, offset)
    start = offset + FRAME_BYTES
    if magic != _MAGIC or seq < seq_min or length > len(data) - start:
        return None
    payload = data[start : start + length]
    sealed = salt + _SEALED.pack(version, flags, seq, length)
    if crc32(payload, crc32(sealed)) != check:
        return None
    refuse_unknown(version, FRAME_VERSION, f"frame {seq} at offset {offset}")
    return Frame(seq, payload, align(start + length), not flags & _UNSYNCED)


def find_frame(
    data: mmap, offset: int, salt: bytes, seq_min: int
) -> tuple[int, Frame] | None:
    """The first valid frame at or after ``offset``, and its place."""
    at = data.find(_MAGIC, offset)
    while at >= 0:
        if at % BLOCK_BYTES == 0:
            frame = read_frame(data, at, salt, seq_min)
            if frame is not None:
                return at, frame
        at = data.find(_MAGIC, at + 1)
    return None


def torn_length(data: mmap, offset: int, seq: int) -> int:
    """Bytes of a write of frame ``seq`` at ``offset`` that did not finish.

    Anything else there is zeros, or was left by an earlier life of the file.
    """
    if offset + FRAME_BYTES > len(data):
        return 0
    magic, _, _, _, found, length = _FRAME.unpack_from(data, offset)
    if magic != _MAGIC or found != seq:
        return 0
    return int(min(FRAME_BYTES + length, len(data) - offset))


def align(offset: int) -> int:
    return -(-offset // BLOCK_BYTES) * BLOCK_BYTES
