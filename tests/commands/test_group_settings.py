"""XGROUP CONFIG: the settings of one group."""

from __future__ import annotations

from typing import Any

import pytest

from felixresp.config import SETTINGS
from felixresp.engine.changes import Configured
from felixresp.protocol.encoder import encode

from .driver import NOW_MS, Driver

SYNTAX = "!ERR syntax error"
WRONG_TYPE = "!WRONGTYPE Operation against a key holding the wrong kind of value"
NO_KEY = "!ERR The XGROUP subcommand requires the key to exist. Note that for CREATE"
NO_GROUP = "!NOGROUP No such consumer group 'nog' for key name 's'"
HUGE = 2**63 - 1
OWN = [
    name.removeprefix("group-")
    for name in SETTINGS
    if name.startswith("group-") and name != "group-auto-create"
]


@pytest.fixture
def pending(driver: Driver) -> Driver:
    """a holds entry 1 of s; 2 is new."""
    driver.script(
        """
        XADD s 1-1 f v
        XADD s 2-1 f v
        XGROUP CREATE s g 0
        XREADGROUP GROUP g a COUNT 1 STREAMS s >
        SET str x
        """
    )
    return driver


def pairs(flat: Any) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def until(driver: Driver, id_: str) -> int:
    """The deadline of its claim."""
    deadline_ms: int = pairs(driver.show(f"XEXPLAIN s g {id_}"))["until"]
    return deadline_ms


def test_every_setting_of_a_group_is_shown(pending: Driver) -> None:
    shown = pairs(pending.show("XGROUP CONFIG GET s g"))

    assert sorted(shown) == sorted(OWN)
    assert (shown["visibility-timeout-ms"], shown["mode"]) == ("30000", "lease")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("mode", ["mode"]),
        ("MAX-A*", ["max-attempts", "max-acked-ahead-ranges"]),
        ("*-ms mode", None),
        ("foo", []),
        ("[", []),
    ],
)
def test_settings_are_chosen_by_patterns(
    pending: Driver, patterns: str, names: list[str] | None
) -> None:
    shown = pairs(pending.show(f"XGROUP CONFIG GET s g {patterns}"))

    wanted = names
    if wanted is None:
        wanted = [n for n in OWN if n.endswith("-ms") or n == "mode"]
    assert sorted(shown) == sorted(wanted)


def test_settings_are_a_map_in_resp3(pending: Driver) -> None:
    answer = pending.run("XGROUP CONFIG GET s g mode")

    assert encode(answer, 3) == b"%1\r\n$4\r\nmode\r\n$5\r\nlease\r\n"  # type: ignore[arg-type]


def test_a_group_has_settings_of_its_own(pending: Driver) -> None:
    line = "XGROUP CONFIG SET s g MAX-ATTEMPTS 2 group-backoff 'Fixed 5'"

    assert pending.show(line) == "OK"
    assert [type(change) for change in pending.changes] == [Configured]
    pending.script("CONFIG SET group-max-attempts 9\n XGROUP CREATE s other 0")
    shown = pairs(pending.show("XGROUP CONFIG GET s g max-attempts backoff"))
    assert shown == {"max-attempts": "2", "backoff": "fixed 5"}
    other = pairs(pending.show("XGROUP CONFIG GET s other max-attempts"))
    assert other == {"max-attempts": "9"}


def test_of_a_setting_given_twice_the_last_counts(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g max-attempts 2 max-attempts 3")

    shown = pairs(pending.show("XGROUP CONFIG GET s g max-attempts"))
    assert shown == {"max-attempts": "3"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("foo 1", "!ERR Unknown group setting 'foo': XGROUP CONFIG GET key group"),
        ("auto-create yes", "!ERR Unknown group setting 'auto-create'"),
        ("port 1", "!ERR Unknown group setting 'port'"),
        ("group-group-mode redis", "!ERR Unknown group setting 'group-group-mode'"),
        ("'' 1", "!ERR Unknown group setting ''"),
        ("max-attempts x", "!ERR Group setting 'max-attempts': argument couldn't be"),
        ("max-attempts -1", "!ERR Group setting 'max-attempts': argument must be betw"),
        (f"max-attempts {HUGE + 1}", "!ERR Group setting 'max-attempts': argument"),
        ("visibility-timeout-ms 0", "!ERR Group setting 'visibility-timeout-ms': arg"),
        ("visibility-timeout-ms -1", "!ERR Group setting 'visibility-timeout-ms': ar"),
        ("visibility-timeout-ms 9999999999999", "!ERR Group setting 'visibility-time"),
        ("mode both", "!ERR Group setting 'mode': argument(s) must be one of the foll"),
        ("claims-follow me", "!ERR Group setting 'claims-follow': argument(s) must be"),
        ("backoff 'linear 1'", "!ERR Group setting 'backoff': argument must be 'none'"),
        ("learn-visibility 1", "!ERR Group setting 'learn-visibility': argument must"),
        ("max-poll-bytes 5x", "!ERR Group setting 'max-poll-bytes': argument must be"),
        ("max-attempts 1 mode both", "!ERR Group setting 'mode'"),
        ("max-attempts 1 foo 2", "!ERR Unknown group setting 'foo'"),
    ],
)
def test_one_bad_setting_sets_none(pending: Driver, words: str, text: str) -> None:
    assert pending.show(f"XGROUP CONFIG SET s g {words}").startswith(text)
    assert not pending.changes


@pytest.mark.parametrize("word", [b"\xff\xfe", b"a\r\nb", b"x" * 500, b"mode\0"])
def test_names_and_values_may_be_any_bytes(pending: Driver, word: bytes) -> None:
    line = [b"XGROUP", b"CONFIG", b"SET", b"s", b"g"]

    name = pending.show([*line, word, b"1"])
    value = pending.show([*line, b"mode", word])

    assert name.startswith("!ERR Unknown group setting '")
    assert value.startswith("!ERR Group setting 'mode': argument(s) must be one of")
    assert len(name) < 300


def test_settings_count_for_later_claims_only(pending: Driver) -> None:
    pending.script("XGROUP CONFIG SET s g visibility-timeout-ms 5")

    assert until(pending, "1-1") == NOW_MS + 30_000
    pending.script("XREADGROUP GROUP g a STREAMS s >")
    assert until(pending, "2-1") == NOW_MS + 5


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("CONFIG GET s", "!ERR wrong number of arguments for 'xgroup|config' command"),
        ("CONFIG GET s nog", NO_GROUP),
        ("CONFIG GET nokey g", NO_KEY),
        ("CONFIG FOO s g", SYNTAX),
        ("CONFIG SET s g", SYNTAX),
        ("CONFIG SET s g max-attempts", SYNTAX),
        ("CONFIG SET s g max-attempts 1 mode", SYNTAX),
        ("CONFIG SET s nog max-attempts 1", NO_GROUP),
        ("CONFIG SET str g max-attempts 1", WRONG_TYPE),
    ],
)
def test_a_refused_request_changes_nothing(
    pending: Driver, line: str, text: str
) -> None:
    assert pending.show(f"XGROUP {line}").startswith(text)
    assert not pending.changes


@pytest.mark.parametrize("words", ["SET s g mode redis", "GET s g"])
def test_the_key_of_config_stands_behind_its_verb(pending: Driver, words: str) -> None:
    """A user of a key called GET or SET has no right to others by that."""
    client = pending.connect()
    pending.script("ACL SETUSER u on nopass +@all ~GET ~SET group:*/*")
    pending.script_as(client, "AUTH u x")

    answer = pending.show(f"XGROUP CONFIG {words}", client=client)

    assert answer == "!NOPERM No permissions to access a key"
    assert not pending.changes
