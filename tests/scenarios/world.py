"""One stream with one group on a virtual clock, for tests that tell a story.

Entries are named by small integers: entry 3 has the ID ``3-0``.
"""

from __future__ import annotations

from collections.abc import Sequence

from felixresp.config import Settings, Value
from felixresp.engine import claims, dead_letters, poll, takeover
from felixresp.engine.changes import Change, ConsumerDeleted
from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace
from felixresp.storage.codec import Decoder, encode_changes

VISIBILITY_MS = 1000


class World:
    """What a server would hold; ``now_ms`` moves only when a test moves it."""

    def __init__(self, entries: int = 0, **settings: Value) -> None:
        settings.setdefault("group_visibility_timeout_ms", VISIBILITY_MS)
        self.settings = Settings(**settings)
        self.keyspace = Keyspace(self.settings)
        self.stream = self.keyspace.create_stream(0, b"jobs")
        self.group = self.keyspace.create_group(self.stream, b"workers", 0, None)
        self.now_ms = 0
        self.journal: list[bytes] = []
        self.append(*range(1, entries + 1))

    def append(self, *numbers: int, size: int = 1) -> None:
        for number in numbers:
            self.stream.append(number << 64, [b"job", b"x" * size])

    def poll(
        self,
        consumer: bytes = b"alice",
        count: int = 1000,
        *,
        group: Group | None = None,
        no_ack: bool = False,
        bytes_max: int = 2**63,
        client: int = 0,
    ) -> list[int]:
        group = group or self.group
        polled = poll.poll(
            group,
            claims.consumer_named(group, consumer, self.now_ms),
            self.now_ms,
            count=count,
            client_id=client,
            bytes_max=bytes_max,
            no_ack=no_ack,
        )
        return _numbers(polled.ids)

    def ack(self, *numbers: int, group: Group | None = None) -> int:
        return claims.ack(group or self.group, _ids(numbers))

    def claim(
        self,
        consumer: bytes,
        *numbers: int,
        min_idle_ms: int = 0,
        force: bool = False,
        just_id: bool = False,
        last: int = 0,
        client: int = 0,
    ) -> list[int]:
        options = takeover.ClaimOptions(
            min_idle_ms, self.now_ms, None, force, just_id, last << 64
        )
        named = claims.consumer_named(self.group, consumer, self.now_ms)
        polled = takeover.claim(
            self.group, named, _ids(numbers), options, self.now_ms, client
        )
        return _numbers(polled.ids)

    def autoclaim(self, consumer: bytes, min_idle_ms: int = 0) -> list[int]:
        named = claims.consumer_named(self.group, consumer, self.now_ms)
        answer = takeover.autoclaim(
            self.group, named, 0, self.now_ms, min_idle_ms=min_idle_ms, count=100
        )
        return _numbers(answer.polled.ids)

    def history(self, consumer: bytes, client: int = 0) -> list[int]:
        named = claims.consumer_named(self.group, consumer, self.now_ms)
        read = takeover.history(
            self.group, named, 0, self.now_ms, count=1000, client_id=client
        )
        return _numbers([id_ for id_, _ in read])

    def set_id(self, number: int) -> None:
        claims.move(self.group, number << 64, None)

    def delete_consumer(self, name: bytes) -> None:
        self.group.record(ConsumerDeleted(self.group, self.group.consumers[name]))

    def redrive(self, *numbers: int) -> int:
        return dead_letters.redrive(self.group, _ids(numbers))

    def discard(self, *numbers: int) -> int:
        return dead_letters.discard(self.group, _ids(numbers))

    def lose_reply(self) -> None:
        """The last command's connection was gone before its reply left."""
        handed, self.keyspace.handed = self.keyspace.handed, []
        self.keyspace.return_claims(handed)

    def at(self, now_ms: int) -> None:
        """Time goes on to ``now_ms``; no timer fires."""
        self.now_ms = now_ms

    def fire_timer(self) -> None:
        """What the server does at the earliest deadline."""
        while (due := self.keyspace.next_deadline()) is not None and due <= self.now_ms:
            self.keyspace.expire_claims(self.now_ms)

    def lapse(self) -> None:
        """Every claim's deadline passes."""
        self.now_ms += VISIBILITY_MS
        self.fire_timer()

    def kill(self, consumer: bytes = b"alice") -> None:
        """Entries die: they are handed out and lapse until they are spent."""
        for _ in range(self.settings.group_max_attempts):
            self.poll(consumer)
            self.lapse()

    def changes(self) -> list[Change]:
        """Those since the last call; the journal has them too."""
        changes = self.keyspace.take()
        self.journal.append(encode_changes(changes))
        return changes

    def woken(self) -> bool:
        """Whether clients that wait were served again since the last look."""
        return any(change.WAKES for change in self.changes())

    def crash(self, batches: int | None = None) -> None:
        """Start again from the journal, or from its first ``batches``."""
        self.changes()
        self.journal = self.journal[:batches]
        keyspace = Keyspace(self.settings)
        decoder = Decoder(keyspace)
        for data in self.journal:
            for change in decoder.changes(data):
                keyspace.apply(change)
        keyspace.recover(crashed=True)
        self.keyspace = keyspace
        stream = keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self.group = stream.groups[b"workers"]

    @property
    def cursor(self) -> int:
        """The number of the last entry at or below the cursor."""
        return self.group.cursor >> 64

    @property
    def dead(self) -> list[int]:
        return _numbers(self.group.dead_letters.ids())

    @property
    def owed(self) -> list[int]:
        return _numbers(list(self.group.owed_from()))

    def attempts(self, number: int) -> int:
        return self.group.tally(number << 64).attempts

    def deliveries(self, number: int) -> int:
        return self.group.tally(number << 64).deliveries

    def is_finished(self, number: int) -> bool:
        id_ = number << 64
        return id_ not in self.group.pending and id_ <= self.group.head


def _ids(numbers: Sequence[int]) -> list[int]:
    return [number << 64 for number in numbers]


def _numbers(ids: Sequence[int]) -> list[int]:
    return [id_ >> 64 for id_ in ids]
