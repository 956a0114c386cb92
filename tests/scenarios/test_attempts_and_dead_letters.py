"""Attempts, the bound, and what a group gives up on."""

from __future__ import annotations

from felixresp.engine.settle import FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World


def test_with_a_bound_of_n_the_entry_is_delivered_n_times_then_listed_dead() -> None:
    world = World(entries=1, group_max_attempts=3)
    world.at(5)
    given = []

    for _ in range(5):
        given += world.poll()
        world.lapse()

    assert given == [1, 1, 1]
    assert world.dead == [1]
    letter = world.group.dead_letters.listed[1 << 64]
    assert (letter.attempts, letter.cause, letter.consumer) == (
        3,
        b"attempts",
        b"alice",
    )
    assert (letter.first_delivered_ms, letter.dead_ms) == (
        5,
        5 + 3 * VISIBILITY_MS,
    )


def test_without_a_bound_nothing_dies() -> None:
    world = World(entries=1, group_max_attempts=0)

    for _ in range(50):
        assert world.poll() == [1]
        world.lapse()

    assert world.dead == []


def test_a_lapse_counts_an_attempt_also_when_the_consumer_is_removed_instead() -> None:
    world = World(entries=2)
    world.poll(b"alice")
    world.remove_consumer(b"alice")

    assert world.owed == [1, 2]
    world.poll(b"bob")
    assert world.attempts(1) == 2


def test_a_removed_consumers_spent_entry_dies_at_the_next_hand_out() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")
    world.remove_consumer(b"alice")
    assert world.dead == []

    assert world.poll(b"bob") == []
    assert world.dead == [1]


def test_nack_lapse_and_delayed_nack_all_count_and_silent_does_not() -> None:
    world = World(entries=1, group_max_attempts=4)
    seen = []

    for end in (
        lambda: world.nack(1),
        lambda: world.nack(1, mode=SILENT),
        world.lapse,
        lambda: world.nack(1, delay_ms=10),
        lambda: world.nack(1, mode=SILENT),
    ):
        world.poll()
        seen.append(world.attempts(1))
        end()
        world.run_to(world.now_ms + 10)

    assert seen == [1, 2, 2, 3, 4]
    assert world.dead == []
    world.poll()
    world.nack(1, delay_ms=10)
    assert world.dead == [1]  # at the bound, whatever delay was asked for


def test_the_attempts_are_reported_and_rise() -> None:
    world = World(entries=1)
    seen = []

    for _ in range(4):
        world.poll()
        seen.append((world.attempts(1), world.deliveries(1)))
        world.lapse()

    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_the_group_progresses_past_poison() -> None:
    world = World(entries=3, group_max_attempts=2)
    for _ in range(2):
        world.ack(*[number for number in world.poll() if number != 1])
        world.lapse()

    assert world.dead == [1]
    assert world.cursor == 3
    world.append(4)
    assert world.poll() == [4]


def test_a_dead_entry_is_still_readable_in_the_stream() -> None:
    world = World(entries=1)
    world.kill()

    assert world.dead == [1]
    assert world.stream.entry(1 << 64) is not None


def test_an_undelivered_claim_costs_no_attempt() -> None:
    world = World(entries=2, group_max_attempts=2)
    for _ in range(5):
        assert world.poll(b"alice") == [1, 2]
        world.lose_reply()

    assert world.poll(b"bob") == [1, 2]
    assert world.attempts(1) == world.deliveries(1) == 1


def test_what_the_byte_cut_leaves_out_costs_no_attempt() -> None:
    world = World(entries=3)
    world.poll()
    world.lapse()

    assert world.poll(bytes_max=1) == [1]
    assert (world.attempts(1), world.attempts(2)) == (2, 1)
    assert world.owed == [2, 3]


def test_an_undelivered_noack_poll_loses_its_entries_as_in_redis() -> None:
    world = World(entries=1)
    world.poll(no_ack=True)
    world.lose_reply()

    assert world.poll() == []


def test_a_lost_reply_takes_nothing_from_whoever_claimed_the_entry_since() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    handed = world.keyspace.handed
    world.claim(b"bob", 1)

    world.keyspace.return_claims(handed[:1], world.now_ms)

    assert world.owed == []
    assert world.attempts(1) == 2


def test_a_lost_reply_to_a_heartbeat_does_not_end_the_claim() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.keyspace.handed.clear()

    world.claim(b"alice", 1, just_id=True)
    world.lose_reply()
    world.claim(b"alice", 1)
    world.lose_reply()
    world.history(b"alice")
    world.lose_reply()

    assert world.owed == []
    assert world.attempts(1) == 1


def test_the_textbook_worker_sees_poison_dead_lettered_after_the_bound() -> None:
    world = World(entries=1, group_max_attempts=3)
    deliveries = 0

    for _ in range(10):
        deliveries += len(
            world.autoclaim(b"alice", VISIBILITY_MS) + world.poll(b"alice")
        )
        world.at(world.now_ms + VISIBILITY_MS)

    assert deliveries == 3
    assert world.dead == [1]


def test_a_worker_that_reads_new_then_its_history_is_charged_once() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=7)

    for _ in range(3):
        assert world.history(b"alice", client=7) == [1]

    assert world.attempts(1) == 1
    assert world.deliveries(1) == 4


def test_a_restarted_worker_that_reads_its_history_is_charged_once_per_claim() -> None:
    world = World(entries=1)
    world.poll(b"alice", client=7)

    for _ in range(3):
        assert world.history(b"alice", client=8) == [1]

    assert world.attempts(1) == 2


def test_a_restarted_workers_history_read_of_a_spent_entry_buries_it() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.poll(b"alice", client=7)

    assert world.history(b"alice", client=8) == []
    assert world.dead == [1, 2]


def test_another_members_claim_of_a_spent_entry_buries_it() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll(b"alice")

    assert world.claim(b"bob", 1) == []
    assert world.dead == [1]
    assert world.cursor == 1


def test_a_crash_at_any_point_leaves_an_entry_listed_or_owed_never_neither() -> None:
    story = World(entries=1, group_max_attempts=2)
    for _ in range(2):
        story.poll()
        story.changes()
        story.lapse()
        story.changes()
    story.redrive(1)
    story.changes()
    story.poll()
    story.changes()
    story.lapse()
    story.poll()
    story.lapse()
    story.changes()
    assert story.dead == [1]

    for batches in range(1, len(story.journal) + 1):
        world = World(entries=0, group_max_attempts=2)
        world.journal = list(story.journal[:batches])
        world.keyspace.take()
        world.crash()

        listed = world.dead == [1]
        owed = world.owed == [1]
        new = world.group.head == 0
        assert listed + owed + new == 1, batches


def test_an_ack_of_a_dead_letter_with_cause_attempts_takes_it_off_the_list() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.kill()
    assert world.dead == [1, 2]

    assert world.ack(1) == 1
    assert world.dead == [2]
    assert world.ack(1) == 0
    assert world.group.next_deadline() is None


def test_an_ack_of_a_dead_letter_after_fatal_answers_0_and_leaves_it_listed() -> None:
    world = World(entries=1)
    world.poll()
    world.nack(1, mode=FATAL)

    assert world.ack(1) == 0
    assert world.dead == [1]
