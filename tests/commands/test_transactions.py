"""MULTI, EXEC, DISCARD, WATCH, UNWATCH."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from felixresp.commands.args import Args
from felixresp.commands.context import (
    Answer,
    Block,
    Context,
    Monitor,
    Outcome,
)
from felixresp.commands.table import COMMANDS
from felixresp.engine.errors import NotResident
from felixresp.engine.stream import Stream
from felixresp.protocol.reply import NIL_ARRAY, OK, PONG, QUEUED, Error

from .driver import Driver

EXECABORT = "EXECABORT Transaction discarded because of previous errors."


def run(driver: Driver, *lines: str) -> list[Answer]:
    return [driver.run(line) for line in lines]


def with_handler(
    monkeypatch: pytest.MonkeyPatch, handler: Callable[[Context, Args], Answer]
) -> None:
    """Let EXEC run GET with another handler."""
    command = replace(COMMANDS[b"get"], handler=handler)
    monkeypatch.setitem(COMMANDS, b"get", command)


def test_what_is_queued_runs_at_exec(driver: Driver) -> None:
    assert run(driver, "MULTI", "SET a 1", "GET a", "GET b") == [OK, *[QUEUED] * 3]
    assert driver.keyspace.size(0) == 0

    assert driver.run("EXEC") == [OK, b"1", None]
    assert driver.run("PING") == PONG


def test_an_error_inside_does_not_stop_the_rest(driver: Driver) -> None:
    driver.keyspace.create_stream(0, b"s")
    run(driver, "MULTI", "GET s", "SET a x EX x", "SET a 1")

    answer = driver.run("EXEC")

    assert isinstance(answer, list)
    assert [type(reply) is Error for reply in answer] == [True, True, False]
    assert driver.run("GET a") == b"1"


def test_an_empty_transaction_answers_an_empty_array(driver: Driver) -> None:
    assert run(driver, "MULTI", "EXEC") == [OK, []]


@pytest.mark.parametrize("line", ["FOO", "SET a", "CLIENT FOO", "DISCARD x", "MULTI x"])
def test_a_bad_command_spoils_the_transaction(driver: Driver, line: str) -> None:
    driver.run("MULTI")
    driver.error(line)

    assert driver.run("SET a 1") == QUEUED
    assert driver.error("EXEC") == EXECABORT
    assert driver.error("EXEC") == "ERR EXEC without MULTI"
    assert driver.run("EXISTS a") == 0


def test_a_spoiled_transaction_comes_before_a_touched_key(driver: Driver) -> None:
    run(driver, "WATCH a", "SET a 1", "MULTI")
    driver.error("FOO")

    assert driver.error("EXEC") == EXECABORT


def test_multi_and_watch_inside_multi_are_refused_but_spoil_nothing(
    driver: Driver,
) -> None:
    driver.run("MULTI")

    assert driver.error("MULTI") == "ERR MULTI calls can not be nested"
    assert driver.error("WATCH a") == "ERR WATCH inside MULTI is not allowed"
    assert driver.run("PING") == QUEUED
    assert driver.run("EXEC") == [PONG]


def test_exec_with_an_argument_ends_the_transaction(driver: Driver) -> None:
    run(driver, "MULTI", "PING")

    assert driver.error("EXEC x") == (
        "EXECABORT Transaction discarded because of: "
        "wrong number of arguments for 'exec' command"
    )
    assert driver.run("PING") == PONG


def test_shutdown_is_not_queued(driver: Driver) -> None:
    driver.run("MULTI")

    text = driver.error("SHUTDOWN NOSAVE")

    assert text == "ERR Command not allowed inside a transaction"
    assert driver.error("EXEC") == EXECABORT


def test_discard_forgets_what_was_queued_and_watched(driver: Driver) -> None:
    run(driver, "WATCH a", "MULTI", "SET a 1")

    assert driver.run("DISCARD") == OK
    assert driver.client.watched == {}
    assert driver.error("DISCARD") == "ERR DISCARD without MULTI"
    assert driver.error("EXEC") == "ERR EXEC without MULTI"
    assert driver.run("EXISTS a") == 0


@pytest.mark.parametrize(
    "touch", ["SET a 2", "DEL a", "EXPIRE a 100", "RENAME a b", "FLUSHALL", "SET a 1"]
)
def test_a_watched_key_that_was_touched_stops_exec(driver: Driver, touch: str) -> None:
    other = driver.connect()
    run(driver, "SET a 1", "WATCH a", "MULTI", "SET c 1")
    driver.run(touch, other)

    assert driver.run("EXEC") is NIL_ARRAY
    assert driver.run("EXISTS c") == 0
    assert run(driver, "MULTI", "PING", "EXEC")[-1] == [PONG]


def test_a_watched_key_that_expired_stops_exec(driver: Driver) -> None:
    run(driver, "SET a 1 PX 10", "WATCH a", "MULTI", "PING")
    driver.wall_ms += 10

    assert driver.run("EXEC") is NIL_ARRAY


def test_a_watched_key_nobody_touched_lets_exec_run(driver: Driver) -> None:
    run(driver, "SET a 1", "WATCH a a b", "GET a", "SET c 1", "MULTI", "GET a")

    assert driver.run("EXEC") == [b"1"]
    assert driver.client.watched == {}


def test_a_key_is_watched_in_its_own_database(driver: Driver) -> None:
    run(driver, "WATCH a", "SELECT 1", "SET a 1", "MULTI", "PING")

    assert driver.run("EXEC") == [PONG]


def test_watching_again_keeps_the_first_look(driver: Driver) -> None:
    run(driver, "WATCH a", "SET a 1", "WATCH a", "MULTI", "PING")

    assert driver.run("EXEC") is NIL_ARRAY


def test_unwatch_forgets(driver: Driver) -> None:
    run(driver, "WATCH a", "SET a 1", "UNWATCH", "MULTI", "PING")

    assert driver.run("EXEC") == [PONG]


def test_unwatch_inside_multi_comes_too_late(driver: Driver) -> None:
    run(driver, "WATCH a", "SET a 1", "MULTI")

    assert driver.run("UNWATCH") == QUEUED
    assert driver.run("EXEC") is NIL_ARRAY


def test_effects_of_the_inner_commands_come_with_the_replies(driver: Driver) -> None:
    driver.connect()
    run(driver, "MULTI", "PING", "CLIENT KILL ID 2")

    answer = driver.run("EXEC")

    assert isinstance(answer, Outcome)
    assert answer.reply == [PONG, 1]
    assert len(answer.effects) == 1


def test_monitor_is_refused_inside(driver: Driver) -> None:
    run(driver, "MULTI", "MONITOR")

    answer = driver.run("EXEC")

    assert answer == [Error(b"ERR MONITOR isn't allowed for DENY BLOCKING client")]
    outside = driver.run("MONITOR")
    assert isinstance(outside, Outcome)
    assert isinstance(outside.effects[0], Monitor)


def test_nothing_blocks_inside(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def blocking(ctx: Context, _args: Args) -> Answer:
        seen.append(ctx.in_multi)
        return Block((b"a",), None)

    with_handler(monkeypatch, blocking)
    context = driver.context()
    run(driver, "MULTI", "GET a")

    assert driver.run("EXEC", context=context) == [NIL_ARRAY]
    assert seen == [True]
    assert context.in_multi is False


def test_a_cold_read_inside_is_loaded_at_once(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = driver.keyspace.create_stream(0, b"s")
    calls: list[Stream] = []

    def cold(_ctx: Context, _args: Args) -> Answer:
        calls.append(stream)
        if len(calls) == 1:
            raise NotResident(stream, ())
        return 1

    with_handler(monkeypatch, cold)
    run(driver, "MULTI", "GET s")

    assert driver.run("EXEC") == [1]
    assert len(driver.server.loaded) == 1


def test_a_full_disk_refuses_the_whole_transaction(driver: Driver) -> None:
    run(driver, "MULTI", "PING", "SET a 1")
    driver.server.full = True

    assert driver.error("EXEC").startswith(
        "EXECABORT Transaction discarded because of: MISCONF No space"
    )
    assert driver.run("PING") == PONG


def test_the_bytes_that_may_be_queued_are_bounded(driver: Driver) -> None:
    driver.settings.client_query_buffer_limit = 1000
    driver.run("MULTI")

    assert driver.run([b"SET", b"a", b"x" * 500]) == QUEUED
    text = driver.error([b"SET", b"a", b"x" * 500])

    assert text == "ERR transaction exceeds client-query-buffer-limit"
    assert driver.error("EXEC") == EXECABORT
    assert driver.client.queued_bytes == 0


def test_a_queued_command_on_a_key_of_another_type_fails_alone(driver: Driver) -> None:
    driver.script("SET str x\n MULTI\n XLEN str\n XPOLL str g a\n STRLEN str")

    wrong, polled, length = driver.show("EXEC")

    assert wrong.startswith("!WRONGTYPE")
    assert polled.startswith("!WRONGTYPE")
    assert length == 1
