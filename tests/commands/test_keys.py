"""Commands on keys of any type."""

from __future__ import annotations

import pytest

from felixresp.engine.changes import Dropped, ExpirySet, Renamed
from felixresp.protocol.reply import OK, Simple

from .driver import WALL_MS, Driver


def keys_of(driver: Driver, line: str = "KEYS *") -> set[bytes]:
    answer = driver.run(line)
    assert isinstance(answer, list)
    return set(answer)


def test_exists_counts_a_key_as_often_as_it_is_named(driver: Driver) -> None:
    driver.run("SET a 1")

    assert driver.run("EXISTS a a b") == 2


@pytest.mark.parametrize("command", ["DEL", "UNLINK"])
def test_a_deleted_key_is_counted_once(driver: Driver, command: str) -> None:
    driver.run("SET a 1")
    driver.run("SET b 1")

    assert driver.run(f"{command} a a b c") == 2
    assert [type(change) for change in driver.changes] == [Dropped, Dropped]
    assert driver.run("DBSIZE") == 0


def test_type_names_what_a_key_holds(driver: Driver) -> None:
    driver.run("SET a 1")
    driver.keyspace.create_stream(0, b"s")

    assert driver.run("TYPE a") == Simple(b"string")
    assert driver.run("TYPE s") == Simple(b"stream")
    assert driver.run("TYPE nokey") == Simple(b"none")


def test_keys_lists_what_matches_in_the_database(driver: Driver) -> None:
    for key in ("one", "two", "three"):
        driver.run(f"SET {key} 1")

    assert keys_of(driver, "KEYS t*") == {b"two", b"three"}
    assert keys_of(driver) == {b"one", b"two", b"three"}
    driver.run("SELECT 1")
    assert keys_of(driver) == set()


def test_scan_pages_through_every_key(driver: Driver) -> None:
    for n in range(100):
        driver.run(f"SET key:{n} 1")
    driver.keyspace.create_stream(0, b"s")

    met: set[bytes] = set()
    cursor = b"0"
    while True:
        answer = driver.run([b"SCAN", cursor, b"COUNT", b"7"])
        assert isinstance(answer, list)
        cursor, keys = answer
        assert len(keys) <= 7
        met.update(keys)
        if cursor == b"0":
            break

    assert len(met) == 101


def test_scan_filters_by_pattern_and_type(driver: Driver) -> None:
    driver.run("SET a 1")
    driver.run("SET b 1")
    driver.keyspace.create_stream(0, b"s")

    assert driver.run("SCAN 0 MATCH a*") == [b"0", [b"a"]]
    assert driver.run("SCAN 0 TYPE STREAM COUNT 100") == [b"0", [b"s"]]
    assert driver.run("SCAN 0 TYPE foo") == [b"0", []]


@pytest.mark.parametrize("cursor", ["0", "+0", "00", " 0", "18446744073709551615"])
def test_scan_reads_a_cursor_as_redis_does(driver: Driver, cursor: str) -> None:
    driver.run("SET a 1")

    assert driver.run([b"SCAN", cursor.encode()]) == [b"0", [b"a"]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN -1", "ERR invalid cursor"),
        ("SCAN ''", "ERR invalid cursor"),
        ("SCAN '0 '", "ERR invalid cursor"),
        ("SCAN 18446744073709551616", "ERR invalid cursor"),
        ("SCAN 0 COUNT", "ERR syntax error"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"),
        ("SCAN 0 MATCH", "ERR syntax error"),
        ("SCAN 0 FOO 1", "ERR syntax error"),
    ],
)
def test_scan_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text


def test_rename_takes_the_place_of_what_was_there(driver: Driver) -> None:
    driver.run("SET a 1 EX 100")
    driver.run("SET b 2")

    assert driver.run("RENAME a b") == OK
    assert driver.run("GET b") == b"1"
    assert driver.run("TTL b") == 100
    assert driver.run("EXISTS a") == 0


def test_rename_to_itself_changes_nothing(driver: Driver) -> None:
    driver.run("SET a 1")

    assert driver.run("RENAME a a") == OK
    assert driver.changes == []
    assert driver.run("RENAMENX a a") == 0


def test_renamenx_leaves_an_existing_key_alone(driver: Driver) -> None:
    driver.run("SET a 1")
    driver.run("SET b 2")

    assert driver.run("RENAMENX a b") == 0
    assert driver.run("RENAMENX a c") == 1
    assert isinstance(driver.changes[-1], Renamed)
    assert driver.error("RENAMENX a d") == "ERR no such key"
    assert driver.error("RENAME a a") == "ERR no such key"


def test_times_are_told_in_seconds_and_milliseconds(driver: Driver) -> None:
    driver.run("SET a 1 PX 1500")
    driver.run("SET b 1")

    assert driver.run("PTTL a") == 1500
    assert driver.run("TTL a") == 2
    assert driver.run("PEXPIRETIME a") == WALL_MS + 1500
    assert driver.run("EXPIRETIME a") == (WALL_MS + 1500 + 500) // 1000
    for command in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"):
        assert driver.run(f"{command} b") == -1
        assert driver.run(f"{command} nokey") == -2


def test_a_key_is_gone_when_its_time_comes(driver: Driver) -> None:
    driver.run("SET a 1")
    assert driver.run("EXPIRE a 10") == 1

    driver.wall_ms += 9_999
    assert driver.run("EXISTS a") == 1
    driver.wall_ms += 1
    assert driver.run("EXISTS a") == 0


@pytest.mark.parametrize(
    ("line", "expire_ms"),
    [
        ("EXPIRE a 10", WALL_MS + 10_000),
        ("PEXPIRE a 10", WALL_MS + 10),
        (f"EXPIREAT a {WALL_MS // 1000 + 1}", WALL_MS + 1000),
        (f"PEXPIREAT a {WALL_MS + 1}", WALL_MS + 1),
        ("PEXPIREAT a 9223372036854775807", 2**63 - 1),
    ],
)
def test_an_expiry_is_set_to_a_wall_time(
    driver: Driver, line: str, expire_ms: int
) -> None:
    driver.run("SET a 1")

    assert driver.run(line) == 1
    change = driver.changes[-1]
    assert isinstance(change, ExpirySet)
    assert change.expire_ms == expire_ms


@pytest.mark.parametrize("line", ["EXPIRE a 0", "PEXPIRE a -1", "EXPIREAT a 1"])
def test_a_time_that_is_over_deletes_at_once(driver: Driver, line: str) -> None:
    driver.run("SET a 1")

    assert driver.run(line) == 1
    assert isinstance(driver.changes[-1], Dropped)


@pytest.mark.parametrize(
    ("expiry", "option", "applied"),
    [
        ("", "NX", 1),
        ("", "XX", 0),
        ("", "GT", 0),
        ("", "LT", 1),
        ("", "XX LT", 0),
        ("EX 100", "NX", 0),
        ("EX 100", "xx", 1),
        ("EX 100", "GT", 1),
        ("EX 100", "LT", 0),
        ("EX 100", "XX GT", 1),
        ("EX 200", "GT", 0),
        ("EX 200", "LT", 0),
        ("EX 300", "GT", 0),
        ("EX 300", "LT", 1),
    ],
)
def test_an_expiry_may_have_a_condition(
    driver: Driver, expiry: str, option: str, applied: int
) -> None:
    driver.run(f"SET a 1 {expiry}")

    assert driver.run(f"EXPIRE a 200 {option}") == applied


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("EXPIRE a x", "ERR value is not an integer or out of range"),
        ("EXPIRE a x FOO", "ERR Unsupported option FOO"),
        ("EXPIRE nokey 1 FOO", "ERR Unsupported option FOO"),
        (
            "EXPIRE a 1 NX XX",
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        (
            "EXPIRE a 1 GT LT",
            "ERR GT and LT options at the same time are not compatible",
        ),
        ("EXPIRE a 9223372036854775807", "ERR invalid expire time in 'expire' command"),
        (
            "EXPIRE nokey -9223372036854775807",
            "ERR invalid expire time in 'expire' command",
        ),
        (
            "PEXPIRE a 9223372036854775807",
            "ERR invalid expire time in 'pexpire' command",
        ),
        (
            "EXPIREAT a 9223372036854776",
            "ERR invalid expire time in 'expireat' command",
        ),
    ],
)
def test_expire_errors(driver: Driver, line: str, text: str) -> None:
    assert driver.error(line) == text


def test_persist_takes_an_expiry_away(driver: Driver) -> None:
    driver.run("SET a 1 EX 100")

    assert driver.run("PERSIST a") == 1
    assert driver.run("TTL a") == -1
    assert driver.run("PERSIST a") == 0
    assert driver.run("PERSIST nokey") == 0


@pytest.mark.parametrize("way", ["", "ASYNC", "sync"])
def test_a_flush_empties_one_database_or_all(driver: Driver, way: str) -> None:
    driver.run("SET a 1")
    driver.run("SELECT 1")
    driver.run("SET a 1")

    assert driver.run(f"FLUSHDB {way}") == OK
    assert driver.run("DBSIZE") == 0
    driver.run("SELECT 0")
    assert driver.run("DBSIZE") == 1
    assert driver.run(f"FLUSHALL {way}") == OK
    assert driver.run("DBSIZE") == 0


@pytest.mark.parametrize("line", ["FLUSHDB foo", "FLUSHALL ASYNC x"])
def test_flush_errors(driver: Driver, line: str) -> None:
    assert driver.error(line) == "ERR syntax error"
