"""Seek, settings and pause, beyond what the scenarios tell."""

from __future__ import annotations

import pytest

from felixresp.config import InvalidSetting
from felixresp.engine import admin
from felixresp.engine.changes import Configured
from felixresp.engine.settle import FATAL
from tests.scenarios.world import VISIBILITY_MS, World


def test_a_seek_voids_claims_delays_counts_reservations_and_finished_ranges() -> None:
    world = World(entries=6)
    world.poll(b"alice", client=1)
    world.ack(3)
    world.nack(4, delay_ms=500)
    world.nack(5)
    world.poll(b"alice", count=1, client=2, reclaim=True)
    receipt = world.receipt(1)

    world.seek(0)

    group = world.group
    assert not any((group.pending, group.owed, group.delayed, group.reserved))
    assert group.next_deadline() is None
    assert group.lag == 6
    assert world.ack(receipt) == 0
    assert world.poll(b"bob") == [1, 2, 3, 4, 5, 6]
    assert [world.attempts(number) for number in range(1, 7)] == [1] * 6
    world.crash()
    assert world.owed == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("position", [0, 1, 2, 3])
@pytest.mark.parametrize("crashed", [False, True])
def test_redriven_entries_go_out_once_wherever_the_seek_goes(
    position: int, crashed: bool
) -> None:
    world = World(entries=3, group_max_attempts=1)
    world.poll(count=2)
    world.lapse()
    world.redrive(2)

    world.seek(position)
    if crashed:
        world.crash()

    later = [number for number in (3,) if number > position]
    assert world.owed == [2]
    assert world.poll() == [2, *later]
    assert world.attempts(2) == 1
    assert world.dead == [1]
    assert world.ack(2, *later) == 1 + len(later)
    assert world.poll() == []
    assert world.cursor == 3


def test_a_redriven_entry_that_is_held_goes_out_again_after_a_seek() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()
    world.redrive(1)
    world.poll(b"alice")
    receipt = world.receipt(1)

    world.seek(1)

    assert world.ack(receipt) == 0
    assert world.explain(1).story[-1].how == b"seek"
    assert world.poll(b"bob") == [1]


def test_a_seek_keeps_settings_pause_and_consumers() -> None:
    world = World(entries=1)
    world.configure(max_attempts=9)
    world.pause()
    world.member(b"alice")

    world.seek(0)

    assert world.group.settings.group_max_attempts == 9
    assert world.group.paused
    assert world.group.consumers.keys() == {b"alice"}


def test_positions_of_a_stream_are_clamped_to_it() -> None:
    world = World()
    for number in (10, 20, 30):
        world.append(number)
    world.delete(10)

    assert admin.oldest(world.stream) == (20 << 64) - 1
    assert admin.at_time(world.stream, 20) == (20 << 64) - 1
    assert admin.at_time(world.stream, 21) == (21 << 64) - 1
    assert admin.at_time(world.stream, 5) == (20 << 64) - 1
    assert admin.at_time(world.stream, -(10**30)) == (20 << 64) - 1
    assert admin.at_time(world.stream, 10**30) == 30 << 64


def test_the_oldest_position_of_an_empty_stream_is_its_end() -> None:
    world = World()
    assert admin.oldest(world.stream) == admin.at_time(world.stream, 7) == 0
    world.append(1, 2)
    world.delete(1, 2)

    assert admin.oldest(world.stream) == admin.at_time(world.stream, 1) == 2 << 64


def test_a_groups_own_setting_goes_before_the_servers_and_the_rest_follows_it() -> None:
    world = World(entries=3)
    world.configure(visibility_timeout_ms=50)
    world.settings.group_visibility_timeout_ms = 7
    world.settings.group_max_in_flight = 2

    assert world.poll() == [1, 2]
    assert world.group.next_deadline() == 50


def test_settings_affect_later_claims_only() -> None:
    world = World(entries=2)
    world.poll(count=1)
    world.configure(visibility_timeout_ms=50)

    assert world.group.next_deadline() == VISIBILITY_MS
    world.poll()
    assert world.group.next_deadline() == 50


def test_own_settings_add_up_and_outlive_a_crash() -> None:
    world = World(entries=1)
    world.configure(max_attempts=2, backoff="FIXED   10")
    world.configure(max_attempts=3)

    world.crash()

    assert world.group.own_settings == {"max-attempts": "3", "backoff": "fixed 10"}
    assert world.group.settings.group_max_attempts == 3
    world.poll()
    world.nack(1)
    assert world.state(1) == b"delayed"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "kafka"),
        ("max_attempts", "-1"),
        ("max_attempts", "many"),
        ("visibility_timeout_ms", "0"),
        ("visibility_timeout_ms", "9" * 30),
        ("backoff", "exponential 1"),
        ("durable_claims", "maybe"),
        ("disconnect_grace_ms", "-2"),
        ("claims_follow", ""),
    ],
)
def test_a_bad_setting_is_refused_and_changes_nothing(name: str, value: str) -> None:
    world = World()
    world.changes()

    with pytest.raises(InvalidSetting):
        world.configure(**{"max_in_flight": "5", name: value})

    assert world.changes() == []
    assert world.group.own_settings == {}


def test_a_setting_that_is_none_is_refused_and_changes_nothing() -> None:
    world = World()
    world.changes()

    with pytest.raises(KeyError):
        world.configure(max_in_flight=5, port=1)

    assert world.changes() == []


def test_to_pause_what_is_paused_changes_nothing() -> None:
    world = World()
    world.pause()
    world.changes()

    world.pause()

    assert world.changes() == []


def test_pause_and_settings_do_not_undo_each_other() -> None:
    world = World(entries=1)
    world.configure(max_attempts=2)
    world.autoclaim(b"bob", 5000)
    world.pause()
    world.configure(max_attempts=3)

    assert world.group.paused
    assert world.group.visibility_ms == 5000
    world.resume()
    assert world.group.own_settings == {"max-attempts": "3"}
    changes = world.changes()
    assert sum(isinstance(change, Configured) for change in changes) == 5
    world.crash()
    assert world.group.visibility_ms == 5000


def test_a_fatal_entry_above_the_head_is_not_replayed_either() -> None:
    world = World(entries=3)
    world.poll()
    world.nack(3, mode=FATAL)

    world.seek(0)

    assert world.poll() == [1, 2]
    assert world.group.lag == 0
    assert world.redrive(3) == 1
    assert world.poll() == [3]
