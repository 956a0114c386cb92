"""The trimming options of XADD and XTRIM."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import Settings
from ..engine.ids import EntryID
from ..engine.stream import Stream
from .args import Args
from .errors import (
    LIMIT_NEGATIVE,
    LIMIT_WITHOUT_APPROXIMATE,
    LIMIT_WITHOUT_STRATEGY,
    MAXLEN_NEGATIVE,
    MAXLEN_WITH_MINID,
    CommandError,
)

_NODES_PER_LIMIT = 100  # an approximate trim removes about so many nodes at most
_LIMIT_DEFAULT = 10_000  # where nodes have no bound on their entries
_LIMIT_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Trim:
    """``MAXLEN n`` or ``MINID id``; ``limit`` 0 means no limit."""

    length_max: int | None
    min_id: EntryID
    approximate: bool
    limit: int

    def apply(self, stream: Stream) -> int:
        """How many entries went. Raises NotResident."""
        whole, limit = self.approximate, self.limit
        if self.length_max is None:
            return stream.trim_to_id(self.min_id, whole=whole, limit=limit)
        return stream.trim_to_length(self.length_max, whole=whole, limit=limit)


class TrimOptions:
    """Gathers the options word by word."""

    __slots__ = ("_approximate", "_length_max", "_limit", "_min_id", "_strategy")

    def __init__(self) -> None:
        self._strategy = b""
        self._length_max: int | None = None
        self._min_id: EntryID = 0
        self._approximate = False
        self._limit: int | None = None

    def take(self, args: Args) -> bool:
        """Read one option; False, with nothing read, where none begins here."""
        word = args.peek().upper()
        if args.remaining() < 2 or word not in (b"MAXLEN", b"MINID", b"LIMIT"):
            return False
        args.bytes()
        if word == b"LIMIT":
            self._limit = args.int()
            if self._limit < 0:
                raise CommandError(LIMIT_NEGATIVE)
            return True
        if self._strategy:
            raise CommandError(MAXLEN_WITH_MINID)
        self._strategy = word
        if args.remaining() >= 2 and args.peek() in (b"~", b"="):
            self._approximate = args.bytes() == b"~"
        if word == b"MINID":
            self._min_id = args.id()
        else:
            self._length_max = args.int()
            if self._length_max < 0:
                raise CommandError(MAXLEN_NEGATIVE)
        return True

    def trim(self, settings: Settings, without_strategy: bytes = b"") -> Trim | None:
        """What they ask for together; an error text where they must ask for any."""
        if not self._strategy:
            if self._limit:
                raise CommandError(LIMIT_WITHOUT_STRATEGY)
            if without_strategy:
                raise CommandError(without_strategy)
        limit = self._limit
        if limit is not None and not self._approximate:
            raise CommandError(LIMIT_WITHOUT_APPROXIMATE)
        if not self._strategy:
            return None
        if limit is None:
            node_max = settings.stream_node_max_entries
            limit = min(_NODES_PER_LIMIT * node_max or _LIMIT_DEFAULT, _LIMIT_MAX)
        return Trim(self._length_max, self._min_id, self._approximate, limit)
