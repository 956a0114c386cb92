"""Watched keys: each has a version that rises with every change of the key."""

from __future__ import annotations

from collections.abc import Iterable

from .changes import Change, Renamed, StreamSet
from .group import Group

Place = tuple[int, bytes]  # database, key


class Watches:
    def __init__(self) -> None:
        self.versions: dict[Place, int] = {}
        self._watchers: dict[Place, int] = {}

    def watch(self, db: int, key: bytes) -> int:
        place = db, key
        self._watchers[place] = self._watchers.get(place, 0) + 1
        return self.versions.setdefault(place, 0)

    def unwatch(self, db: int, key: bytes) -> None:
        place = db, key
        self._watchers[place] -= 1
        if not self._watchers[place]:
            del self._watchers[place], self.versions[place]

    def version(self, db: int, key: bytes) -> int:
        """Differs from what watch() gave once the key was touched."""
        return self.versions.get((db, key), 0)

    def note(self, changes: Iterable[Change]) -> None:
        """As in Redis, what happens to groups, and XSETID, touches no key."""
        for change in changes:
            value = change.target
            if isinstance(value, Group) or isinstance(change, StreamSet):
                continue
            places = [(value.db, value.key)]
            if isinstance(change, Renamed):
                places.append((change.old_db, change.old_key))
            for place in places:
                if place in self.versions:
                    self.versions[place] += 1
