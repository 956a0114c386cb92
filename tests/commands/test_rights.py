"""What users may do: the group rules, who manages a group, and Redis's odd corners.

What Redis has too is compared with real servers in conformance/cases/acl.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from felixresp.commands.command import Command
from felixresp.commands.documentation import grammar
from felixresp.commands.table import COMMANDS
from felixresp.protocol.reply import OK, Error

from .driver import Driver

DOCS = Path(__file__).parents[2] / "docs" / "acl.md"
GROUP_COMMANDS = (
    "XREADGROUP GROUP {g} c STREAMS {k} >",
    "XREADGROUP COUNT 1 BLOCK 0 NOACK GROUP {g} c STREAMS {k} 0",
    "XACK {k} {g} 1-1",
    "XPENDING {k} {g}",
    "XCLAIM {k} {g} c 0 1-1",
    "XAUTOCLAIM {k} {g} c 0 0",
    "XINFO CONSUMERS {k} {g}",
    "XGROUP CREATE {k} {g} 0 MKSTREAM",
    "XGROUP SETID {k} {g} 0",
    "XGROUP DESTROY {k} {g}",
    "XGROUP CREATECONSUMER {k} {g} c",
    "XGROUP DELCONSUMER {k} {g} c",
    "XGROUP SEEK {k} {g} EARLIEST",
    "XGROUP DESCRIBE {k} {g}",
    "XGROUP CONFIG GET {k} {g}",
    "XGROUP CONFIG SET {k} {g} mode redis",
    "XGROUP PAUSE {k} {g}",
    "XGROUP RESUME {k} {g}",
    "XPOLL {k} {g} c",
    "XNACK {k} {g} FAIL IDS 1 1-1",
    "XEXTEND {k} {g} 5 IDS 1 1-1",
    "XEXPLAIN {k} {g}",
    "XDLQ LIST {k} {g}",
    "XDLQ LEN {k} {g}",
    "XDLQ REDRIVE {k} {g} ALL",
    "XDLQ DISCARD {k} {g} 1-1",
)
OTHER_COMMANDS = (
    "XADD {k} * f v",
    "XREAD STREAMS {k} 0",
    "XINFO GROUPS {k}",
    "XINFO STREAM {k}",
    "XGROUP HELP",
    "XDLQ HELP",
    "PING",
)


def every_command() -> Iterator[Command]:
    for command in COMMANDS.values():
        yield from command.subcommands.values() or (command,)


def may(driver: Driver, line: str, key: str, group: str) -> bool:
    return driver.run(f"ACL DRYRUN u {line.format(k=key, g=group)}") == OK


@pytest.mark.parametrize("line", GROUP_COMMANDS)
def test_a_group_rule_lets_group_commands_work_on_matching_groups_only(
    driver: Driver, line: str
) -> None:
    driver.script("ACL SETUSER u +@all ~* group:orders*/bill*")

    assert may(driver, line, "orders:eu", "billing")
    assert not may(driver, line, "orders:eu", "shipping")
    assert not may(driver, line, "other", "billing")
    assert (
        driver.show(f"ACL DRYRUN u {line.format(k='other', g='billing')}")
        == "User u has no permissions to access the 'other/billing' group"
    )


@pytest.mark.parametrize("line", OTHER_COMMANDS)
def test_a_group_rule_is_nothing_to_commands_that_name_no_group(
    driver: Driver, line: str
) -> None:
    driver.script("ACL SETUSER u +@all ~* group:orders/billing")

    assert may(driver, line, "other", "")


@pytest.mark.parametrize("line", GROUP_COMMANDS)
def test_without_group_rules_every_group_is_allowed(driver: Driver, line: str) -> None:
    driver.script("ACL SETUSER u +@consume +@manage ~*")

    assert may(driver, line, "any", "group")


def test_group_rules_give_neither_commands_nor_keys(driver: Driver) -> None:
    driver.script("ACL SETUSER u group:s/g")
    assert not may(driver, "XACK s g 1-1", "", "")

    driver.script("ACL SETUSER u +@consume")
    assert driver.show("ACL DRYRUN u XACK s g 1-1") == (
        "User u has no permissions to access the 's' key"
    )

    driver.script("ACL SETUSER u ~s")
    assert may(driver, "XACK s g 1-1", "", "")
    assert not may(driver, "XGROUP DESTROY s g", "", "")


def test_each_of_several_group_rules_is_enough(driver: Driver) -> None:
    driver.script("ACL SETUSER u +@consume ~* group:a/x group:b/*")

    assert may(driver, "XACK a x 1-1", "", "")
    assert may(driver, "XACK b anything 1-1", "", "")
    assert not may(driver, "XACK a y 1-1", "", "")


def test_every_stream_and_every_group_of_a_read_must_match(driver: Driver) -> None:
    driver.script("ACL SETUSER u +@consume ~* group:a/g group:b/g")

    assert may(driver, "XREADGROUP GROUP g c STREAMS a b > >", "", "")
    assert not may(driver, "XREADGROUP GROUP g c STREAMS a z > >", "", "")
    assert not may(driver, "XREADGROUP GROUP g c GROUP h c STREAMS a >", "", "")
    assert not may(driver, "XREADGROUP GROUP h c GROUP g c STREAMS a >", "", "")


def test_names_that_are_options_do_not_hide_a_group_or_a_key(driver: Driver) -> None:
    driver.script("ACL SETUSER u +@consume ~ok ~STREAMS group:*/g group:*/STREAMS")

    assert may(driver, "XREADGROUP GROUP STREAMS STREAMS STREAMS ok >", "", "")
    assert not may(driver, "XREADGROUP GROUP GROUP c STREAMS ok >", "", "")
    assert not may(driver, "XREADGROUP COUNT 1 GROUP g STREAMS STREAMS no >", "", "")
    assert not may(driver, "XREADGROUP COUNT 1 GROUP x GROUP STREAMS ok >", "", "")


def test_allgroups_and_resetgroups_end_the_rules(driver: Driver) -> None:
    driver.script("ACL SETUSER u +@consume ~* group:s/g resetgroups")
    assert not may(driver, "XACK s g 1-1", "", "")
    assert "resetgroups" in driver.show("ACL LIST")[1]

    driver.script("ACL SETUSER u group:s/g")
    assert may(driver, "XACK s g 1-1", "", "")
    assert not may(driver, "XACK s h 1-1", "", "")

    driver.script("ACL SETUSER u allgroups")
    assert may(driver, "XACK s h 1-1", "", "")
    assert "group" not in driver.show("ACL LIST")[1]


def test_reset_gives_every_group_back(driver: Driver) -> None:
    driver.script("ACL SETUSER u group:s/g reset")

    assert "group" not in driver.show("ACL LIST")[1]


def test_group_rules_of_a_selector_are_its_own(driver: Driver) -> None:
    driver.script(
        "ACL SETUSER u +@consume ~* group:*/read '(+@manage ~* group:*/mine)'"
    )

    assert may(driver, "XACK s read 1-1", "", "")
    assert not may(driver, "XGROUP DESTROY s read", "", "")
    assert may(driver, "XGROUP DESTROY s mine", "", "")
    assert not may(driver, "XACK s mine 1-1", "", "")


@pytest.mark.parametrize(
    ("rule", "key", "group"),
    [
        ("group:a/b", b"a", b"b"),
        ("group:a/b/c", b"a/b", b"c"),
        ("GROUP:a/b", b"a", b"b"),
        ("group:a/[/x]b", b"a", b"/b"),
        ("group:a[/]b/c", b"a/b", b"c"),
        (r"group:a/b\/c", b"a", b"b/c"),
        (r"group:a\[/b", b"a[", b"b"),
        ("group:*/*", b"any/thing", b"at all"),
    ],
)
def test_a_group_rule_is_parted_at_the_last_slash_outside_brackets(
    driver: Driver, rule: str, key: bytes, group: bytes
) -> None:
    driver.run([b"ACL", b"SETUSER", b"u", b"+@all", b"~*", rule.encode()])

    assert driver.run([b"ACL", b"DRYRUN", b"u", b"XACK", key, group, b"1-1"]) == OK


@pytest.mark.parametrize(
    "rule", ["group:", "group:a", "group:/", "group:a/", "group:/b", "group:[a/b]"]
)
def test_a_group_rule_without_both_patterns_is_refused(
    driver: Driver, rule: str
) -> None:
    assert driver.error(f"ACL SETUSER u {rule}") == (
        f"ERR Error in ACL SETUSER modifier '{rule}':"
        " A group rule is group:<key pattern>/<group pattern>"
    )
    assert driver.error("ACL SETUSER u 'group:a b/c'").endswith(": Syntax error")


def test_a_refused_group_is_told_and_logged(driver: Driver) -> None:
    driver.script("ACL SETUSER u on nopass +@all ~* group:s/g\nAUTH u x\nMULTI")

    assert driver.error("XACK s h 1-1") == ("NOPERM No permissions to access a group")

    driver.script("DISCARD\nACL SETUSER u -xgroup|destroy")
    driver.run("XGROUP DESTROY s h")
    entries = [pairs(entry) for entry in driver.show("ACL LOG")]
    seen = [(e["reason"], e["context"], e["object"]) for e in entries]
    assert seen == [
        ("command", "toplevel", "xgroup|destroy"),
        ("group", "multi", "s/h"),
    ]


def test_exec_refuses_a_group_that_was_taken_away(driver: Driver) -> None:
    driver.script(
        """
        XGROUP CREATE s g 0 MKSTREAM
        ACL SETUSER u on nopass +@all ~*
        AUTH u x
        MULTI
        XGROUP DESTROY s g
        """
    )
    driver.server.users.change(b"u", [b"group:s/other"])

    [reply] = driver.run("EXEC")  # type: ignore[misc]

    assert isinstance(reply, Error)
    assert reply.text.endswith(b"no permission to touch the specified groups")
    assert driver.show("EXISTS s") == 1


def test_the_rules_survive_being_written_down(driver: Driver) -> None:
    driver.script(
        "ACL SETUSER u on >pw ~a %R~b &c +@all -get group:a/[/]b group:x/y"
        " (+@consume ~k resetgroups) '(+get allkeys)'"
    )
    line = driver.show("ACL LIST")[1]

    driver.server.users.load(line.encode(), b"users.acl")

    assert driver.show("ACL LIST")[1] == line


def test_getuser_shows_groups_where_they_are_limited(driver: Driver) -> None:
    driver.script("ACL SETUSER u group:a/b group:c/d '(resetgroups)'")

    shown = pairs(driver.show("ACL GETUSER u"))

    assert shown["groups"] == "group:a/b group:c/d"
    assert pairs(shown["selectors"][0])["groups"] == "resetgroups"
    assert "groups" not in pairs(driver.show("ACL GETUSER default"))


@pytest.mark.parametrize(
    ("rules", "may_manage"),
    [
        ("+@all ~*", True),
        ("+@manage ~s", True),
        ("+@manage %W~s", True),
        ("+@manage %R~s", False),
        ("+@manage ~other", False),
        ("+@consume ~*", False),
        ("+@all -@manage ~*", False),
        ("+@all -xgroup|destroy ~*", False),
        ("+@manage ~* group:s/g", True),
        ("+@manage ~* group:s/other", False),
        ("+@consume ~* '(+@manage ~s)'", True),
        ("+@all ~* resetgroups", False),
    ],
)
def test_who_has_all_of_manage_on_a_group_manages_it(
    driver: Driver, rules: str, may_manage: bool
) -> None:
    driver.script(f"ACL SETUSER u on nopass {rules}\nAUTH u x")

    assert driver.context().may_manage(b"s", b"g") is may_manage


def test_who_has_not_signed_in_manages_nothing(driver: Driver) -> None:
    driver.require_password("secret")

    assert not driver.context().may_manage(b"s", b"g")


def test_a_command_is_in_consume_or_manage_where_it_names_a_group() -> None:
    for command in every_command():
        words = grammar(command).split()

        assert command.names_group == ("group" in words), command.name
        if command.names_group and command.name != b"xreadgroup":
            key = words.index("key")
            assert words[key : key + 2] == ["key", "group"]


def test_only_users_who_are_limited_are_looked_at_closely(driver: Driver) -> None:
    for rules, unlimited in (
        ("allkeys +@all", True),
        ("+@admin", True),
        ("-get", False),
        ("+@all group:*/*", False),
        ("allgroups", True),
        ("resetkeys", False),
        ("'(+@all ~*)'", True),
        ("clearselectors", False),
    ):
        driver.script(f"ACL SETUSER u {rules}")
        user = driver.server.users.get(b"u")
        assert user is not None
        assert user.all_rights is unlimited, rules


def test_a_command_in_the_short_way_is_refused_too(driver: Driver) -> None:
    driver.script(
        """
        XGROUP CREATE s g 0 MKSTREAM
        ACL SETUSER u on nopass +xadd ~other
        AUTH u x
        """
    )

    assert driver.error("XADD s * f v") == "NOPERM No permissions to access a key"
    assert (
        driver.error("XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >")
        == "NOPERM User u has no permissions to run the 'xreadgroup' command"
    )
    assert driver.error("XACK s g 1-1").startswith("NOPERM User u")


@pytest.mark.skipif(not DOCS.exists(), reason="the docs are not beside the tests")
def test_what_the_docs_show_is_so(driver: Driver) -> None:
    lines = DOCS.read_text().splitlines()
    session = [line for line in lines if line.startswith("    > ")]
    answers = [driver.show(line[6:]) for line in session]

    assert answers[:-1] == ["OK"] * (len(answers) - 1)
    assert f'    "{answers[-1]}"' in lines
    for category in ("consume", "manage"):
        [row] = [line for line in lines if line.startswith(f"| `@{category}` |")]
        named = re.findall(r"X[A-Z]+(?: [A-Z]+(?: and [A-Z]+|, [A-Z]+(?= and))*)?", row)
        assert named
        for words in named:
            container, *inner = re.findall("[A-Z]+", words)
            names = [f"{container}|{name}" for name in inner] or [container]
            assert {n.lower() for n in names} <= set(driver.show(f"ACL CAT {category}"))


def pairs(flat: list[Any]) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
