"""Whole runs: many workers, and a server that is killed at any moment."""

from __future__ import annotations

import random

from tests.scenarios.world import World


def test_in_a_run_without_faults_no_delivery_starts_after_its_ack_returned() -> None:
    chance = random.Random(11)
    world = World(group_max_attempts=0)
    acked: set[int] = set()
    held: dict[bytes, list[int]] = {b"a": [], b"b": [], b"c": []}

    for turn in range(1, 2001):
        world.append(turn)
        consumer = chance.choice(list(held))
        given = world.poll(consumer, count=chance.randint(1, 5))
        assert not acked.intersection(given)
        held[consumer] += given
        done = [number for number in held[consumer] if chance.random() < 0.5]
        world.ack(*done)
        acked.update(done)
        held[consumer] = [n for n in held[consumer] if n not in done]
        world.at(world.now_ms + chance.randint(0, 100))

    assert world.group.skipped == 0


def test_under_random_kills_every_entry_is_accounted_for_and_no_ack_is_forgotten() -> (
    None
):
    for seed in range(20):
        _run_with_kills(random.Random(seed))


def _run_with_kills(chance: random.Random) -> None:
    world = World(group_max_attempts=2)
    world.changes()
    acked: set[int] = set()
    written = 0

    for _ in range(300):
        deed = chance.randrange(10)
        if deed < 3:
            written += 1
            world.append(written)
        elif deed < 7:
            given = world.poll(count=chance.randint(1, 4))
            assert not acked.intersection(given)
            if given and chance.random() < 0.6:
                world.ack(*given[:2])
                acked.update(given[:2])
        elif deed < 8:
            world.at(world.now_ms + chance.randint(0, 1500))
        changes = world.changes()
        if chance.random() < 0.05:
            # lazy changes at the journal's end may be lost, answered ones not
            lazy = changes and not any(change.MUST_WAIT for change in changes)
            world.crash(batches=len(world.journal) - bool(lazy))

    pending = {id_ >> 64 for id_ in world.group.pending}
    dead = set(world.dead)
    new = {
        number for number in range(1, written + 1) if number << 64 > world.group.head
    }
    finished = set(range(1, written + 1)) - pending - dead - new
    assert finished == acked
