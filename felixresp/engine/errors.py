"""What a verb may refuse with. A refusal comes before anything changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .nodes import Node
    from .stream import Stream


class EngineError(Exception):
    """A verb refused; nothing has changed."""


class WrongType(EngineError):
    """The key holds another kind of value."""


class IDTooSmall(EngineError):
    """The ID is equal or smaller than the stream's top item."""


class IDsExhausted(EngineError):
    """The stream holds the last possible ID."""


class NotResident(Exception):
    """The verb needs nodes that are not in memory: read them and call again."""

    def __init__(self, stream: Stream, nodes: Sequence[Node]) -> None:
        super().__init__(f"stream {stream.number}: {len(nodes)} nodes")
        self.stream = stream
        self.nodes = nodes
