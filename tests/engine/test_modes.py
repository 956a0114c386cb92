"""Mode redis, and the way there and back."""

from __future__ import annotations

import pytest

from felixresp.engine.errors import WrongMode
from felixresp.engine.settle import FAIL, FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World

LONG_MS = 10**9


def redis(entries: int = 0, **settings: int) -> World:
    return World(entries, group_mode="redis", **settings)


def test_in_mode_redis_claims_never_lapse() -> None:
    world = redis(entries=2)
    world.poll(b"alice", client=7)
    world.detach(7)

    world.run_to(LONG_MS)

    assert world.group.next_deadline() is None
    assert world.poll(b"bob") == world.owed == []
    assert world.history(b"alice") == [1, 2]


def test_in_mode_redis_a_poll_gives_new_entries_only() -> None:
    world = redis(entries=2)
    world.poll(b"alice", count=1)

    world.nack(1)

    assert world.poll(b"bob") == [2]
    assert world.autoclaim(b"bob", LONG_MS) == [1]


def test_in_mode_redis_nothing_is_capped() -> None:
    caps = {"group_max_in_flight": 1, "group_max_poll_entries": 2}
    world = redis(entries=5, group_max_acked_ahead_ranges=1, **caps)

    assert world.poll() == [1, 2, 3, 4, 5]
    assert world.group.polls_capped == 0
    assert world.history(b"alice") == [1, 2, 3, 4, 5]


def test_in_mode_redis_nothing_dies() -> None:
    world = redis(entries=1, group_max_attempts=1)
    world.poll(b"alice")

    for _ in range(20):
        assert world.claim(b"bob", 1) == [1]
        assert world.nack(1) == 1

    assert world.dead == []
    assert world.deliveries(1) == 21


def test_in_mode_redis_a_nack_counts_as_in_redis() -> None:
    world = redis(entries=3)
    world.poll(b"alice")

    assert world.nack(1, mode=SILENT) == world.nack(2, mode=FAIL) == 1
    assert world.nack(3, mode=FATAL, reason=b"bad") == 1

    assert [world.deliveries(n) for n in (1, 2, 3)] == [0, 1, 2**63 - 1]
    assert world.group.consumers[b"alice"].pending == 0
    assert len(world.group.pending) == 3
    assert world.nack(1, retry_count=8) == 1  # again, of what nobody holds
    assert world.deliveries(1) == 8


def test_in_mode_redis_a_nack_is_not_delayed() -> None:
    world = redis(entries=1)
    world.configure(backoff="fixed 500")
    world.poll(b"alice")

    world.nack(1, delay_ms=500)

    assert world.claim(b"bob", 1) == [1]


def test_in_mode_redis_a_removed_consumers_entries_are_dropped() -> None:
    world = redis(entries=2)
    world.poll(b"alice", count=1, user=b"one")
    world.poll(b"alice", count=1, user=b"two")

    assert world.remove_consumer(b"alice", b"one") == 2

    assert not world.group.pending
    assert world.group.consumers == {}
    assert world.poll(b"bob") == []


def test_in_mode_redis_unused_consumers_stay() -> None:
    world = redis(entries=1)
    world.poll(b"alice")
    world.ack(1)

    world.run_to(LONG_MS)

    assert world.group.consumers.keys() == {b"alice"}


def test_in_mode_redis_owner_and_count_are_durable_before_the_reply() -> None:
    world = redis(entries=1)
    world.changes()
    world.poll(b"alice")
    (_, delivered) = world.changes()
    world.at(5)
    world.claim(b"bob", 1)
    (_, claimed) = world.changes()
    assert delivered.MUST_WAIT
    assert claimed.MUST_WAIT

    world.crash()

    assert world.history(b"bob") == [1]
    assert world.deliveries(1) == 3  # the history read is one
    assert world.ack(1) == 1


def test_in_mode_redis_a_lost_reply_leaves_the_entry_with_its_consumer() -> None:
    world = redis(entries=1)
    world.poll(b"alice")

    world.lose_reply()

    assert world.history(b"alice") == [1]


def test_in_mode_redis_a_claim_belongs_to_the_name_whoever_uses_it() -> None:
    world = redis(entries=1)
    world.poll(b"alice", user=b"one")

    assert world.history(b"alice", user=b"two") == [1]


def test_in_mode_redis_there_is_no_seek() -> None:
    world = redis(entries=1)
    world.changes()

    with pytest.raises(WrongMode):
        world.seek(0)
    assert world.changes() == []


def test_in_mode_redis_a_long_min_idle_teaches_nothing() -> None:
    world = redis(entries=1)
    world.poll(b"alice")

    world.autoclaim(b"bob", 600_000)

    assert world.group.visibility_ms == VISIBILITY_MS


def test_the_servers_mode_is_that_of_groups_made_later() -> None:
    world = World(entries=1)
    world.settings.group_mode = "redis"
    later = world.keyspace.create_group(world.stream, b"later", 0, None)
    world.settings.group_mode = "lease"

    assert world.group.mode.leases
    assert not later.mode.leases
    world.crash()
    assert world.group.mode.leases
    assert not world.stream.groups[b"later"].mode.leases


def _many_states() -> World:
    """1 is claimed, 2 owed, 3 delayed, 4 redriven, 5 dead, 6 acked, 7 new."""
    world = World(entries=7, group_max_attempts=1)
    world.poll(b"alice", count=6)
    world.nack(4, 5, mode=FATAL)
    world.ack(6)
    world.configure(max_attempts=5)
    world.nack(2)
    world.nack(3, delay_ms=500)
    world.redrive(4)
    states = [world.state(number) for number in range(1, 8)]
    assert states == [
        b"claimed",
        b"owed",
        b"delayed",
        b"owed",
        b"dead",
        b"finished",
        b"new",
    ]
    return world


@pytest.mark.parametrize("crashed", [False, True])
def test_to_mode_redis_claims_keep_owners_and_the_rest_has_none(crashed: bool) -> None:
    world = _many_states()

    world.configure(mode="redis")
    if crashed:
        world.crash()

    assert [id_ >> 64 for id_ in world.group.pending_from()] == [1, 2, 3, 4]
    assert world.history(b"alice") == [1]
    assert world.dead == [5]
    assert world.group.dead_letters.redriven == {}
    assert world.group.next_deadline() is None
    assert world.poll(b"bob") == [7]
    assert world.autoclaim(b"bob", LONG_MS) == [2, 3, 4]


@pytest.mark.parametrize("crashed", [False, True])
def test_to_mode_lease_owned_entries_are_claims_with_their_full_time(
    crashed: bool,
) -> None:
    world = redis(entries=3)
    world.poll(b"alice", count=2)
    world.nack(2)
    world.claim(b"bob", 1)
    world.at(400)

    world.configure(mode="lease")
    if crashed:
        world.crash()

    assert world.attempts(1) == world.attempts(2) == 1
    assert world.deliveries(1) == 2
    if not crashed:
        world.run_to(400 + VISIBILITY_MS - 1)
        assert world.owed == [2]
        world.run_to(400 + VISIBILITY_MS)
    assert world.owed == [1, 2]
    assert world.poll(b"carol") == [1, 2, 3]


def test_to_mode_lease_the_cursor_is_below_the_lowest_pending_entry() -> None:
    world = World(entries=4, group_max_attempts=2)
    world.kill()
    world.redrive(2)
    assert world.cursor == 4
    world.configure(mode="redis")

    world.configure(mode="lease")

    assert world.cursor == 1
    world.crash()
    assert world.poll() == [2]
    world.ack(2)
    assert world.cursor == 4


def test_a_receipt_outlives_the_way_to_mode_redis_and_back() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    receipt = world.receipt(1)

    world.configure(mode="redis")
    world.configure(mode="lease")

    assert world.ack(receipt) == 1


def test_a_mode_that_a_group_has_already_changes_no_claim() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(500)

    world.configure(mode="lease")

    assert world.group.next_deadline() == VISIBILITY_MS


def test_in_mode_redis_what_stands_above_a_head_that_went_back_is_new_again() -> None:
    world = redis(entries=4)
    world.poll(b"alice", count=3)
    world.history(b"alice")
    world.ack(2)
    world.nack(1)
    world.set_id(0)
    world.ack(3)

    assert world.poll(b"bob", count=2) == [1, 2]
    assert [world.explain(number).consumer for number in (1, 2)] == [b"bob"] * 2
    assert world.poll(b"bob") == [3, 4]

    assert [world.deliveries(number) for number in (1, 2, 3, 4)] == [1] * 4
    assert world.group.consumers[b"alice"].pending == 0
    assert world.poll(b"carol") == []
    world.crash()
    assert world.history(b"bob") == [1, 2, 3, 4]
    assert world.ack(1, 2, 3, 4) == 4
    assert world.cursor == 4


def test_in_mode_redis_a_listed_dead_letter_is_not_new_again() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.kill()
    world.configure(mode="redis")

    world.set_id(0)

    assert world.poll(b"bob") == []
    assert world.dead == [1, 2]


def test_in_mode_redis_a_worker_that_was_away_at_the_change_brings_no_deadline() -> (
    None
):
    world = World(entries=1, group_disconnect_grace_ms=500)
    world.poll(b"alice", client=7)
    world.detach(7)
    world.configure(mode="redis")

    world.poll(b"alice", client=8)

    world.run_to(LONG_MS)
    assert world.owed == []
    assert world.history(b"alice") == [1]
