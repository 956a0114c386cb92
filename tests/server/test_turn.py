"""What is put off to the end of a turn."""

from __future__ import annotations

import asyncio

from felixresp.server.timers import Timer
from felixresp.server.turn import Turn


def test_each_callback_runs_once_at_the_end_in_order() -> None:
    async def scenario() -> list[str]:
        ran: list[str] = []
        turn = Turn(asyncio.get_running_loop())
        first, second = (lambda: ran.append("first")), (lambda: ran.append("second"))

        turn.begin()
        turn.at_end(first)
        turn.at_end(second)
        turn.at_end(first)
        assert ran == []
        turn.end()
        return ran

    assert asyncio.run(scenario()) == ["first", "second"]


def test_outside_a_turn_the_end_comes_when_the_loop_is_free() -> None:
    async def scenario() -> None:
        ran = asyncio.Event()
        turn = Turn(asyncio.get_running_loop())

        turn.at_end(ran.set)

        assert not ran.is_set()
        await ran.wait()

    asyncio.run(scenario())


def test_the_timer_moves_to_what_is_due_earlier_and_looks_again() -> None:
    async def scenario() -> list[int]:
        loop = asyncio.get_running_loop()
        now_ms = 0
        due: list[int | None] = [3_600_000, None]
        fired: list[int] = []
        over = asyncio.Event()

        def fire() -> None:
            fired.append(now_ms)
            due[1] = None
            over.set()

        turn = Turn(loop)
        timer = Timer(
            loop, turn, lambda: now_ms, (lambda: due[0], lambda: due[1]), fire
        )
        timer.touch()
        due[1] = 1
        timer.touch()
        await over.wait()
        timer.cancel()
        return fired

    assert asyncio.run(scenario()) == [0]
