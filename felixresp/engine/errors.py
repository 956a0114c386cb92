"""What a verb may refuse with. A refusal comes before anything changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .group import Group
    from .nodes import Node
    from .stream import Stream


class EngineError(Exception):
    """A verb refused; nothing has changed."""


class WrongType(EngineError):
    """The key holds another kind of value."""


class WrongMode(EngineError):
    """The group's mode has no such thing."""


class IDTooSmall(EngineError):
    """The ID is equal or smaller than the stream's top item."""


class IDsExhausted(EngineError):
    """The stream holds the last possible ID."""


class NotResident(Exception):
    """The verb needs nodes or groups that are not in memory: read them and call
    again."""

    def __init__(
        self, stream: Stream, nodes: Sequence[Node], groups: Sequence[Group] = ()
    ) -> None:
        super().__init__(f"stream {stream.number}: {len(nodes)} nodes")
        self.stream = stream
        self.nodes = nodes
        self.groups = groups
