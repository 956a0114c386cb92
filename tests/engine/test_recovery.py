"""What stands after a restart, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.world import VISIBILITY_MS, World


def test_after_a_crash_claims_are_owed_and_nobody_is_judged() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.poll()

    world.crash()

    assert (world.owed, world.dead) == ([1, 2], [])
    assert world.poll() == []  # the next hand-out checks the bound
    assert world.dead == [1, 2]


def test_a_crash_is_written_down_as_any_change() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.crash()
    world.poll(b"bob")

    world.crash()

    assert [attempt.how for attempt in world.explain(1).story] == [b"restart"] * 2
    assert world.attempts(1) == 2


def test_durable_claims_stand_after_a_crash() -> None:
    world = World(entries=2)
    world.configure(durable_claims="yes")
    world.changes()
    world.poll(b"alice", count=1)
    receipt = world.receipt(1)
    assert all(change.MUST_WAIT for change in world.changes())
    world.at(600)

    world.crash()

    assert world.poll(b"bob") == [2]
    assert world.group.next_deadline() == VISIBILITY_MS
    assert world.ack(receipt) == 1


def test_with_durable_claims_no_ack_of_a_lost_delivery_is_taken() -> None:
    world = World(entries=1)
    world.configure(durable_claims="yes")

    world.crash()

    assert world.ack(1) == 0


@pytest.mark.parametrize("late_ms", [0, 50_000])
def test_a_claim_whose_time_ended_while_the_server_was_down_is_owed_unjudged(
    late_ms: int,
) -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")
    receipt = world.receipt(1)
    world.at(VISIBILITY_MS + late_ms)

    world.restart()

    assert (world.owed, world.dead) == ([1], [])
    assert world.ack(receipt) == 0
    assert world.ack(1) == 1


def test_restored_claims_that_follow_connections_get_one_visibility_timeout() -> None:
    world = World(entries=1, group_claims_follow="connection")
    world.poll(b"alice", client=7)
    world.run_to(50_000)
    world.at(70_000)

    world.restart()

    assert world.group.next_deadline() == 70_000 + VISIBILITY_MS
    assert world.poll(b"bob", client=8) == []
    world.run_to(70_000 + VISIBILITY_MS)
    assert world.poll(b"bob", client=8) == [1]


@pytest.mark.parametrize(
    "again",
    [
        lambda world: world.history(b"alice"),
        lambda world: world.claim(b"alice", 1, just_id=True),
    ],
)
def test_a_restored_claim_is_not_cut_short_when_its_holder_asks_again(
    again: Callable[[World], list[int]],
) -> None:
    world = World(entries=1)
    world.poll(b"alice", visibility_ms=50 * VISIBILITY_MS)
    world.restart()

    assert again(world) == [1]

    assert world.group.next_deadline() == 50 * VISIBILITY_MS


def test_a_clock_that_went_back_keeps_no_claim_and_no_delay_too_long() -> None:
    world = World(entries=2, group_max_visibility_ms=5000)
    world.at(10**12)
    world.poll(count=1)
    world.nack(1, delay_ms=5000)
    world.poll(count=1)
    world.at(7)

    world.restart()

    assert world.group.next_deadline() == 5007
    world.run_to(5007)
    assert world.owed == [1, 2]


def test_a_delay_that_ended_while_the_server_was_down_is_over() -> None:
    world = World(entries=1)
    world.poll()
    world.nack(1, delay_ms=500)
    world.at(501)

    world.crash()

    assert world.poll() == [1]


@pytest.mark.parametrize("crashed", [False, True])
def test_a_delay_that_ended_before_the_restart_is_over_after_it(crashed: bool) -> None:
    world = World(entries=3)
    world.poll()
    for number in (1, 2, 3):
        world.nack(number, delay_ms=500)
    world.run_to(500)
    world.poll(count=1)
    world.ack(1)
    world.poll(b"bob", count=1)

    if crashed:
        world.crash()
        assert world.poll(b"carol") == [2, 3]
    else:
        world.restart()
        assert world.poll(b"carol") == [3]


def test_a_restart_twice_changes_nothing_more() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    receipt = world.receipt(1)

    world.restart()
    world.restart()

    assert world.group.next_deadline() == VISIBILITY_MS
    assert world.ack(receipt) == 1


def test_after_a_clean_stop_no_ack_of_an_entry_that_was_not_handed_out_is_taken() -> (
    None
):
    world = World(entries=1)

    world.restart()

    assert world.ack(1) == 0


def test_a_claim_is_not_cut_short_by_the_grace_when_the_server_stops() -> None:
    world = World(entries=1, group_disconnect_grace_ms=0)
    world.poll(b"alice", client=7)
    world.changes()
    world.detach(7)  # it closes all connections

    world.restart()

    assert world.poll(b"bob") == []
    assert world.group.next_deadline() == VISIBILITY_MS


def test_unused_consumers_are_looked_for_after_a_restart_too() -> None:
    world = World(group_consumer_expiry_ms=1000)
    world.member(b"alice")

    world.restart()

    world.run_to(999)
    assert world.group.consumers.keys() == {b"alice"}
    world.run_to(1000)
    assert world.group.consumers == {}


def test_after_setid_back_no_late_ack_finishes_what_comes_again() -> None:
    world = World(entries=2)
    world.poll()
    world.ack(1, 2)
    world.crash()
    world.set_id(0)

    assert world.ack(1, 2) == 0
    assert world.poll() == [1, 2]
