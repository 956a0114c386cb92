"""The rules of ACL SETUSER and of the ACL file: words that change a user.

Rules are read from left to right. Of rules on the same command or category only
the last is kept, so a user's rules do not grow with every change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .acl_errors import (
    RULE_AFTER_ALL_CHANNELS,
    RULE_AFTER_ALL_KEYS,
    RULE_BAD_GROUP,
    RULE_BAD_HASH,
    RULE_NO_PASSWORD,
    RULE_OF_A_SUBCOMMAND,
    RULE_SYNTAX,
    RULE_UNKNOWN,
)
from .command import Command
from .rights import GroupPattern, KeyPattern, Selector, User, digest

# The categories of Redis in its order, whether or not a command here is in one;
# then felixresp's own.
# fmt: off
CATEGORIES = (
    b"keyspace", b"read", b"write", b"set", b"sortedset", b"list", b"hash", b"string",
    b"bitmap", b"hyperloglog", b"geo", b"stream", b"pubsub", b"admin", b"fast",
    b"slow", b"blocking", b"dangerous", b"connection", b"transaction", b"scripting",
    b"consume", b"manage",
)
# fmt: on
_HASH = re.compile(rb"[0-9a-f]{64}")
_SPACE = re.compile(rb"[\s\0]")  # what no pattern may hold


class RuleError(Exception):
    """``rule`` is wrong; ``text`` says why."""

    def __init__(self, rule: bytes, text: bytes) -> None:
        super().__init__(rule, text)
        self.rule = rule
        self.text = text


class UnmatchedParenthesis(Exception):
    """A selector that begins with ``start`` has no end."""

    def __init__(self, start: bytes) -> None:
        super().__init__(start)
        self.start = start


class Catalog:
    """The command table as rules name it: containers and subcommands by full name."""

    def __init__(self, commands: Mapping[bytes, Command]) -> None:
        self.commands: dict[bytes, Command] = {}
        for command in commands.values():
            self.commands[command.name] = command
            for inner in command.subcommands.values():
                self.commands[inner.name] = inner
        self.by_category = {
            category: [
                command.name
                for command in self.commands.values()
                if category.decode() in command.categories
            ]
            for category in CATEGORIES
        }

    def with_subcommands(self, name: bytes) -> Iterator[bytes]:
        yield name
        for inner in self.commands[name].subcommands.values():
            yield inner.name


def joined(words: Sequence[bytes]) -> list[bytes]:
    """The rules, each selector's words put together: ``( ~a +get )``."""
    rules: list[bytes] = []
    selector: list[bytes] = []
    for word in words:
        if not selector and word[:1] != b"(":
            rules.append(word)
            continue
        selector.append(word)
        if word[-1:] == b")":
            rules.append(b" ".join(selector))
            selector = []
    if selector:
        raise UnmatchedParenthesis(selector[0])
    return rules


def change_user(
    user: User, rule: bytes, catalog: Catalog, *, all_channels: bool = False
) -> None:
    """Raises RuleError. ``all_channels`` is what a user starts with."""
    word, mark = rule.lower(), rule[:1]
    match word:
        case b"on" | b"off":
            user.enabled = word == b"on"
        case b"nopass":
            user.no_password = True
            user.passwords = []
        case b"resetpass":
            user.no_password = False
            user.passwords = []
        case b"sanitize-payload" | b"skip-sanitize-payload":
            user.sanitized = word == b"sanitize-payload"
        case b"clearselectors":
            del user.selectors[1:]
        case b"reset":
            user.take(User(user.name, all_channels=all_channels))
        case _ if mark in (b">", b"#", b"<", b"!"):
            _change_password(user, rule, mark)
        case _ if mark == b"(" and rule[-1:] == b")":
            selector = Selector(all_channels=all_channels)
            for inner in rule[1:-1].split():
                _change_selector(selector, inner, catalog, whole=rule)
            user.selectors.append(selector)
        case _:
            _change_selector(user.root, rule, catalog, whole=rule)


def _change_password(user: User, rule: bytes, mark: bytes) -> None:
    if mark in (b">", b"<"):
        password = digest(rule[1:])
    else:
        password = rule[1:]
        if not _HASH.fullmatch(password):
            raise RuleError(rule, RULE_BAD_HASH)
    if mark in (b">", b"#"):
        if password not in user.passwords:
            user.passwords.append(password)
        user.no_password = False
    elif password in user.passwords:
        user.passwords.remove(password)
    else:
        raise RuleError(rule, RULE_NO_PASSWORD)


def _change_selector(
    selector: Selector, rule: bytes, catalog: Catalog, *, whole: bytes
) -> None:
    """``whole`` is what an error shows: the selector that the rule is in."""
    try:
        _change_part(selector, rule, catalog)
    except RuleError as error:
        raise RuleError(whole, error.text) from None


def _change_part(selector: Selector, rule: bytes, catalog: Catalog) -> None:
    match rule.lower():
        case b"":
            pass
        case b"allkeys" | b"~*":
            selector.all_keys, selector.keys = True, []
        case b"resetkeys":
            selector.all_keys, selector.keys = False, []
        case b"allchannels" | b"&*":
            selector.all_channels, selector.channels = True, []
        case b"resetchannels":
            selector.all_channels, selector.channels = False, []
        case b"allgroups":
            selector.all_groups, selector.groups = True, []
        case b"resetgroups":
            selector.all_groups, selector.groups = False, []
        case b"allcommands" | b"+@all":
            _change_all(selector, catalog, allow=True)
        case b"nocommands" | b"-@all":
            _change_all(selector, catalog, allow=False)
        case word if word.startswith(b"group:"):
            _add_group(selector, rule)
        case _:
            _change_by_mark(selector, rule, catalog)


def _change_by_mark(selector: Selector, rule: bytes, catalog: Catalog) -> None:
    match rule[:1]:
        case b"~" | b"%":
            _add_key(selector, rule)
        case b"&":
            if selector.all_channels:
                raise RuleError(rule, RULE_AFTER_ALL_CHANNELS)
            _refuse_space(rule)
            if rule[1:] not in selector.channels:
                selector.channels.append(rule[1:])
        case b"+" | b"-" if rule[1:2] == b"@":
            _change_category(selector, rule.lower(), catalog)
        case b"+" | b"-":
            _change_command(selector, rule.lower(), catalog, shown=rule)
        case _:
            raise RuleError(rule, RULE_SYNTAX)


def _add_key(selector: Selector, rule: bytes) -> None:
    if selector.all_keys:
        raise RuleError(rule, RULE_AFTER_ALL_KEYS)
    marks, _, pattern = rule[1:].partition(b"~")
    if rule[:1] == b"~":
        marks, pattern = b"RW", rule[1:]
    marks = marks.upper()
    if marks not in (b"R", b"W", b"RW", b"WR"):
        raise RuleError(rule, RULE_SYNTAX)
    _refuse_space(rule)
    read, write = b"R" in marks, b"W" in marks
    for known in selector.keys:
        if known.pattern == pattern:
            known.read |= read
            known.write |= write
            return
    selector.keys.append(KeyPattern(pattern, read, write))


def _add_group(selector: Selector, rule: bytes) -> None:
    """``group:<key pattern>/<group pattern>``, parted at the last slash that is not
    inside brackets."""
    _refuse_space(rule)
    text = rule[len(b"group:") :]
    slash = _last_slash(text)
    key, group = text[:slash], text[slash + 1 :]
    if slash < 1 or not group:
        raise RuleError(rule, RULE_BAD_GROUP)
    pattern = GroupPattern(key, group)
    selector.all_groups = False
    if pattern not in selector.groups:
        selector.groups.append(pattern)


def _last_slash(text: bytes) -> int:
    """-1 where there is none. A backslash takes the meaning of what follows it."""
    found, inside, place = -1, False, 0
    while place < len(text):
        match text[place : place + 1]:
            case b"\\":
                place += 1
            case b"[":
                inside = True
            case b"]":
                inside = False
            case b"/" if not inside:
                found = place
        place += 1
    return found


def _refuse_space(rule: bytes) -> None:
    if _SPACE.search(rule):
        raise RuleError(rule, RULE_SYNTAX)


def _change_all(selector: Selector, catalog: Catalog, *, allow: bool) -> None:
    selector.all_commands = selector.manages = allow
    selector.rules = []
    selector.allowed = set(catalog.commands) if allow else set()
    selector.first_args = {}


def _change_category(selector: Selector, rule: bytes, catalog: Catalog) -> None:
    names = catalog.by_category.get(rule[2:])
    if names is None:
        raise RuleError(rule, RULE_UNKNOWN)
    selector.rules = [known for known in selector.rules if known[1:] != rule[1:]]
    _allow(selector, rule, names, catalog)


def _change_command(
    selector: Selector, rule: bytes, catalog: Catalog, *, shown: bytes
) -> None:
    name = rule[1:]
    if name in catalog.commands:
        under = name + b"|"
        selector.rules = [
            known
            for known in selector.rules
            if known[1:] != name and not known[1:].startswith(under)
        ]
        _allow(selector, rule, list(catalog.with_subcommands(name)), catalog)
        return
    container, bar, first = name.rpartition(b"|")
    if not bar or rule[:1] == b"-" or container.partition(b"|")[0] == b"":
        raise RuleError(shown, RULE_UNKNOWN)
    command = catalog.commands.get(container)
    if command is None:
        raise RuleError(shown, RULE_UNKNOWN)
    if not first:
        raise RuleError(shown, RULE_SYNTAX)
    if b"|" in container:
        raise RuleError(shown, RULE_OF_A_SUBCOMMAND)
    if command.subcommands:
        raise RuleError(shown, RULE_UNKNOWN)
    firsts = selector.first_args.setdefault(container, [])
    if first not in firsts:
        firsts.append(first)
    if rule not in selector.rules:
        selector.rules.append(rule)


def _allow(
    selector: Selector, rule: bytes, names: Sequence[bytes], catalog: Catalog
) -> None:
    selector.rules.append(rule)
    if rule[:1] == b"+":
        selector.allowed.update(names)
    else:
        selector.allowed.difference_update(names)
    for name in names:
        selector.first_args.pop(name, None)
    selector.manages = selector.allowed.issuperset(catalog.by_category[b"manage"])
