"""SET, GET, STRLEN."""

from __future__ import annotations

import pytest

from felixresp.protocol.reply import OK

from .driver import WALL_MS, Driver

WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
INVALID_EXPIRE = "ERR invalid expire time in 'set' command"


def test_a_string_is_set_read_and_measured(driver: Driver) -> None:
    assert driver.run("SET a hello") == OK
    assert driver.run("GET a") == b"hello"
    assert driver.run("STRLEN a") == 5
    assert driver.run("GET nokey") is None
    assert driver.run("STRLEN nokey") == 0


def test_any_bytes_are_a_value(driver: Driver) -> None:
    value = bytes(range(256))

    driver.run([b"SET", b"", value])

    assert driver.run([b"GET", b""]) == value


def test_set_takes_the_place_of_any_type(driver: Driver) -> None:
    driver.keyspace.create_stream(0, b"s")

    assert driver.error("GET s") == WRONGTYPE
    assert driver.error("STRLEN s") == WRONGTYPE
    assert driver.error("SET s 1 GET") == WRONGTYPE
    assert driver.error("SET s 1 NX GET") == WRONGTYPE
    assert driver.run("SET s 1 NX") is None
    assert driver.run("SET s 1") == OK
    assert driver.run("GET s") == b"1"


@pytest.mark.parametrize(
    ("before", "options", "answer", "after"),
    [
        (b"", "NX", OK, b"new"),
        (b"old", "NX", None, b"old"),
        (b"", "XX", None, None),
        (b"old", "XX", OK, b"new"),
        (b"old", "GET", b"old", b"new"),
        (b"", "GET", None, b"new"),
        (b"old", "nx get", b"old", b"old"),
        (b"", "NX GET", None, b"new"),
        (b"", "XX GET", None, None),
        (b"old", "XX XX GET GET", b"old", b"new"),
    ],
)
def test_set_may_depend_on_what_is_there(
    driver: Driver, before: bytes, options: str, answer: object, after: bytes | None
) -> None:
    if before:
        driver.run([b"SET", b"a", before])

    assert driver.run(f"SET a new {options}") == answer
    assert driver.run("GET a") == after


@pytest.mark.parametrize(
    ("options", "expire_ms"),
    [
        ("EX 10", WALL_MS + 10_000),
        ("px 10", WALL_MS + 10),
        ("EX 1 EX 2", WALL_MS + 2000),
        ("EXAT 9999999999", 9_999_999_999_000),
        (f"PXAT {WALL_MS + 5}", WALL_MS + 5),
        ("", -1),
        ("KEEPTTL", WALL_MS + 100_000),
    ],
)
def test_set_sets_or_clears_the_expiry(
    driver: Driver, options: str, expire_ms: int
) -> None:
    driver.run("SET a old EX 100")

    assert driver.run(f"SET a new {options}") == OK
    assert driver.run("PEXPIRETIME a") == expire_ms


def test_keepttl_without_an_expiry_sets_none(driver: Driver) -> None:
    driver.run("SET a 1 KEEPTTL")

    assert driver.run("TTL a") == -1


def test_a_time_that_is_over_leaves_no_key(driver: Driver) -> None:
    driver.run("SET a 1")

    assert driver.run("SET a 2 PXAT 1") == OK
    assert driver.run("EXISTS a") == 0
    assert driver.run("SET b 2 EXAT 1") == OK
    assert driver.run("EXISTS b") == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *((f"{word} 0", INVALID_EXPIRE) for word in ("EX", "PX", "EXAT", "PXAT")),
        ("EX -1", INVALID_EXPIRE),
        ("EX 9223372036854775807", INVALID_EXPIRE),
        ("PX 9223372036854775807", INVALID_EXPIRE),
        ("NX GET EX 0", INVALID_EXPIRE),
        ("EX x", "ERR value is not an integer or out of range"),
        ("PX 1.5", "ERR value is not an integer or out of range"),
        ("EX x FOO", "ERR syntax error"),
        ("EX", "ERR syntax error"),
        ("FOO", "ERR syntax error"),
        ("NX XX", "ERR syntax error"),
        ("EX 10 PX 10", "ERR syntax error"),
        ("EX 10 KEEPTTL", "ERR syntax error"),
        ("KEEPTTL EX 10", "ERR syntax error"),
    ],
)
def test_set_errors(driver: Driver, options: str, text: str) -> None:
    assert driver.error(f"SET a 1 {options}") == text
    assert driver.run("EXISTS a") == 0
