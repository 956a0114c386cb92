"""Any verbs, ticks, crashes and stops: what was committed is what comes back."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import sleep
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from felixresp.engine.nodes import Slice
from tests.storage.house import JournalHouse, small

consumers = st.sampled_from([b"alice", b"bob"])
keys = st.sampled_from([b"jobs", b"jobs", b"mails"])
places = st.floats(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """The house, and what it looked like at the last commit."""

    @initialize()
    def build(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.house = JournalHouse(self.directory, small(checkpoint_bytes=4096))
        self.house.open()
        self.house.append(9)
        self.house.poll(5)
        self.commit()
        self.committed: dict[str, Any] = self.house.describe()
        self.replies: list[tuple[list[bytes | Slice], bytes]] = []

    def teardown(self) -> None:
        self.restart(clean=True)
        self.house.store.close()
        shutil.rmtree(self.directory)

    def ids(self, key: bytes = b"jobs") -> list[int]:
        stream = self.house.stream(key)
        return self.house.run(lambda: stream.read_after(0, 10**6, 2**40))[0]

    def pick(self, place: float, key: bytes = b"jobs") -> list[int]:
        ids = self.ids(key)
        at = int(place * len(ids))
        return ids[at : at + 2]

    # --- verbs

    @rule(key=keys, count=st.integers(1, 9), size=st.sampled_from([1, 30, 3000]))
    def append(self, key: bytes, count: int, size: int) -> None:
        self.house.append(count, key, size)

    @rule(key=keys, place=places)
    def delete(self, key: bytes, place: float) -> None:
        self.house.delete(*self.pick(place, key), key=key)

    @rule(key=keys, length=st.integers(0, 20), whole=st.booleans())
    def trim(self, key: bytes, length: int, whole: bool) -> None:
        self.house.trim(length, key, whole=whole)

    @rule(
        count=st.integers(1, 8),
        consumer=consumers,
        user=st.sampled_from([b"default", b"ann"]),
        receipts=st.booleans(),
        client_id=st.integers(0, 2),
    )
    def poll(
        self, count: int, consumer: bytes, user: bytes, receipts: bool, client_id: int
    ) -> None:
        group = self.house.group()
        self.house.pause(paused=False)
        if not group.owed and not self.house.run(lambda: group.unread):
            self.house.append(count)
        self.house.poll(
            count, consumer, user=user, receipts=receipts, client_id=client_id
        )

    @rule(client_id=st.integers(1, 2))
    def disconnect(self, client_id: int) -> None:
        self.house.disconnect(client_id)

    @rule(consumer=consumers)
    def read_again(self, consumer: bytes) -> None:
        self.house.read_again(consumer)

    @rule(place=places)
    def ack(self, place: float) -> None:
        self.house.ack(*self.pick(place))

    @rule(place=places)
    def ack_pending(self, place: float) -> None:
        pending = list(self.house.group().pending_from())
        self.house.ack(*pending[: int(place * 5)])

    @rule(place=places, force=st.booleans(), just_id=st.booleans())
    def claim(self, place: float, force: bool, just_id: bool) -> None:
        self.house.claim(*self.pick(place), force=force, just_id=just_id)

    @rule(
        place=places,
        mode=st.sampled_from([b"SILENT", b"FAIL", b"FATAL"]),
        delay_ms=st.sampled_from([None, 5, 10**7]),
    )
    def nack(self, place: float, mode: bytes, delay_ms: int | None) -> None:
        pending = list(self.house.group().pending_from())
        at = int(place * len(pending))
        self.house.nack(*pending[at : at + 2], mode=mode, delay_ms=delay_ms)

    @rule(most=st.integers(1, 5), ms=st.integers(1, 100_000))
    def extend(self, most: int, ms: int) -> None:
        pending = list(self.house.group().pending_from())
        self.house.extend(*pending[:most], ms=ms)

    @rule()
    def lapse(self) -> None:
        self.house.lapse()

    @rule(
        own=st.sampled_from(
            [
                {"mode": "lease"},
                {"mode": "redis"},
                {"durable-claims": "yes"},
                {"durable-claims": "no"},
                {"backoff": "exponential 10 2 9000 .5"},
                {"lapse-backoff": "fixed 700", "visibility-timeout-ms": "300"},
                {"claims-follow": "connection", "max-attempts": "9"},
                {"disconnect-grace-ms": "100"},
            ]
        )
    )
    def configure(self, own: dict[str, str]) -> None:
        self.house.configure(own)

    @rule(most=st.integers(1, 3), discard=st.booleans())
    def handle_dead(self, most: int, discard: bool) -> None:
        dead = self.house.group().dead_letters.ids()[:most]
        if discard:
            self.house.discard(*dead)
        else:
            self.house.redrive(*dead)

    @rule(key=keys, place=places, rare=st.integers(0, 15))
    def seldom(self, key: bytes, place: float, rare: int) -> None:
        """One of these at a time: they leave little of what was there."""
        house, keyspace = self.house, self.house.keyspace
        match rare:
            case 0:
                keyspace.destroy_group(house.group())
            case 1:
                keyspace.drop(house.stream(key))
            case 2:
                keyspace.rename(house.stream(b"mails"), 0, b"jobs")
            case 3:
                keyspace.set_expiry(house.stream(key), int(place * 10**13))
            case 4:
                keyspace.set_string(1, b"text", b"%f" % place)
            case 5:
                house.remove_consumer(b"alice" if place > 0.5 else b"bob")
            case 6:
                ids = self.ids()
                house.move(ids[int(place * (len(ids) - 1))] if ids else 0)
            case 7:
                ids = self.ids()
                house.seek(ids[int(place * (len(ids) - 1))] if ids else 0)
            case 8:
                house.pause(paused=True)
            case 9 if house.group().mode.leases:
                house.learn(int(place * 5000) + 1)
            case _:
                house.append(rare, key)

    # --- replies on their way

    @rule(key=keys)
    def reply(self, key: bytes) -> None:
        stream = self.house.stream(key)
        _, parts = self.house.run(
            lambda: stream.range(0, 2**128 - 1, None, reverse=False)
        )
        read = self.house.run(lambda: stream.read_after(0, 10**6, 2**40))
        whole = b"".join(read[1])
        self.replies.append((parts, whole))

    @precondition(lambda self: bool(self.replies))
    @rule()
    def drain(self) -> None:
        parts, whole = self.replies.pop(0)
        sent = b""
        for part in parts:
            if isinstance(part, Slice):
                if not part.node.resident:
                    self.house.store.read(part.stream, [part.node])
                sent += part.bytes()
                part.release()
            else:
                sent += part
        assert sent == whole

    # --- the store

    @rule()
    def commit(self) -> None:
        self.house.commit()
        self.committed = self.house.describe()

    @rule(times=st.integers(1, 3), passed_ms=st.sampled_from([1, 40_000]))
    def tick(self, times: int, passed_ms: int) -> None:
        for _ in range(times):
            self.house.tick(passed_ms)

    @rule()
    def cut(self) -> None:
        """A checkpoint begins; what comes now is not in it."""
        self.commit()
        self.house.tick(40_000)
        self.house.tick(40_000)

    @rule(commit=st.booleans())
    def end_checkpoint(self, commit: bool) -> None:
        """What was changed in the meantime may be lost: it is not in there."""
        if commit:
            self.commit()
        before = self.house.store.statistics.checkpoints
        for _ in range(1000):
            delay_ms = self.house.tick()
            idle = delay_ms is None or delay_ms > 5
            if idle or self.house.store.statistics.checkpoints > before:
                return
            sleep(0.0005)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.replies = []
        if clean:
            self.commit()
        found = self.house.stop() if clean else self.house.crash()

        assert self.house.describe() == self.committed
        assert found.clean or not clean
        assert self.house.keyspace.cache.bytes >= 0
        self.house.resume()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
