"""A consumer's name with its user: what it takes back, and what it cannot."""

from __future__ import annotations

import pytest

from tests.scenarios.world import VISIBILITY_MS, World


def test_a_restarted_member_gets_its_own_claims_first() -> None:
    world = World(entries=4)
    world.poll(b"alice", count=2, client=1)
    world.poll(b"bob", count=1, client=2)

    assert world.poll(b"alice", client=3, reclaim=True) == [1, 2, 4]

    assert [world.attempts(number) for number in (1, 2, 3, 4)] == [2, 2, 1, 1]
    assert world.explain(3).consumer == b"bob"


def test_without_reclaim_a_named_poll_takes_new_entries() -> None:
    world = World(entries=2)
    world.poll(b"alice", count=1, client=1)

    assert world.poll(b"alice", client=2) == [2]
    assert world.attempts(1) == 1


def test_another_user_with_the_name_takes_nothing() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=1, user=b"one")
    receipt = world.receipt(1)

    assert world.poll(b"alice", client=2, user=b"other", reclaim=True) == []
    assert world.history(b"alice", client=2, user=b"other") == []
    assert world.attempts(1) == 1
    assert world.ack(receipt) == 1


@pytest.mark.parametrize("found", [True, False])
def test_a_second_reclaim_on_a_connection_is_an_ordinary_poll(found: bool) -> None:
    world = World()
    if found:
        world.append(1)
        world.poll(b"alice", client=1)
    assert world.poll(b"alice", client=3, reclaim=True) == [1] * found

    world.append(2, 3)
    world.poll(b"alice", count=1, client=2)

    assert world.poll(b"alice", client=3, reclaim=True) == [3]


def test_an_older_connection_never_takes_from_a_newer_one() -> None:
    world = World(entries=2)
    world.poll(b"alice", count=1, client=5)
    world.poll(b"alice", count=1, client=4)

    assert world.poll(b"alice", client=4, reclaim=True) == []
    assert world.poll(b"alice", client=6, reclaim=True) == [1, 2]


def test_the_remainder_stays_reserved_across_polls_and_through_a_byte_cut() -> None:
    world = World(entries=6)
    world.poll(b"alice", count=5, client=1)

    assert world.poll(b"alice", count=2, client=2, reclaim=True) == [1, 2]
    assert world.poll(b"alice", client=2, bytes_max=1) == [3]

    assert world.state(4) == b"reserved"
    assert world.poll(b"bob", client=3) == [6]
    assert world.poll(b"alice", client=2) == [4, 5]


def test_a_reserved_entry_that_lapses_goes_to_all_and_is_not_given_twice() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.at(500)
    assert world.poll(b"alice", count=1, client=2, reclaim=True) == [1]

    world.at(VISIBILITY_MS)

    assert world.poll(b"bob", client=3) == [2]
    assert world.poll(b"alice", client=2) == []
    assert world.attempts(2) == 2


def test_a_reservation_lifts_when_its_connection_closes_and_the_claim_stands() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    world.detach(2)

    assert world.state(2) == b"claimed"
    assert world.group.next_deadline() == VISIBILITY_MS
    assert world.poll(b"alice", client=3, reclaim=True) == [1, 2]


def test_reclaim_works_at_a_full_cap() -> None:
    world = World(entries=3, group_max_in_flight=2)
    world.poll(b"alice", client=1)

    assert world.poll(b"alice", client=2, reclaim=True) == [1, 2]
    assert world.group.in_flight == 2


def test_an_autoclaim_with_a_min_idle_of_ten_minutes_lifts_the_visibility_to_that() -> (
    None
):
    world = World(entries=2)
    world.poll(b"alice", count=1)
    world.at(500)

    assert world.autoclaim(b"bob", 600_000) == []

    assert world.group.visibility_ms == 600_000
    world.poll(b"alice", count=1)
    world.run_to(599_999)
    assert world.owed == []
    world.run_to(600_500)
    assert world.owed == [1, 2]
    assert len(world.keyspace.notices) == 1
