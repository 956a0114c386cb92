"""The ACL log: what was refused to whom, the newest first.

The same refusal within a minute is counted, not listed again; the log never holds
more than ``acllog-max-len`` refusals, and of each word only its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ..config import Settings

_SAME_MS = 60_000
_WORD_BYTES_MAX = 1024


@dataclass(slots=True)
class LoggedRefusal:
    """``reason`` is command, key, group or auth."""

    number: int
    reason: bytes
    context: bytes  # toplevel or multi
    word: bytes  # the command, key or group
    user: bytes
    client: bytes  # its line of CLIENT LIST
    created_ms: int
    updated_ms: int
    count: int = 1


class Refusals:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._newest_first: list[LoggedRefusal] = []
        self._number = 0
        self.counts: Counter[bytes] = Counter()  # by reason, since the last RESETSTAT

    def newest(self, count: int) -> Iterator[LoggedRefusal]:
        return islice(self._newest_first, max(count, 0))

    def clear(self) -> None:
        self._newest_first.clear()

    def add(
        self,
        reason: bytes,
        context: bytes,
        word: bytes,
        user: bytes,
        client: bytes,
        wall_ms: int,
    ) -> None:
        what = reason, context, word[:_WORD_BYTES_MAX], user[:_WORD_BYTES_MAX]
        log = self._newest_first
        self.counts[reason] += 1
        for place, known in enumerate(log):
            same = (known.reason, known.context, known.word, known.user) == what
            if same and abs(wall_ms - known.updated_ms) <= _SAME_MS:
                known.count += 1
                known.updated_ms, known.client = wall_ms, client
                log.insert(0, log.pop(place))
                break
        else:
            log.insert(0, LoggedRefusal(self._number, *what, client, wall_ms, wall_ms))
            self._number += 1
        del log[self._settings.acllog_max_len :]
