"""One stream with one group on a virtual clock, for tests that tell a story.

Entries are named by small integers: entry 3 has the ID ``3-0``. What settles
takes such a number or a receipt. A client is a connection: it has a number, and
0 stands for one that nothing follows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from felixresp.config import Settings, Value
from felixresp.engine import (
    admin,
    claims,
    dead_letters,
    members,
    poll,
    settle,
    takeover,
)
from felixresp.engine.changes import Change
from felixresp.engine.dead_letters import DeadLetter
from felixresp.engine.explain import Explained, explain
from felixresp.engine.group import Group
from felixresp.engine.handouts import DEFAULT_USER, Member
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.settle import FAIL, Nack, Receipt
from felixresp.storage.codec import Decoder, encode_changes

VISIBILITY_MS = 1000


class World:
    """What a server would hold; ``now_ms`` moves only when a test moves it."""

    def __init__(self, entries: int = 0, **settings: Value) -> None:
        settings.setdefault("group_visibility_timeout_ms", VISIBILITY_MS)
        self.settings = Settings(**settings)
        self._chance = random.Random(1)
        self.keyspace = self._new_keyspace()
        self.stream = self.keyspace.create_stream(0, b"jobs")
        self.group = self.keyspace.create_group(self.stream, b"workers", 0, None)
        self.now_ms = 0
        self.journal: list[bytes] = []
        self.append(*range(1, entries + 1))

    def append(self, *numbers: int, size: int = 1) -> None:
        for number in numbers:
            self.stream.append(number << 64, [b"job", b"x" * size])

    def delete(self, *numbers: int) -> None:
        self.stream.delete(_ids(numbers))

    # --- hand-outs

    def member(
        self, name: bytes, client: int = 0, user: bytes = DEFAULT_USER
    ) -> Member:
        return members.member_named(self.group, name, self.now_ms, client, user)

    def poll(  # noqa: PLR0913 - the arguments of XPOLL
        self,
        consumer: bytes = b"alice",
        count: int = 1000,
        *,
        group: Group | None = None,
        no_ack: bool = False,
        bytes_max: int = 2**63,
        client: int = 0,
        user: bytes = DEFAULT_USER,
        visibility_ms: int | None = None,
        reclaim: bool = False,
    ) -> list[int]:
        """What it handed out. Every claim has a receipt, asked for or not."""
        group = group or self.group
        member = members.member_named(group, consumer, self.now_ms, client, user)
        if reclaim:
            members.reclaim(group, member, client)
        polled = poll.poll(
            group,
            member,
            self.now_ms,
            count=count,
            client_id=client,
            bytes_max=bytes_max,
            no_ack=no_ack,
            visibility_ms=visibility_ms,
            with_receipts=True,
        )
        return _numbers(polled.ids)

    def claim(  # noqa: PLR0913 - the arguments of XCLAIM
        self,
        consumer: bytes,
        *numbers: int,
        min_idle_ms: int = 0,
        force: bool = False,
        just_id: bool = False,
        last: int = 0,
        client: int = 0,
        retry_count: int | None = None,
    ) -> list[int]:
        options = takeover.ClaimOptions(
            min_idle_ms, self.now_ms, retry_count, force, just_id, last << 64
        )
        member = self.member(consumer, client)
        ids = _ids(numbers)
        claimed = takeover.claim(self.group, member, ids, options, self.now_ms, client)
        return _numbers(claimed.ids)

    def autoclaim(
        self, consumer: bytes, min_idle_ms: int = 0, *, client: int = 0
    ) -> list[int]:
        claims.learn(self.group, min_idle_ms, self.now_ms)
        answer = takeover.autoclaim(
            self.group,
            self.member(consumer, client),
            0,
            self.now_ms,
            min_idle_ms=min_idle_ms,
            count=100,
            client_id=client,
        )
        return _numbers(answer.polled.ids)

    def history(
        self, consumer: bytes, client: int = 0, user: bytes = DEFAULT_USER
    ) -> list[int]:
        member = self.member(consumer, client, user)
        read = takeover.history(
            self.group, member, 0, self.now_ms, count=1000, client_id=client
        )
        return _numbers([id_ for id_, _ in read])

    def lose_reply(self) -> None:
        """The last command's connection was gone before its reply left."""
        handed, self.keyspace.handed = self.keyspace.handed, []
        self.keyspace.return_claims(handed, self.now_ms)

    # --- settling

    def receipt(self, number: int) -> Receipt:
        """Of the claim that stands, or stood last, on the entry."""
        return number << 64, self.group.pending[number << 64].nonce

    def ack(self, *which: int | Receipt, group: Group | None = None) -> int:
        group = group or self.group
        return settle.ack(group, self._meant(which, group))

    def nack(
        self,
        *which: int | Receipt,
        mode: bytes = FAIL,
        delay_ms: int | None = None,
        reason: bytes = b"",
        retry_count: int | None = None,
        force: bool = False,
        consumer: bytes | None = None,
    ) -> int:
        holder = None if consumer is None else self.member(consumer)
        by_holder = consumer is not None
        wish = Nack(mode, retry_count, force, delay_ms, reason, holder, by_holder)
        ids = self._meant(which, self.group)
        return settle.nack(self.group, ids, wish, self.now_ms)

    def extend(
        self, which: int | Receipt, ms: int, *, consumer: bytes | None = None
    ) -> int:
        """The granted ms, or 0; needs a receipt or the consumer."""
        claims.expire(self.group, self.now_ms)
        ids = self._meant([which], self.group)
        if consumer is not None:
            member = self.member(consumer)
            ids = [i for i in ids if settle.holds(self.group, member, i, self.now_ms)]
        if not ids:
            return 0
        return settle.extend(self.group, ids[0], ms, self.now_ms)

    # --- managing

    def set_id(self, number: int) -> None:
        claims.move(self.group, number << 64, None)

    def seek(self, number: int) -> None:
        admin.seek(self.group, number << 64, self.now_ms)

    def configure(self, **settings: Value) -> None:
        named = {name.replace("_", "-"): str(v) for name, v in settings.items()}
        admin.configure(self.group, named, self.now_ms)

    def pause(self) -> None:
        admin.pause(self.group, self.now_ms, paused=True)

    def resume(self) -> None:
        admin.pause(self.group, self.now_ms, paused=False)

    def remove_consumer(self, name: bytes, user: bytes | None = None) -> int:
        consumer = self.group.consumers[name]
        return members.remove_consumer(self.group, consumer, user, self.now_ms)

    def redrive(self, *numbers: int) -> int:
        return dead_letters.redrive(self.group, _ids(numbers))

    def discard(self, *numbers: int) -> int:
        return dead_letters.discard(self.group, _ids(numbers))

    # --- time, connections, restarts

    def at(self, now_ms: int) -> None:
        """Time goes on to ``now_ms``; no timer fires."""
        self.now_ms = now_ms

    def fire_timer(self) -> None:
        """What the server does at the earliest deadline."""
        while (due := self.keyspace.next_deadline()) is not None and due <= self.now_ms:
            self.keyspace.expire_claims(self.now_ms)

    def run_to(self, now_ms: int) -> None:
        """Time goes on to ``now_ms``, and every timer fires when it is due."""
        while (due := self.keyspace.next_deadline()) is not None and due <= now_ms:
            self.now_ms = max(self.now_ms, due)
            self.keyspace.expire_claims(self.now_ms)
        self.now_ms = now_ms

    def lapse(self) -> None:
        """Every claim's deadline passes."""
        self.now_ms += VISIBILITY_MS
        self.fire_timer()

    def kill(self, consumer: bytes = b"alice") -> None:
        """Entries die: they are handed out and lapse until they are spent."""
        for _ in range(self.settings.group_max_attempts):
            self.poll(consumer)
            self.lapse()

    def detach(self, client: int) -> None:
        """The connection is closed."""
        self.keyspace.detach(client, self.now_ms)

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
        self._start_again(batches, crashed=True)

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self._start_again(None, crashed=False)

    # --- looking

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

    def letter(self, number: int) -> DeadLetter:
        return self.group.dead_letters.listed[number << 64]

    def attempts(self, number: int) -> int:
        return self.group.tally(number << 64).attempts

    def deliveries(self, number: int) -> int:
        return self.group.tally(number << 64).deliveries

    def skipped_below(self, number: int) -> int:
        return self.group.skips.get(number << 64, 0)

    def explain(self, number: int) -> Explained:
        return explain(self.group, number << 64)

    def state(self, number: int) -> bytes:
        return self.explain(number).state

    def is_finished(self, number: int) -> bool:
        return self.state(number) == b"finished"

    # ---

    def _new_keyspace(self) -> Keyspace:
        return Keyspace(self.settings, lambda: self._chance.getrandbits(64))

    def _meant(self, which: Sequence[int | Receipt], group: Group) -> list[int]:
        """IDs, and those receipts name whose very claims stand."""
        receipts = [one for one in which if isinstance(one, tuple)]
        ids = _ids([one for one in which if isinstance(one, int)])
        return ids + list(settle.by_receipt(group, receipts, self.now_ms))

    def _start_again(self, batches: int | None, *, crashed: bool) -> None:
        self.changes()
        self.journal = self.journal[:batches]
        keyspace = self._new_keyspace()
        decoder = Decoder(keyspace)
        for data in self.journal:
            for change in decoder.changes(data):
                keyspace.apply(change)
        keyspace.resume(self.now_ms, crashed=crashed)
        self.keyspace = keyspace
        stream = keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self.group = stream.groups[b"workers"]


def _ids(numbers: Sequence[int]) -> list[int]:
    return [number << 64 for number in numbers]


def _numbers(ids: Sequence[int]) -> list[int]:
    return [id_ >> 64 for id_ in ids]
