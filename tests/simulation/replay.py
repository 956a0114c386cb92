"""A journal in memory: changes with numbers in place of objects, and their replay."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from felixresp.config import Settings
from felixresp.engine.changes import Change, Created, GroupCreated
from felixresp.engine.group import Group
from felixresp.engine.handouts import Consumer
from felixresp.engine.keyspace import Keyspace, String
from felixresp.engine.stream import Stream


Written = tuple[Change, dict[str, Any]]


def write_down(change: Change) -> Written:
    """The change, free of live objects, and what its target looked like."""
    target: Any = change.target
    looks: dict[str, Any] = {"number": target.number}
    if isinstance(change, Created):
        looks |= {"db": target.db, "key": target.key, "type": type(target)}
    if isinstance(change, GroupCreated):
        names = ("name", "head", "cursor", "entries_read", "passed")
        looks |= {name: getattr(target, name) for name in names}
        looks["stream"] = target.stream.number
    consumer = getattr(change, "consumer", None)
    parts: dict[str, Any] = {"target": None}
    if consumer is not None:
        looks["consumer"] = consumer.number, consumer.name
        parts["consumer"] = None
    for field in fields(change):
        if field.name not in ("target", "consumer"):
            parts[field.name] = copy.copy(getattr(change, field.name))
    return type(change)(**parts), looks


class Replay:
    """A fresh keyspace that is told the changes again."""

    def __init__(self, settings: Settings) -> None:
        self.keyspace = Keyspace(settings)
        self._targets: dict[int, Stream | String | Group] = {}

    def apply(self, written: Iterable[Written]) -> None:
        for change, looks in written:
            parts: dict[str, Any] = {"target": self._target(change, looks)}
            if "consumer" in looks:
                parts["consumer"] = self._consumer(parts["target"], *looks["consumer"])
            self.keyspace.apply(replace(change, **parts))

    def _target(self, change: Change, looks: dict[str, Any]) -> Stream | String | Group:
        number = looks["number"]
        if isinstance(change, Created):
            place = number, looks["db"], looks["key"]
            kind = looks["type"]
            value = Stream(self.keyspace, *place) if kind is Stream else String(*place)
            self._targets[number] = value
        elif isinstance(change, GroupCreated):
            stream = self._targets[looks["stream"]]
            assert isinstance(stream, Stream)
            group = Group(stream, number, looks["name"])
            for name in ("head", "cursor", "entries_read", "passed"):
                setattr(group, name, looks[name])
            self._targets[number] = group
        return self._targets[number]

    def _consumer(self, group: Group, number: int, name: bytes) -> Consumer:
        known = group.consumers.get(name)
        return known if known is not None else Consumer(number, name)
