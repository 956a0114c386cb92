"""Connections that come and go, names that are used no more."""

from __future__ import annotations

import pytest

from tests.scenarios.world import VISIBILITY_MS, World

DAY_MS = 86_400_000


def test_without_a_grace_a_closed_connection_changes_no_deadline() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=7)
    world.at(500)

    world.detach(7)

    assert world.group.next_deadline() == VISIBILITY_MS


def test_a_grace_counts_from_the_last_connection() -> None:
    world = World(entries=1, group_disconnect_grace_ms=100)
    world.poll(b"alice", client=7)
    world.poll(b"alice", client=8)
    world.detach(7)
    assert world.group.next_deadline() == VISIBILITY_MS
    world.at(50)

    world.detach(8)

    world.run_to(149)
    assert world.owed == []
    world.run_to(150)
    assert world.owed == [1]
    assert world.explain(1).story[-1].how == b"disconnect"


def test_a_grace_makes_no_claim_longer() -> None:
    world = World(entries=1, group_disconnect_grace_ms=5000)
    world.poll(b"alice", client=7)

    world.detach(7)

    assert world.group.next_deadline() == VISIBILITY_MS


def test_a_member_that_is_back_within_the_grace_has_its_time_again() -> None:
    world = World(entries=1, group_disconnect_grace_ms=100)
    world.poll(b"alice", client=7)
    world.detach(7)
    world.at(99)

    world.poll(b"alice", client=8)

    assert world.group.next_deadline() == VISIBILITY_MS
    world.detach(8)
    assert world.group.next_deadline() == 199


def test_another_users_connection_does_not_count_for_the_name() -> None:
    world = World(entries=1, group_disconnect_grace_ms=100)
    world.poll(b"alice", client=7, user=b"one")
    world.detach(7)

    world.poll(b"alice", client=8, user=b"other")

    assert world.group.next_deadline() == 100


@pytest.mark.parametrize("verb", [World.history, World.autoclaim, World.claim])
def test_every_verb_that_names_the_member_counts_the_connection(verb: object) -> None:
    world = World(entries=1, group_disconnect_grace_ms=0)
    world.poll(b"alice")
    assert callable(verb)

    verb(world, b"alice", client=7)
    world.detach(7)
    world.fire_timer()

    assert world.owed == [1]


def test_a_connection_may_count_for_many_members_of_many_groups() -> None:
    world = World(entries=2, group_disconnect_grace_ms=0)
    other = world.keyspace.create_group(world.stream, b"others", 0, None)
    world.poll(b"alice", count=1, client=7)
    world.poll(b"bob", client=7)
    world.poll(b"alice", client=7, group=other)

    world.detach(7)
    world.fire_timer()

    assert world.owed == [1, 2]
    assert len(other.owed) == 2


def test_with_following_and_a_grace_the_grace_counts() -> None:
    world = World(
        entries=2, group_claims_follow="connection", group_disconnect_grace_ms=1500
    )
    world.poll(b"alice", client=7)
    world.run_to(10_900)

    world.detach(7)

    world.run_to(10_900 + 1499)
    assert world.owed == []
    world.run_to(10_900 + 1500)
    assert world.owed == [1, 2]


def test_a_followed_claim_ends_an_hour_after_it_was_handed_out() -> None:
    world = World(
        entries=1, group_claims_follow="connection", group_follow_max_ms=10_500
    )
    world.poll(b"alice", client=7)

    world.run_to(10_499)
    assert world.owed == []
    world.run_to(10_500)
    assert world.owed == [1]


def test_following_moves_the_deadline_and_never_the_idle_time() -> None:
    world = World(
        entries=1, group_claims_follow="connection", group_learn_visibility="no"
    )
    world.poll(b"alice", client=7)
    world.run_to(5000)

    assert world.autoclaim(b"bob", 5001) == []
    assert world.autoclaim(b"bob", 5000) == [1]


def test_claims_follow_no_connection_that_went_before_they_were_due() -> None:
    world = World(entries=1, group_claims_follow="connection", group_max_attempts=1)
    world.poll(b"alice", client=7)
    world.at(900)
    world.detach(7)

    world.run_to(900 + VISIBILITY_MS)

    assert world.dead == [1]  # it had its time: an ordinary lapse


def test_a_heartbeat_brings_a_claim_back_to_its_full_time() -> None:
    world = World(entries=1, group_disconnect_grace_ms=100)
    world.poll(b"alice", client=7)
    receipt = world.receipt(1)
    world.detach(7)
    world.at(50)

    world.extend(receipt, 700)

    assert world.group.next_deadline() == 750
    world.poll(b"alice", client=8)
    assert world.group.next_deadline() == 750


def test_a_lapse_under_an_open_connection_is_counted_and_told_once_a_minute() -> None:
    world = World(entries=3, group_max_attempts=0)
    world.poll(b"alice", client=7)
    world.run_to(1000)
    for _ in range(30):
        world.poll(b"alice", client=7)
        world.run_to(world.now_ms + 1000)
    assert len(world.keyspace.notices) == 1
    assert world.group.lapsed_connected == 31 * 3

    for _ in range(35):
        world.poll(b"alice", client=7)
        world.run_to(world.now_ms + 1000)

    assert len(world.keyspace.notices) == 2


def test_reclaim_takes_a_reservation_over_from_an_older_connection() -> None:
    world = World(entries=3)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    assert world.poll(b"alice", client=3, reclaim=True) == [1, 2, 3]
    assert world.poll(b"alice", client=2) == []


def test_own_history_gives_reserved_entries_only_to_the_reserving_connection() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    assert world.history(b"alice", client=1) == [1]
    assert world.history(b"alice", client=2) == [1, 2]


def test_what_settles_while_it_is_reserved_is_not_handed_out() -> None:
    world = World(entries=4)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    world.ack(2)
    world.nack(3, mode=b"SILENT")

    assert world.poll(b"bob", client=5) == [3]
    assert world.poll(b"alice", client=2) == [4]


def test_a_reserved_entry_whose_attempts_are_spent_dies_instead() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice", client=1)

    assert world.poll(b"alice", client=2, reclaim=True) == []
    assert world.dead == [1]
    assert world.explain(1).story[-1].how == b"reclaim"


def test_a_reserved_entry_keeps_its_old_deadline_until_it_is_handed_out() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.at(600)

    world.poll(b"alice", count=1, client=2, reclaim=True)

    assert world.group.next_deadline() == VISIBILITY_MS
    assert world.state(2) == b"reserved"


def test_another_members_claim_takes_a_reserved_entry() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    assert world.claim(b"bob", 2, client=5) == [2]

    assert world.poll(b"alice", client=2) == []


def test_claims_from_before_a_clean_restart_can_be_reclaimed() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=900)

    world.restart()

    assert world.poll(b"alice", client=1, reclaim=True) == [1]
    assert world.attempts(1) == 2


def test_a_removed_consumer_gives_back_the_users_claims_only() -> None:
    world = World(entries=3)
    world.poll(b"alice", count=2, user=b"one")
    world.poll(b"alice", user=b"two")
    receipt = world.receipt(3)

    assert world.remove_consumer(b"alice", b"one") == 2
    assert world.owed == [1, 2]
    assert world.ack(receipt) == 1
    assert world.group.consumers.keys() == {b"alice"}
    assert world.remove_consumer(b"alice", b"one") == 0
    assert world.group.consumers == {}


def test_a_removed_consumers_claims_cost_no_attempt_and_their_receipts_are_void() -> (
    None
):
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")
    receipt = world.receipt(1)

    assert world.remove_consumer(b"alice") == 1

    assert world.dead == []
    assert world.ack(receipt) == 0
    assert world.explain(1).story[-1].how == b"removed"


def test_a_removed_consumer_leaves_what_is_delayed_delayed() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    world.nack(1, delay_ms=500)

    assert world.remove_consumer(b"alice") == 1

    assert world.state(1) == b"delayed"
    world.run_to(500)
    assert world.poll(b"bob") == [1, 2]


def test_consumers_with_nothing_pending_expire_after_a_day() -> None:
    world = World(entries=3)
    world.poll(b"idle", count=1)
    world.ack(1)
    world.poll(b"busy", count=1, visibility_ms=2 * DAY_MS)
    world.configure(max_visibility_ms=3 * DAY_MS)
    world.extend(world.receipt(2), 2 * DAY_MS)
    world.poll(b"there", count=1, client=7)
    world.ack(3)

    world.run_to(DAY_MS - 1)
    assert world.group.consumers.keys() == {b"idle", b"busy", b"there"}
    world.run_to(DAY_MS)
    assert world.group.consumers.keys() == {b"busy", b"there"}

    world.detach(7)
    world.run_to(DAY_MS + DAY_MS // 24)
    assert world.group.consumers.keys() == {b"busy"}
    world.crash()
    assert world.group.consumers.keys() == {b"busy"}


def test_a_consumer_that_is_used_again_does_not_expire() -> None:
    world = World()
    world.poll(b"alice")
    world.run_to(DAY_MS // 2)
    world.poll(b"alice")

    world.run_to(DAY_MS)
    assert world.group.consumers.keys() == {b"alice"}
    world.run_to(DAY_MS + DAY_MS // 2)

    assert world.group.consumers == {}


def test_names_that_come_and_go_leave_nothing_behind() -> None:
    world = World(group_consumer_expiry_ms=1000)
    for number in range(100):
        world.run_to(world.now_ms + 100)
        world.poll(b"worker %d" % number)

    world.run_to(world.now_ms + 2000)

    assert world.group.consumers == {}
    assert world.keyspace.next_deadline() is None


def test_a_connection_keeps_nothing_of_what_is_gone() -> None:
    world = World()
    keyspace = world.keyspace
    for number in range(50):
        world.poll(b"removed", client=7)
        world.remove_consumer(b"removed")
        group = keyspace.create_group(world.stream, b"destroyed", 0, None)
        world.poll(b"alice", client=7, group=group)
        keyspace.destroy_group(group)
        stream = keyspace.create_stream(0, b"job %d" % number)
        group = keyspace.create_group(stream, b"dropped", 0, None)
        world.poll(b"alice", client=7, group=group)
        keyspace.drop(stream)

    assert len(keyspace.connections) == 0
    world.poll(b"alice", client=7)
    assert len(keyspace.connections) == 1
    world.detach(7)
    assert len(keyspace.connections) == 0


def test_a_consumer_made_again_counts_its_connection_again() -> None:
    world = World(entries=1, group_disconnect_grace_ms=0)
    world.poll(b"alice", client=7)
    world.remove_consumer(b"alice")
    world.poll(b"alice", client=7)

    world.detach(7)
    world.fire_timer()

    assert world.owed == [1]


def test_what_a_group_learns_does_not_lengthen_the_grace_of_a_worker_that_is_gone() -> (
    None
):
    world = World(entries=2, group_disconnect_grace_ms=100)
    world.poll(b"alice", count=1, client=7)
    world.poll(b"bob", client=8)
    world.detach(7)

    world.autoclaim(b"carol", 5000)

    world.run_to(100)
    assert world.owed == [1]


def test_consumers_that_wait_for_days_are_looked_at_24_times_a_day() -> None:
    world = World()
    world.poll(b"alice", client=7)
    world.run_to(DAY_MS)

    looks = 0
    while (due_ms := world.keyspace.next_deadline() or 0) <= 2 * DAY_MS:
        looks += 1
        world.run_to(due_ms)

    assert looks == 24
    assert world.group.consumers.keys() == {b"alice"}


def test_reserved_entries_are_handed_out_page_by_page_at_a_steady_cost() -> None:
    world = World(entries=3000)
    for _ in range(3):
        world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)
    world.ack(*range(2, 1001))

    given = [world.poll(b"alice", count=100, client=2) for _ in range(20)]

    assert [number for page in given for number in page] == list(range(1001, 3001))
    (member,) = world.group.consumers[b"alice"].members.values()
    assert len(member.connections[2].reserved) <= 100
