"""What a group says of an entry, and of itself."""

from __future__ import annotations

from felixresp.engine.explain import blocked_by, settle_time
from felixresp.engine.handouts import Attempt
from felixresp.engine.settle import FATAL, SILENT
from tests.scenarios.world import VISIBILITY_MS, World


def test_what_was_never_handed_out_is_new_or_absent() -> None:
    world = World(entries=1)

    assert world.state(1) == b"new"
    assert world.state(2) == b"absent"


def test_what_is_acked_or_skipped_is_finished() -> None:
    world = World(entries=3)
    world.poll(count=2)
    world.ack(1)
    world.delete(2)
    world.lapse()

    assert [world.state(number) for number in (1, 2, 3)] == [
        b"finished",
        b"finished",
        b"new",
    ]


def test_a_claim_says_who_holds_it_since_when_until_when() -> None:
    world = World(entries=1)
    world.at(5)
    world.poll(b"alice", user=b"ann", visibility_ms=70)

    told = world.explain(1)

    assert (told.state, told.consumer, told.user) == (b"claimed", b"alice", b"ann")
    assert (told.held_since_ms, told.until_ms) == (5, 75)
    assert (told.attempts, told.deliveries, told.first_ms) == (1, 1, 5)
    assert told.story == ()


def test_a_heartbeat_does_not_change_since_when_it_is_held() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(500)

    world.claim(b"alice", 1)

    told = world.explain(1)
    assert (told.held_since_ms, told.until_ms) == (0, 500 + VISIBILITY_MS)


def test_a_delay_says_until_when_and_why() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.nack(1, delay_ms=500, reason=b"busy")

    told = world.explain(1)

    assert (told.state, told.until_ms, told.reason) == (b"delayed", 500, b"busy")
    assert (told.held_since_ms, told.user) == (0, b"")


def test_an_owed_entry_says_who_held_it_last() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.lapse()

    told = world.explain(1)

    assert (told.state, told.consumer) == (b"owed", b"alice")
    assert (told.held_since_ms, told.until_ms) == (0, 0)


def test_a_reserved_entry_is_held_still() -> None:
    world = World(entries=2)
    world.poll(b"alice", client=1)
    world.poll(b"alice", count=1, client=2, reclaim=True)

    told = world.explain(2)

    assert (told.state, told.consumer) == (b"reserved", b"alice")
    assert told.until_ms == VISIBILITY_MS


def test_a_dead_letter_says_why_and_keeps_its_story() -> None:
    world = World(entries=1)
    world.poll(b"alice")
    world.at(30)
    world.nack(1, mode=FATAL, reason=b"no such user")

    told = world.explain(1)

    assert (told.state, told.attempts) == (b"dead", 1)
    assert (told.consumer, told.reason) == (b"alice", b"no such user")
    assert list(told.story) == [Attempt(b"alice", 0, 30, b"fatal", b"no such user")]


def test_the_story_tells_how_each_attempt_ended() -> None:
    world = World(entries=1, group_max_attempts=0, group_disconnect_grace_ms=0)
    world.poll(b"a")
    world.lapse()
    world.poll(b"b")
    world.nack(1, reason=b"busy")
    world.poll(b"c")
    world.nack(1, mode=SILENT)
    world.poll(b"d")
    world.claim(b"e", 1)
    world.remove_consumer(b"e")
    world.poll(b"f", client=1)
    world.poll(b"f", client=2, reclaim=True)
    world.detach(2)
    world.detach(1)
    world.fire_timer()
    world.poll(b"g")

    world.crash()

    told = [(attempt.consumer, attempt.how) for attempt in world.explain(1).story]
    assert told == [
        (b"a", b"lapse"),
        (b"b", b"fail"),
        (b"c", b"silent"),
        (b"d", b"takeover"),
        (b"e", b"removed"),
        (b"f", b"reclaim"),
        (b"f", b"disconnect"),
        (b"g", b"restart"),
    ]


def test_a_story_keeps_the_last_16_attempts() -> None:
    world = World(entries=1, group_max_attempts=0)
    for number in range(20):
        world.poll(b"%d" % number)
        world.lapse()

    story = world.explain(1).story

    assert [attempt.consumer for attempt in story] == [b"%d" % n for n in range(4, 20)]


def test_a_story_ends_with_its_entry() -> None:
    world = World(entries=2, group_max_attempts=1)
    world.poll()
    world.nack(1)
    world.nack(2, mode=SILENT)
    world.poll()
    world.ack(2)

    assert world.group.stories.keys() == {1 << 64}
    world.discard(1)
    assert world.group.stories == {}


def test_a_reply_that_was_lost_is_no_attempt_of_the_story() -> None:
    world = World(entries=1)
    world.poll()

    world.lose_reply()

    assert world.explain(1).story == ()


def test_a_redriven_entrys_story_goes_on() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill(b"alice")
    world.redrive(1)
    world.kill(b"bob")

    story = world.explain(1).story

    assert [attempt.consumer for attempt in story] == [b"alice", b"bob"]


def test_what_is_due_is_ended_before_anything_is_told() -> None:
    world = World(entries=2500)
    for _ in range(25):
        world.poll(count=100)
    world.at(VISIBILITY_MS)

    settle_time(world.group, world.now_ms)

    assert len(world.owed) == 2500


def test_a_group_says_what_blocks_it() -> None:
    world = World(entries=4, group_max_attempts=1)
    assert blocked_by(world.group) == []
    world.poll(count=1)
    world.lapse()
    world.poll(count=2)

    world.configure(
        max_in_flight=2, max_dead_letters=1, max_acked_ahead_ranges=2, max_attempts=5
    )
    world.pause()

    told = [b"cap", b"acked-ahead", b"paused", b"dead-letters"]
    assert list(blocked_by(world.group)) == told
