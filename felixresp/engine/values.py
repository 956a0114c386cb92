"""What a key may hold."""

from __future__ import annotations

from .stream import Stream


class String:
    """A string value."""

    __slots__ = ("data", "db", "epoch", "expire_ms", "key", "number")

    def __init__(self, number: int, db: int, key: bytes) -> None:
        self.number = number
        self.db = db
        self.key = key
        self.data = b""
        self.expire_ms: int | None = None
        self.epoch = -1


Value = Stream | String
