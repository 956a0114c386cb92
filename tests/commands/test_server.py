"""INFO, CONFIG, TIME, DBSIZE, MEMORY, OBJECT, MONITOR, SHUTDOWN, and the empty ones."""

from __future__ import annotations

import pytest

from felixresp.commands.context import Outcome, Shutdown
from felixresp.protocol.reply import OK, Map, Simple, Verbatim

from .driver import WALL_MS, Driver

SERVER = b"# Server\r\nredis_version:7.2.4\r\ntcp_port:6379\r\n"
CLIENTS = b"# Clients\r\nconnected_clients:1\r\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("INFO", SERVER + b"\r\n" + CLIENTS),
        ("INFO all", SERVER + b"\r\n" + CLIENTS),
        ("INFO everything", SERVER + b"\r\n" + CLIENTS),
        ("INFO foo DEFAULT", SERVER + b"\r\n" + CLIENTS),
        ("INFO server", SERVER),
        ("INFO Clients foo", CLIENTS),
        ("INFO foo", b""),
    ],
)
def test_info_shows_the_sections_asked_for(
    driver: Driver, line: str, text: bytes
) -> None:
    assert driver.run(line) == Verbatim(text)


def test_settings_are_found_by_pattern(driver: Driver) -> None:
    assert driver.run("CONFIG GET timeout TIMEOUT time*") == Map(((b"timeout", b"0"),))
    assert driver.run("CONFIG GET TIMEOUT") == Map(((b"TIMEOUT", b"0"),))
    assert driver.run("CONFIG GET checkpoint-* nope") == Map(
        ((b"checkpoint-bytes", b"33554432"), (b"checkpoint-seconds", b"30"))
    )
    assert driver.run("CONFIG GET nope") == Map(())


def test_facts_are_shown_like_settings_and_cannot_be_set(driver: Driver) -> None:
    assert driver.run("CONFIG GET appendonly SAVE maxmemory*") == Map(
        (
            (b"appendonly", b"yes"),
            (b"maxmemory", b"0"),
            (b"maxmemory-policy", b"noeviction"),
            (b"SAVE", b""),
        )
    )
    assert driver.error("CONFIG SET appendonly no") == (
        f"{FAILED} 'appendonly') - can't set immutable config"
    )


def test_settings_are_changed_all_or_none(driver: Driver) -> None:
    assert driver.run("CONFIG SET TIMEOUT 5 cache-max-bytes 2mb") == OK
    assert driver.settings.timeout == 5
    assert driver.settings.cache_max_bytes == 2 * 1024 * 1024

    driver.error("CONFIG SET timeout 6 maxclients x")

    assert driver.settings.timeout == 5


FAILED = "ERR CONFIG SET failed (possibly related to argument"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("timeout", "ERR wrong number of arguments for 'config|set' command"),
        ("timeout 5 foo", "ERR syntax error"),
        (
            "timeout 5 foo 6",
            "ERR Unknown option or number of arguments for CONFIG SET - 'foo'",
        ),
        ("timeout 5 TIMEOUT 6", f"{FAILED} 'TIMEOUT') - duplicate parameter"),
        ("databases 5", f"{FAILED} 'databases') - can't set immutable config"),
        *(
            (
                f"timeout '{value}'",
                f"{FAILED} 'timeout') - argument couldn't be parsed into an integer",
            )
            for value in ("x", "", " 5", "01", "1.5")
        ),
        (
            "timeout -1",
            f"{FAILED} 'timeout') - "
            "argument must be between 0 and 2147483647 inclusive",
        ),
        (
            "client-query-buffer-limit 5x",
            f"{FAILED} 'client-query-buffer-limit') - argument must be a memory value",
        ),
        (
            "group-learn-visibility maybe",
            f"{FAILED} 'group-learn-visibility') - argument must be 'yes' or 'no'",
        ),
        (
            "group-mode maybe",
            f"{FAILED} 'group-mode') - "
            "argument(s) must be one of the following: lease, redis",
        ),
    ],
)
def test_config_set_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(f"CONFIG SET {line}") == text
    assert driver.settings.timeout == 0


def test_statistics_are_reset(driver: Driver) -> None:
    assert driver.run("CONFIG RESETSTAT") == OK
    assert driver.server.resets == 1


def test_time_and_size(driver: Driver) -> None:
    driver.wall_ms = WALL_MS + 7
    driver.run("SET a 1")

    assert driver.run("TIME") == [b"%d" % (WALL_MS // 1000), b"7000"]
    assert driver.run("DBSIZE") == 1


def test_memory_usage_grows_with_the_value(driver: Driver) -> None:
    driver.run("SET a x")
    small = driver.run("MEMORY USAGE a")
    driver.run([b"SET", b"a", b"x" * 1000])
    large = driver.run("MEMORY USAGE a SAMPLES 5")

    assert isinstance(small, int)
    assert large == small + 999
    assert driver.run("MEMORY USAGE nokey") is None


def test_memory_usage_of_a_stream_counts_its_nodes(driver: Driver) -> None:
    stream = driver.keyspace.create_stream(0, b"s")
    empty = driver.run("MEMORY USAGE s")
    stream.append(1 << 64, [b"f", b"x" * 100])
    full = driver.run("MEMORY USAGE s SAMPLES 0")

    assert isinstance(empty, int)
    assert isinstance(full, int)
    assert full > empty + 100


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("MEMORY USAGE a SAMPLES", "ERR syntax error"),
        ("MEMORY USAGE a SAMPLES -1", "ERR syntax error"),
        ("MEMORY USAGE a FOO 1", "ERR syntax error"),
        ("MEMORY USAGE a SAMPLES x", "ERR value is not an integer or out of range"),
        ("SHUTDOWN foo", "ERR syntax error"),
        ("SHUTDOWN SAVE NOSAVE", "ERR syntax error"),
        ("SHUTDOWN ABORT", "ERR No shutdown in progress."),
        ("CLUSTER INFO", "ERR This instance has cluster support disabled"),
        ("CLUSTER SLOTS", "ERR This instance has cluster support disabled"),
        ("SLOWLOG GET x", "ERR count should be greater than or equal to -1"),
        ("SLOWLOG GET -2", "ERR count should be greater than or equal to -1"),
    ],
)
def test_server_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (b"5", b"int"),
        (b"-9223372036854775808", b"int"),
        (b"9223372036854775808", b"embstr"),
        (b"01", b"embstr"),
        (b"x" * 44, b"embstr"),
        (b"x" * 45, b"raw"),
    ],
)
def test_a_string_has_the_encoding_redis_shows(
    driver: Driver, value: bytes, encoding: bytes
) -> None:
    driver.run([b"SET", b"a", value])

    assert driver.run("OBJECT ENCODING a") == encoding


def test_objects(driver: Driver) -> None:
    driver.keyspace.create_stream(0, b"s")

    assert driver.run("OBJECT ENCODING s") == b"stream"
    assert driver.run("OBJECT REFCOUNT s") == 1
    assert driver.error("OBJECT FREQ s").startswith("ERR An LFU maxmemory policy is")
    for subcommand in ("ENCODING", "REFCOUNT", "FREQ"):
        assert driver.run(f"OBJECT {subcommand} nokey") is None


@pytest.mark.parametrize("words", ["", "NOSAVE", "save now force"])
def test_shutdown_stops_the_server(driver: Driver, words: str) -> None:
    answer = driver.run(f"SHUTDOWN {words}")

    assert isinstance(answer, Outcome)
    assert isinstance(answer.effects[0], Shutdown)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("MODULE LIST", []),
        ("LATENCY LATEST", []),
        ("LATENCY HISTORY fork", []),
        ("LATENCY RESET", 0),
        ("SLOWLOG GET", []),
        ("SLOWLOG GET -1", []),
        ("SLOWLOG LEN", 0),
        ("SLOWLOG RESET", OK),
    ],
)
def test_what_there_is_none_of_is_empty(
    driver: Driver, line: str, answer: object
) -> None:
    assert driver.run(line) == answer


@pytest.mark.parametrize("command", ["CONFIG", "MEMORY", "OBJECT", "COMMAND"])
def test_help_ends_with_itself(driver: Driver, command: str) -> None:
    answer = driver.run(f"{command} HELP")

    assert isinstance(answer, list)
    assert answer[-2:] == [Simple(b"HELP"), Simple(b"    Print this help.")]
