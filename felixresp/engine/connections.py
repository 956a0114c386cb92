"""Which members each connection counts for.

What is gone is forgotten at once: a connection may outlive any number of
streams, groups and consumers that it used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .handouts import Attachment, Consumer, Member

if TYPE_CHECKING:
    from .group import Group


class Connections:
    """By client id."""

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: dict[int, dict[Member, Group]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._members.values()))

    def add(self, client_id: int, group: Group, member: Member) -> None:
        member.connections[client_id] = Attachment()
        self._members.setdefault(client_id, {})[member] = group

    def close(self, client_id: int) -> Iterable[tuple[Member, Group]]:
        """Those it counted for; the caller takes it from them."""
        return self._members.pop(client_id, {}).items()

    def forget(self, consumer: Consumer) -> None:
        """The consumer is gone."""
        for member in consumer.members.values():
            for client_id in member.connections:
                members = self._members[client_id]
                del members[member]
                if not members:
                    del self._members[client_id]
            member.connections.clear()
