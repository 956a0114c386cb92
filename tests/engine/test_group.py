"""A group's bookkeeping: orders that are rebuilt, snapshots, what they bring back."""

from __future__ import annotations

from collections.abc import Sequence

from felixresp.engine import dead_letters
from felixresp.engine.dead_letters import DeadLetter
from felixresp.engine.group import Group
from felixresp.engine.handouts import Attempt, Consumer, HandOut
from felixresp.engine.ids import EntryID
from felixresp.engine.settle import FATAL
from felixresp.engine.snapshots import GroupSnapshot, PendingRecord
from tests.scenarios.world import World
from tests.state import describe_group


class Stored:
    """What a store would hold of one group after some snapshots."""

    def __init__(self) -> None:
        self.consumers: dict[int, tuple[bytes, int, int]] = {}
        self.pending: dict[EntryID, PendingRecord] = {}
        self.dead: dict[EntryID, tuple[DeadLetter, bool]] = {}
        self.stories: dict[EntryID, Sequence[Attempt]] = {}

    def write(self, snapshot: GroupSnapshot) -> None:
        self.last = snapshot
        for number in snapshot.dropped_consumers:
            self.consumers.pop(number, None)
        for number, name, seen_ms, active_ms in snapshot.consumers:
            self.consumers[number] = name, seen_ms, active_ms
        for id_ in snapshot.dropped_pending:
            del self.pending[id_]
        self.pending.update(snapshot.pending)
        for id_ in snapshot.dropped_dead:
            self.dead.pop(id_, None)
        self.stories.update({i: snapshot.stories.get(i, ()) for i in snapshot.dead})
        self.dead.update({i: (letter, True) for i, letter in snapshot.dead.items()})
        self.dead.update(
            {i: (letter, False) for i, letter in snapshot.redriven.items()}
        )

    def read(self, world: World) -> Group:
        group = Group(world.stream, self.last.number, self.last.name)
        group.head, group.cursor = self.last.head, self.last.cursor
        group.entries_read, group.passed = self.last.entries_read, self.last.passed
        group.next_consumer = self.last.next_consumer
        group.ahead = set(self.last.ahead)
        group.configure(self.last.own_settings)
        group.paused = self.last.paused
        group.learned_visibility_ms = self.last.learned_visibility_ms
        for number, (name, _, _) in self.consumers.items():
            group.consumers[name] = Consumer(number, name)
        for id_, (letter, listed) in self.dead.items():
            group.dead_letters.add(letter)
            if listed and self.stories[id_]:
                group.stories[id_] = list(self.stories[id_])
            if not listed:
                group.dead_letters.redrive(id_)
        group.restore_pending(self.pending)
        return group


def test_what_snapshots_stored_bit_by_bit_brings_the_group_back() -> None:
    world = World(entries=9, group_max_attempts=2)
    stored = Stored()

    def cut() -> None:
        stored.write(world.group.snapshot())
        assert describe_group(stored.read(world)) == describe_group(world.group)

    cut()
    world.poll(b"alice", count=3)
    cut()
    world.ack(2)
    world.poll(b"bob", count=3)
    cut()
    world.lapse()
    world.poll(b"carol", count=3)
    world.remove_consumer(b"alice")
    cut()
    world.nack(1, delay_ms=500, reason=b"busy")
    cut()
    world.lapse()
    cut()
    world.nack(5, mode=FATAL, reason=b"bad")
    world.configure(max_in_flight=7, backoff="fixed 30")
    world.pause()
    cut()
    world.resume()
    world.autoclaim(b"erin", 5000)
    cut()
    world.redrive(1, 3)
    cut()
    world.poll(b"dave", count=1)
    world.ack(1)
    world.ack(3)
    cut()
    world.discard(4)
    world.set_id(0)
    cut()
    world.poll(b"dave")
    world.extend(2, 9000, consumer=b"dave")
    world.nack(6)
    cut()
    world.seek(1)
    cut()
    world.poll(b"dave")
    world.configure(mode="redis")
    cut()
    world.configure(mode="lease")
    cut()


def test_an_entry_that_came_and_went_between_two_cuts_is_in_neither() -> None:
    world = World(entries=2)
    world.group.snapshot()
    world.poll()
    world.ack(1)

    snapshot = world.group.snapshot()

    assert snapshot.pending.keys() == {2 << 64}
    assert snapshot.dropped_pending == []
    world.ack(2)
    assert world.group.snapshot().dropped_pending == [2 << 64]


def test_restored_entries_of_one_hand_out_share_it() -> None:
    world = World(entries=3)
    world.poll(b"alice")
    stored = Stored()
    stored.write(world.group.snapshot())

    group = stored.read(world)

    assert len(set(group.pending.values())) == 1
    assert group.consumers[b"alice"].pending == 3
    assert group.tallies == {}


def test_orders_of_finished_entries_are_rebuilt_and_lose_nothing() -> None:
    world = World(entries=20_000, group_max_attempts=0)
    kept = world.poll(count=5)
    for _ in range(19):
        world.ack(*world.poll(count=1000))
    assert world.cursor == 0

    assert [id_ >> 64 for id_ in world.group.pending_from()] == kept
    assert len(world.group._order) < 5000
    assert world.group.last_pending() == 5 << 64
    world.ack(*kept)
    assert world.cursor == world.group.head >> 64
    assert world.group.last_pending() == 0


def test_the_order_of_owed_entries_is_rebuilt_and_loses_nothing() -> None:
    world = World(entries=3000, group_max_attempts=0)
    for _ in range(3):
        world.poll(count=1000)
    world.lapse()
    world.fire_timer()
    world.ack(*range(1, 2991))
    world.poll()
    assert world.owed == []

    world.lapse()

    assert world.owed == list(range(2991, 3001))
    assert len(world.group._owed_order) < 100


def test_deadlines_of_claims_that_ended_are_dropped() -> None:
    world = World(entries=4000)
    for _ in range(4000):
        world.ack(*world.poll(count=1))

    assert len(world.group.deadlines) <= 1025


def test_a_dead_letter_put_back_twice_below_the_cursor_is_pending_once() -> None:
    world = World(entries=3, group_max_attempts=1)
    world.kill()
    world.redrive(1, 2)
    world.ack(2)  # 1 keeps the list of those put back

    world.claim(b"bob", 2, force=True)

    assert [id_ >> 64 for id_ in world.group.pending_from()] == [1, 2]
    assert [id_ >> 64 for id_ in world.group.pending_from(2 << 64)] == [2]
    assert world.group.last_pending() == 2 << 64


class Compared(int):
    """An ID that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Compared.compared += 1
        return int(self) < int(other)

    def __eq__(self, other: object) -> bool:
        Compared.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


class Asked(dict[EntryID, HandOut]):
    """Pending entries, and how often one was looked for."""

    times = 0

    def __contains__(self, id_: object) -> bool:
        self.times += 1
        return super().__contains__(id_)


class AskedSet(set[EntryID]):
    times = 0

    def __contains__(self, id_: object) -> bool:
        self.times += 1
        return super().__contains__(id_)


def test_putting_dead_letters_back_does_not_look_at_each_for_each() -> None:
    world = World(entries=1000, group_max_attempts=1)
    world.kill()
    ids = [Compared(id_) for id_ in world.group.dead_letters.ids()]

    assert dead_letters.redrive(world.group, ids) == 1000

    assert Compared.compared < 1000 * 100


def test_settling_owed_entries_in_order_looks_at_each_a_few_times() -> None:
    world = World(entries=1000, group_max_attempts=1)
    world.kill()
    world.redrive(*range(1, 1001))
    pending = world.group.pending = Asked(world.group.pending)
    owed = world.group.owed = AskedSet(world.group.owed)

    for _ in range(1000):
        world.ack(*world.poll(count=1))

    assert world.group.pending == {}
    assert pending.times < 1000 * 20
    assert owed.times < 1000 * 20
