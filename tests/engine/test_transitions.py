"""The table of the machine against a group that is taken through all of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from felixresp.engine import transitions
from felixresp.engine.changes import Tally
from felixresp.engine.settle import FATAL, SILENT
from felixresp.engine.transitions import (
    CLAIMED,
    DEAD,
    DELAYED,
    FINISHED,
    NEW,
    OWED,
    REDRIVEN,
    REJECTED,
    RESERVED,
    STATES,
    TABLE,
    Step,
)
from tests.engine.diagram import draw
from tests.scenarios.world import VISIBILITY_MS, World

DOCUMENT = Path(__file__).parents[2] / "docs" / "semantics.md"
BOUND = 5
ONE = 2  # the entry that is looked at; 1 is claimed beside it, 3 is new
ID = ONE << 64
DELAY_MS = 10 * VISIBILITY_MS
SHORT_MS = VISIBILITY_MS // 2
STALE = ID, 12345
PENDING = CLAIMED, RESERVED, DELAYED, OWED, REDRIVEN


def claimed(world: World) -> None:
    world.poll(b"alice", count=1, client=1)


def reserved(world: World) -> None:
    claimed(world)
    world.poll(b"alice", count=1, client=2, reclaim=True)


def delayed(world: World) -> None:
    claimed(world)
    world.nack(ONE, delay_ms=DELAY_MS)


def nacked(world: World) -> None:
    claimed(world)
    world.nack(ONE)


def lapsed(world: World) -> None:
    claimed(world)
    world.extend(ONE, 1, consumer=b"alice")
    world.run_to(1)


def redriven(world: World) -> None:
    dead(world)
    world.redrive(ONE)


def dead(world: World) -> None:
    claimed(world)
    world.nack(ONE, retry_count=BOUND)


def rejected(world: World) -> None:
    claimed(world)
    world.nack(ONE, mode=FATAL)


def acked(world: World) -> None:
    claimed(world)
    world.ack(ONE)


def new(_: World) -> None:
    """Nothing to do."""


Way = Callable[[World], None]

WAYS: dict[Way, str] = {
    new: NEW,
    claimed: CLAIMED,
    reserved: RESERVED,
    delayed: DELAYED,
    nacked: OWED,
    lapsed: OWED,
    redriven: REDRIVEN,
    dead: DEAD,
    rejected: REJECTED,
    acked: FINISHED,
}
TO_PENDING = [way for way, state in WAYS.items() if state in PENDING]


def _leave(world: World) -> None:
    for client in (1, 2):
        world.detach(client)
    world.fire_timer()


def _leave_with_grace(world: World) -> None:
    world.configure(disconnect_grace_ms=0)
    _leave(world)


def _ack_by_receipt(world: World) -> None:
    handout = world.group.pending.get(ID)
    world.ack((ID, handout.nonce if handout else 1))


def _remove_alice(world: World) -> None:
    world.remove_consumer(b"alice")


def _cut_short(world: World) -> None:
    """Entry 1 comes first, and fills the poll."""
    world.poll(b"alice", count=1, client=3, reclaim=True)


EVENTS: dict[str, Callable[[World], object]] = {
    "poll": lambda w: w.poll(b"bob", client=9),
    "poll NOACK": lambda w: w.poll(b"bob", client=9, no_ack=True),
    "poll by the reserving connection": lambda w: w.poll(b"alice", client=2),
    "poll RECLAIM by its member": lambda w: w.poll(b"alice", client=3, reclaim=True),
    "poll RECLAIM cut short": _cut_short,
    "history on another connection": lambda w: w.history(b"alice", client=3),
    "reply lost": World.lose_reply,
    "XCLAIM by its holder": lambda w: w.claim(b"alice", ONE, client=1),
    "XCLAIM by another": lambda w: w.claim(b"bob", ONE),
    "XCLAIM FORCE by another": lambda w: w.claim(b"bob", ONE, force=True),
    "XAUTOCLAIM by another": lambda w: w.autoclaim(b"bob"),
    "ack": lambda w: w.ack(ONE),
    "ack by its receipt": _ack_by_receipt,
    "ack by a stale receipt": lambda w: w.ack(STALE),
    "XEXTEND": lambda w: w.extend(ONE, 4321, consumer=b"alice"),
    "XEXTEND by a stale receipt": lambda w: w.extend(STALE, 4321),
    "nack SILENT": lambda w: w.nack(ONE, mode=SILENT),
    "nack FAIL": lambda w: w.nack(ONE),
    "nack FAIL with a delay": lambda w: w.nack(ONE, delay_ms=DELAY_MS),
    "nack FAIL FORCE": lambda w: w.nack(ONE, force=True),
    "nack FATAL": lambda w: w.nack(ONE, mode=FATAL),
    "nack by a stale receipt": lambda w: w.nack(STALE, mode=FATAL),
    "lapse": World.lapse,
    "delay over": lambda w: w.run_to(DELAY_MS),
    "connections closed": _leave,
    "disconnect grace over": _leave_with_grace,
    "consumer removed": _remove_alice,
    "crash": World.crash,
    "clean restart": World.restart,
    "redrive": lambda w: w.redrive(ONE),
    "discard": lambda w: w.discard(ONE),
    "seek below it": lambda w: w.seek(0),
    "seek beyond it": lambda w: w.seek(3),
    "SETID below it": lambda w: w.set_id(0),
    "SETID beyond it": lambda w: w.set_id(3),
}


def in_state(way: Way, event: str) -> World:
    world = World(entries=3, group_max_attempts=BOUND)
    world.poll(b"alice", count=1, client=1)
    if event == "delay over":  # and no lapse before it
        world.settings.group_visibility_timeout_ms = 2 * DELAY_MS
        world.extend(1, 2 * DELAY_MS, consumer=b"alice")
    way(world)
    return world


def state(world: World) -> str:
    found = world.state(ONE).decode()
    if found == DEAD and world.letter(ONE).cause == b"consumer":
        return REJECTED
    if found == OWED and ID in world.group.dead_letters.redriven:
        return REDRIVEN
    return found


def seen(world: World) -> object:
    """What a refusal leaves as it was; who held it last is only remembered."""
    group, told = world.group, world.explain(ONE)
    if ID in group.owed:
        return dataclasses.replace(told, consumer=b"")
    handout = group.pending.get(ID)
    return told, handout and handout.nonce, group.reserved.get(ID)


def expected_attempts(step: Step, before: int) -> int:
    match step.attempts.split():
        case ["+", "1"]:
            return before + 1
        case ["-", "1"]:
            return before - 1
        case ["=", number]:
            return int(number)
        case _:
            return before


def test_every_event_and_every_state_is_in_the_table() -> None:
    assert TABLE.keys() == EVENTS.keys()
    assert set(WAYS.values()) == set(STATES)
    for event, row in TABLE.items():
        assert row.keys() == set(STATES), event


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_group_does_what_the_table_says(way: Way, event: str) -> None:
    world, start = in_state(way, event), WAYS[way]
    assert state(world) == start
    step, before = TABLE[event][start], world.explain(ONE).attempts
    known = seen(world)

    EVENTS[event](world)

    if not step.to:
        assert seen(world) == known
        return
    assert state(world) == step.to
    if step.to in PENDING:
        assert world.explain(ONE).attempts == expected_attempts(step, before)
    if step.to != start or step.attempts:
        return
    assert seen(world) != known, "a step that changes nothing is a refusal"


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("way", TO_PENDING)
def test_a_group_does_what_the_table_says_of_spent_entries(
    way: Way, event: str
) -> None:
    world, start = in_state(way, event), WAYS[way]
    world.group.tallies[ID] = Tally(BOUND, BOUND, 0)
    step = TABLE[event][start]

    EVENTS[event](world)

    assert state(world) == (step.spent or step.to or start)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("way", TO_PENDING)
def test_a_group_does_what_the_table_says_of_entries_that_are_gone(
    way: Way, event: str
) -> None:
    world, start = in_state(way, event), WAYS[way]
    world.delete(ONE)
    step = TABLE[event][start]

    EVENTS[event](world)

    assert state(world) == (step.gone or step.to or start)


def test_the_diagram_in_the_documents_is_the_tables() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    block = text.split("<!-- machine -->\n```\n")[1].split("\n```\n<!-- -->")[0]

    assert block == draw(), "python -m tests.engine.diagram"


def test_no_step_leads_out_of_the_table() -> None:
    named = {*STATES, transitions.ABSENT, ""}
    for row in TABLE.values():
        for step in row.values():
            assert {step.to, step.spent, step.gone} <= named
