"""The order in which SCAN meets the keys of one database.

Each key gets a place, higher than all before it, and keeps it for as long as the
key exists, whatever its value; a scan goes from the newest place down. So a key
that is there all the time is met, keys that come meanwhile are never waited for,
and a cursor is a place: it holds no state and never grows old. Places begin anew
when the process does, as Redis's cursors do.

A deleted key leaves its entry behind until the dead ones are half of all. A key
that comes back before that has two entries, so two calls of a scan may give it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Container, Sized
from typing import Protocol

_SPARE_MAX = 64
_VISITS_PER_KEY = 10  # entries looked at for each key that is asked for


class _Keys(Container[bytes], Sized, Protocol):
    """The keys that exist."""


class KeyOrder:
    __slots__ = ("_existing", "_keys", "_next", "_places")

    def __init__(self, existing: _Keys) -> None:
        self._existing = existing
        self._keys: list[bytes] = []
        self._places = array("Q")  # ascending, one for each of _keys
        self._next = 1

    def add(self, key: bytes) -> None:
        """The key exists now."""
        self._keys.append(key)
        self._places.append(self._next)
        self._next += 1
        if len(self._keys) > 2 * len(self._existing) + _SPARE_MAX:
            self._forget_dead()

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About ``count`` keys below the cursor, and the next cursor; 0 is both
        the first one and the sign of the end."""
        if not self._existing:
            return 0, []
        at = bisect_left(self._places, cursor) if cursor else len(self._places)
        end = max(at - count * _VISITS_PER_KEY, 0)
        found: dict[bytes, None] = {}
        while at > end and len(found) < count:
            at -= 1
            if self._keys[at] in self._existing:
                found[self._keys[at]] = None
        return (self._places[at] if at else 0), list(found)

    def _forget_dead(self) -> None:
        """Of a key's entries the lowest stays: every running scan meets it yet."""
        kept = dict.fromkeys(key for key in self._keys if key in self._existing)
        keys, places = [], array("Q")
        for key, place in zip(self._keys, self._places, strict=True):
            if key in kept:
                del kept[key]
                keys.append(key)
                places.append(place)
        self._keys, self._places = keys, places
