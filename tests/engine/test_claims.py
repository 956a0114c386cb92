"""How claims start and end, beyond what the scenarios tell."""

from __future__ import annotations

import dataclasses

import pytest

from felixresp.engine import claims
from felixresp.engine.changes import Died, Ready
from felixresp.engine.errors import NotResident
from felixresp.engine.nodes import Node
from tests.scenarios.world import VISIBILITY_MS, World


def evict(world: World) -> dict[Node, tuple[bytes, bytes]]:
    """Every sealed node leaves memory; returns what the store would have."""
    store = {}
    for node in world.stream.nodes:
        if node.payload is not None and node.index is not None:
            store[node] = node.payload, node.index
    world.keyspace.cache.stored(store)
    world.keyspace.cache.shrink(0)
    return store


def test_claims_on_evicted_entries_lapse_once_their_nodes_are_back() -> None:
    world = World(entries=5, stream_node_max_entries=2)
    world.poll()
    world.stream.delete([4 << 64])  # now any entry up to it may be gone
    store = evict(world)
    world.at(VISIBILITY_MS)
    world.changes()

    with pytest.raises(NotResident) as missing:
        world.fire_timer()
    assert world.changes() == []
    assert world.group.next_deadline() == VISIBILITY_MS
    for node in missing.value.nodes:
        world.keyspace.cache.load(node, *store[node])
    world.fire_timer()

    assert world.owed == [1, 2, 3, 5]
    assert world.group.skipped == 1


def test_lapses_need_no_node_where_nothing_was_deleted() -> None:
    world = World(entries=50, stream_node_max_entries=2)
    world.poll()
    evict(world)

    world.lapse()

    assert len(world.owed) == 50


def test_at_most_about_a_thousand_claims_lapse_in_one_call() -> None:
    world = World(entries=1500)
    for _ in range(15):
        world.poll(count=100)
    world.at(VISIBILITY_MS)

    claims.expire(world.group, world.now_ms)
    assert len(world.owed) == 1000
    claims.expire(world.group, world.now_ms)

    assert len(world.owed) == 1500


def test_a_death_while_nobody_was_turned_away_wakes_nobody() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.poll()
    world.changes()

    world.lapse()

    assert [type(change) for change in world.changes()] == [Died]


def test_a_skip_where_a_poll_was_turned_away_says_that_there_is_room() -> None:
    world = World(entries=1, group_max_in_flight=1)
    world.poll()
    world.poll()
    world.stream.delete([1 << 64])
    world.changes()

    world.lapse()

    assert Ready in {type(change) for change in world.changes()}


def test_an_ack_of_a_consumers_dead_letter_answers_0_and_leaves_it_listed() -> None:
    world = World(entries=1, group_max_attempts=1)
    world.kill()
    letters = world.group.dead_letters
    letters.add(dataclasses.replace(letters.listed[1 << 64], cause=b"consumer"))

    assert world.ack(1) == 0
    assert world.dead == [1]


def test_a_mixed_ack_counts_what_it_settled() -> None:
    world = World(entries=4, group_max_attempts=1)
    world.poll(count=1)
    world.lapse()
    world.poll(count=2)

    assert world.ack(1, 2, 2, 4, 9) == 2
    assert world.dead == []


def test_a_longer_min_idle_lifts_the_visibility_also_of_standing_claims() -> None:
    world = World(entries=2)
    world.poll(count=1)

    assert claims.learn(world.group, 600_000, 0)
    world.at(10)
    world.poll(count=1)

    assert world.group.next_deadline() == 600_000
    world.at(599_999)
    world.fire_timer()
    assert world.owed == []
    world.at(600_010)
    world.fire_timer()
    assert world.owed == [1, 2]


def test_nothing_is_learned_from_a_shorter_one_or_when_it_is_switched_off() -> None:
    world = World(group_learn_visibility="no")
    assert not claims.learn(world.group, 600_000, 0)
    world.settings.group_learn_visibility = "yes"
    assert not claims.learn(world.group, VISIBILITY_MS, 0)

    assert world.group.visibility_ms == VISIBILITY_MS


def test_what_is_learned_is_capped() -> None:
    world = World(group_max_visibility_ms=5000)

    claims.learn(world.group, 600_000, 0)

    assert world.group.visibility_ms == 5000


def test_a_reply_lost_after_its_consumer_was_removed_changes_nothing() -> None:
    world = World(entries=1)
    world.poll()
    world.remove_consumer(b"alice")
    world.changes()

    world.lose_reply()

    assert world.changes() == []
