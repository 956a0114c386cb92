"""What an administrator does to a group, and what it leaves alone."""

from __future__ import annotations

from tests.scenarios.world import VISIBILITY_MS, World


def test_setid_keeps_pending_entries_and_dead_letters() -> None:
    world = World(entries=4, group_max_attempts=1)
    world.poll(count=1)
    world.lapse()
    world.poll(count=1)

    world.set_id(4)

    assert world.dead == [1]
    assert list(world.group.pending) == [2 << 64]
    assert world.cursor == 1


def test_setid_forward_finishes_what_it_jumps() -> None:
    world = World(entries=5)

    world.set_id(3)

    assert world.cursor == 3
    assert world.poll() == [4, 5]


def test_xclaim_lastid_finishes_what_it_jumps() -> None:
    world = World(entries=5)
    world.poll(count=1)

    world.claim(b"bob", 1, last=3)

    assert world.poll() == [4, 5]


def test_setid_backward_replays_what_was_acked() -> None:
    world = World(entries=4)
    world.poll()
    world.ack(1, 2, 4)

    world.set_id(1)

    assert world.cursor == 1
    assert world.poll() == [2, 4]
    assert world.owed == []


def test_setid_backward_hands_out_nothing_that_is_pending_or_dead() -> None:
    world = World(entries=3, group_max_attempts=1)
    world.poll(count=1)
    world.lapse()
    world.poll(b"bob", count=1)

    world.set_id(0)

    assert world.group.lag == 1
    assert world.poll() == [3]


def test_an_entry_settled_above_the_head_does_not_come_when_the_head_passes() -> None:
    world = World(entries=3)
    world.poll()
    world.set_id(0)
    world.ack(2)

    world.ack(1, 3)

    assert world.poll() == []
    assert world.group.lag == 0


def test_a_redriven_entry_and_a_head_that_went_back_keep_the_pending_order() -> None:
    world = World(entries=9, group_max_attempts=1)
    world.kill()
    world.redrive(8)
    world.discard(3, 4)

    world.set_id(2)

    assert world.poll() == [8, 3, 4]
    pending = [id_ >> 64 for id_ in world.group.pending_from()]
    assert pending == [3, 4, 8]


def test_an_entry_put_back_twice_is_pending_once() -> None:
    world = World(entries=3)
    world.poll()
    world.ack(1, 2)

    world.claim(b"bob", 1, force=True)

    assert [id_ >> 64 for id_ in world.group.pending_from()] == [1, 3]
    assert world.cursor == 2


def test_an_append_below_a_head_beyond_the_tail_is_not_in_the_lag() -> None:
    world = World()
    world.set_id(5)

    world.append(1, 6)

    assert world.group.lag == 1
    assert world.poll() == [6]


def test_a_recreated_group_inherits_nothing_not_even_from_late_acks() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.poll()
    world.lapse()
    world.keyspace.destroy_group(world.group)
    world.group = world.keyspace.create_group(world.stream, b"workers", 0, None)

    assert world.dead == []
    assert world.ack(1, 2) == 0
    assert world.poll() == [1, 2]
    assert world.attempts(1) == 1


def test_a_group_recreated_after_a_crash_takes_no_late_acks() -> None:
    world = World(entries=2)
    world.crash()
    world.keyspace.destroy_group(world.group)
    world.group = world.keyspace.create_group(world.stream, b"workers", 0, None)

    assert world.ack(1, 2) == 0
    assert world.poll() == [1, 2]


def test_a_recreated_stream_inherits_nothing() -> None:
    world = World(entries=2)
    world.poll()
    old = world.group
    world.keyspace.drop(world.stream)
    world.stream = world.keyspace.create_stream(0, b"jobs")
    world.group = world.keyspace.create_group(world.stream, b"workers", 0, None)
    world.append(1)

    world.lapse()

    assert world.group.number != old.number
    assert world.ack(1) == 0
    assert world.poll() == [1]
    assert world.attempts(1) == 1


def test_the_timers_of_what_is_gone_do_nothing() -> None:
    world = World(entries=1)
    world.poll()
    other = world.keyspace.create_group(world.stream, b"others", 0, None)
    world.poll(group=other)
    world.keyspace.destroy_group(world.group)
    world.keyspace.drop(world.stream)
    world.changes()

    world.lapse()

    assert world.changes() == []
    assert world.keyspace.next_deadline() is None


def test_a_renamed_stream_keeps_its_claims_and_their_deadlines() -> None:
    world = World(entries=1)
    world.poll()

    world.keyspace.rename(world.stream, 3, b"elsewhere")
    world.lapse()

    assert world.owed == [1]


def test_other_groups_are_untouched_whatever_bytes_their_names_are_made_of() -> None:
    world = World(entries=2)
    names = [b"", b"workers:1", b"workers\x00", b"wor/kers", b"\xff\n ", b"a" * 5000]
    others = [world.keyspace.create_group(world.stream, n, 0, None) for n in names]

    world.poll()
    world.ack(1)
    world.keyspace.destroy_group(world.group)
    world.keyspace.create_group(world.stream, b"workers", 0, None)
    world.crash()

    groups = world.stream.groups
    assert groups.keys() == {b"workers", *names}
    assert {groups[n].number for n in names} == {group.number for group in others}
    assert all((groups[n].head, groups[n].lag) == (0, 2) for n in names)


def test_the_counts_equal_a_recount_and_a_lapsed_claim_counts_as_owed() -> None:
    world = World(entries=10)
    world.poll(b"alice", count=3)
    world.lapse()
    world.poll(b"bob", count=1)
    world.poll(b"carol", count=1)
    world.nack(2, delay_ms=50)
    world.append(11)

    group = world.group
    owed = {id_ for id_ in group.pending if id_ in group.owed}
    claimed = sum(world.state(n) == b"claimed" for n in range(1, 12))
    delayed = sum(world.state(n) == b"delayed" for n in range(1, 12))
    assert group.in_flight == claimed + delayed == len(group.pending) - len(owed) == 2
    assert group.lag == len(owed) + sum(
        group.head < number << 64 for number in range(1, 12)
    )
    assert [c.pending for c in group.consumers.values()] == [1, 1, 0]


def test_seek_back_replays() -> None:
    world = World(entries=4)
    world.poll()
    world.ack(1, 2, 4)

    world.seek(1)

    assert (world.cursor, world.group.head) == (1, 1 << 64)
    assert world.poll() == [2, 3, 4]
    assert [world.attempts(number) for number in (2, 3, 4)] == [1, 1, 1]
    assert world.poll() == []


def test_seek_forward_skips() -> None:
    world = World(entries=4)
    world.poll(count=1)
    world.nack(1, delay_ms=500)

    world.seek(3)

    assert world.cursor == 3
    assert world.group.in_flight == 0
    assert world.poll() == [4]
    world.run_to(VISIBILITY_MS - 1)
    assert world.poll() == []


def test_an_ack_from_before_a_seek_is_refused_and_the_entry_redelivered() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    receipt = world.receipt(1)
    world.seek(0)

    assert world.ack(1) == world.ack(receipt) == 0
    assert world.poll(b"bob") == [1]
    assert world.ack(receipt) == world.extend(receipt, 50) == world.nack(receipt) == 0
    assert world.ack(1) == 1  # a plain ID settles whatever is pending now


def test_an_ack_racing_a_seek_cannot_move_the_new_cursor() -> None:
    world = World(entries=5)
    world.poll()
    world.ack(3, 4)

    world.seek(1)

    assert world.ack(2, 3) == 0
    assert world.cursor == 1
    assert world.poll() == [2, 3, 4, 5]


def test_seek_keeps_dead_letters_and_does_not_replay_them() -> None:
    world = World(entries=3, group_max_attempts=1)
    world.poll(count=1)
    world.lapse()

    world.seek(0)

    assert world.dead == [1]
    assert world.poll() == [2, 3]
    world.crash()
    assert world.dead == [1]


def test_destroy_removes_dead_letters() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()

    world.keyspace.destroy_group(world.group)
    world.keyspace.create_group(world.stream, b"workers", 0, None)
    world.crash()

    assert world.dead == []
    assert world.poll() == [1]


def test_pause_holds_polls_not_settles() -> None:
    world = World(entries=5)
    world.poll(b"alice", count=3)
    world.pause()
    world.at(10)

    assert world.poll(b"bob") == world.autoclaim(b"bob") == world.claim(b"bob", 1) == []
    assert world.claim(b"alice", 1) == [1]
    assert world.history(b"alice") == [1, 2, 3]
    assert world.extend(world.receipt(2), 5000) == 5000
    assert world.ack(1) == world.nack(3) == 1
    world.run_to(5010)
    assert world.owed == [2, 3]
    assert world.poll(b"bob") == []
    world.resume()
    assert world.poll(b"bob") == [2, 3, 4, 5]


def test_a_pause_outlives_a_crash() -> None:
    world = World(entries=1)
    world.pause()

    world.crash()

    assert world.poll() == []
    world.resume()
    assert world.poll() == [1]
