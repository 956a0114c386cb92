"""How many bytes of sealed nodes stay in memory, and which leave first.

Only a node whose payload is in the store may leave; the oldest goes first.
Between checkpoints the total may pass the limit by what is not stored yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .nodes import Node


class NodeCache:
    """Counts ``bytes`` of sealed nodes in memory and evicts the stored ones."""

    def __init__(self) -> None:
        self.bytes = 0
        self._stored: deque[Node] = deque()

    def sealed(self, node: Node) -> None:
        self.bytes += node.kept_bytes

    def stored(self, nodes: Iterable[Node]) -> None:
        """The nodes' payloads are in the store now: they may be evicted."""
        for node in nodes:
            node.stored = True
            if node.payload is not None:
                self._stored.append(node)

    def load(self, node: Node, payload: bytes, index: bytes) -> None:
        """Bring an evicted node back; one that left its stream is not counted."""
        if node.payload is None:
            node.payload, node.index = payload, index
            if node.stored:
                self.bytes += node.kept_bytes
                self._stored.append(node)

    def forget(self, node: Node) -> None:
        """The node left its stream; a pinned one keeps its payload."""
        self.bytes -= node.kept_bytes
        node.stored = False
        if not node.pins:
            node.evict()

    def unseal(self, node: Node) -> None:
        self.bytes -= node.kept_bytes
        node.unseal()

    def shrink(self, bytes_max: int) -> None:
        for _ in range(len(self._stored)):
            if self.bytes <= bytes_max:
                return
            node = self._stored.popleft()
            if node.pins:
                self._stored.append(node)
            elif node.payload is not None and node.stored:
                self.bytes -= node.kept_bytes
                node.evict()
