"""Users and what they may do: commands, keys, and groups.

A user has one selector or more; a request is allowed where one of them allows all
of it. A selector without group rules lets its commands work on every group, as in
Redis; with ``group:<key pattern>/<group pattern>`` rules, commands that name a group
(those of @consume and @manage) only work on groups that match one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from .glob import matcher

if TYPE_CHECKING:
    from .command import Command

DEFAULT_USER = b"default"

# How many words follow the options of XREAD and XREADGROUP.
_OPTION_VALUES = {b"COUNT": 1, b"BLOCK": 1, b"CLAIM": 1, b"GROUP": 2}


class Reason(IntEnum):
    """Why a request is refused; of several refusals the highest one is told."""

    COMMAND = 1
    KEY = 2
    GROUP = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """``word`` is the command's name, the key, or ``key/group``."""

    reason: Reason
    word: bytes
    place: int = 0  # of the key among the request's words


@dataclass(slots=True)
class KeyPattern:
    pattern: bytes
    read: bool
    write: bool

    def covers(self, key: bytes, *, read: bool, write: bool) -> bool:
        return (
            (self.read or not read)
            and (self.write or not write)
            and bool(matcher(self.pattern)(key))
        )

    def __bytes__(self) -> bytes:
        if self.read and self.write:
            return b"~" + self.pattern
        return (b"%R~" if self.read else b"%W~") + self.pattern


@dataclass(frozen=True, slots=True)
class GroupPattern:
    key: bytes
    group: bytes

    def covers(self, key: bytes, group: bytes) -> bool:
        return bool(matcher(self.key)(key) and matcher(self.group)(group))

    def __bytes__(self) -> bytes:
        return b"group:%b/%b" % (self.key, self.group)


class Selector:
    """A set of rules; every one of its parts must allow a request."""

    __slots__ = (
        "all_channels",
        "all_commands",
        "all_groups",
        "all_keys",
        "allowed",
        "channels",
        "first_args",
        "groups",
        "keys",
        "manages",
        "rules",
    )

    def __init__(self, *, all_channels: bool = False) -> None:
        self.all_commands = False  # what the rules start from: +@all or -@all
        self.rules: list[bytes] = []  # +get, -@dangerous ..., as they are shown
        self.allowed: set[bytes] = set()  # names; what the rules come to
        self.first_args: dict[bytes, list[bytes]] = {}  # +select|0
        self.manages = False  # every command of @manage is allowed
        self.all_keys = False
        self.keys: list[KeyPattern] = []
        self.all_channels = all_channels
        self.channels: list[bytes] = []
        self.all_groups = True
        self.groups: list[GroupPattern] = []

    @property
    def unlimited(self) -> bool:
        everything = self.all_commands and all(r[:1] == b"+" for r in self.rules)
        return everything and self.all_keys and self.all_groups

    def check(self, command: Command, request: Sequence[bytes]) -> Refusal | None:
        name = command.name
        if name not in self.allowed and not self._takes(name, request):
            return Refusal(Reason.COMMAND, name)
        if command.keys is not None and not self.all_keys:
            for place, key, read, write in _keys(command, request):
                if not self._covers_key(key, read=read, write=write):
                    return Refusal(Reason.KEY, key, place)
        if command.names_group and not self.all_groups:
            for place, key, group in _groups(command, request):
                if not self.covers_group(key, group):
                    return Refusal(Reason.GROUP, b"%b/%b" % (key, group), place)
        return None

    def covers_group(self, key: bytes, group: bytes) -> bool:
        return self.all_groups or any(g.covers(key, group) for g in self.groups)

    def may_manage(self, key: bytes, group: bytes) -> bool:
        return (
            self.manages
            and self._covers_key(key, read=False, write=True)
            and self.covers_group(key, group)
        )

    def _takes(self, name: bytes, request: Sequence[bytes]) -> bool:
        first_args = self.first_args.get(name)
        return (
            first_args is not None
            and len(request) > 1
            and request[1].lower() in first_args
        )

    def _covers_key(self, key: bytes, *, read: bool, write: bool) -> bool:
        return self.all_keys or any(
            pattern.covers(key, read=read, write=write) for pattern in self.keys
        )

    def show_commands(self) -> bytes:
        base = b"+@all" if self.all_commands else b"-@all"
        return b" ".join((base, *self.rules))

    def show_keys(self) -> bytes:
        return b"~*" if self.all_keys else b" ".join(map(bytes, self.keys))

    def show_channels(self) -> bytes:
        if self.all_channels:
            return b"&*"
        return b" ".join(b"&" + channel for channel in self.channels)

    def show_groups(self) -> bytes:
        """Empty where every group is allowed, as in Redis."""
        if self.all_groups:
            return b""
        return b" ".join(map(bytes, self.groups)) or b"resetgroups"

    def __bytes__(self) -> bytes:
        channels = self.show_channels()
        if not self.all_channels:
            channels = b"resetchannels %b" % channels
        parts = (self.show_keys(), channels.rstrip(b" "), self.show_groups())
        return b" ".join((*filter(None, parts), self.show_commands()))


class User:
    """One user. Connections hold the object, so that a change is seen at once."""

    __slots__ = (
        "all_rights",
        "enabled",
        "name",
        "no_password",
        "passwords",
        "sanitized",
        "selectors",
    )

    def __init__(self, name: bytes, *, all_channels: bool = False) -> None:
        self.name = name
        self.enabled = False
        self.no_password = False
        self.sanitized = True  # shown as Redis shows it; there is no RESTORE
        self.passwords: list[bytes] = []  # SHA-256, in hexadecimal
        self.selectors = [Selector(all_channels=all_channels)]  # the root comes first
        self.all_rights = False  # nothing needs to be checked

    @property
    def root(self) -> Selector:
        return self.selectors[0]

    @property
    def open(self) -> bool:
        """Whoever connects is this user (asked of the default user)."""
        return self.no_password and self.enabled

    def check(self, command: Command, request: Sequence[bytes]) -> Refusal | None:
        """What stands against the request; None where the user may run it."""
        if self.all_rights or command.no_auth:
            return None
        worst = None
        for selector in self.selectors:
            found = selector.check(command, request)
            if found is None:
                return None
            if worst is None or _weight(found) > _weight(worst):
                worst = found
        return worst

    def may_manage(self, key: bytes, group: bytes) -> bool:
        """All of @manage on this group: what concerns other users' claims."""
        return self.all_rights or any(
            selector.may_manage(key, group) for selector in self.selectors
        )

    def accepts(self, password: bytes) -> bool:
        """Takes as long for a wrong password as for a right one."""
        given = digest(password)
        found = False
        for stored in self.passwords:
            found |= hmac.compare_digest(stored, given)
        return self.enabled and (self.no_password or found)

    def draft(self) -> User:
        """A copy to try rules on."""
        return deepcopy(self)

    def take(self, draft: User) -> None:
        """Become what the draft is."""
        for name in User.__slots__:
            if name != "name":
                setattr(self, name, getattr(draft, name))
        self.all_rights = any(selector.unlimited for selector in self.selectors)

    def flags(self) -> list[bytes]:
        flags = [b"on" if self.enabled else b"off"]
        if self.no_password:
            flags.append(b"nopass")
        return [*flags, b"sanitize-payload" if self.sanitized else _NOT_SANITIZED]

    def __bytes__(self) -> bytes:
        """The line of ACL LIST and of the ACL file."""
        passwords = [b"#" + password for password in self.passwords]
        others = [b"(%b)" % bytes(selector) for selector in self.selectors[1:]]
        words = (b"user", self.name, *self.flags(), *passwords)
        return b" ".join((*words, bytes(self.root), *others))


_NOT_SANITIZED = b"skip-sanitize-payload"


def digest(password: bytes) -> bytes:
    return hashlib.sha256(password).hexdigest().encode()


def _weight(refusal: Refusal) -> tuple[int, int]:
    return refusal.reason, refusal.place


def _keys(
    command: Command, request: Sequence[bytes]
) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Each key with its place, and whether it is read and written."""
    keys = command.keys
    assert keys is not None
    if keys.keyword:
        read, write = _needs(keys.uses[0])
        for place, key in _stream_keys(request):
            yield place, key, read, write
        return
    last = keys.last if keys.last >= 0 else len(request) + keys.last
    for at, place in enumerate(range(keys.first, last + 1, keys.step)):
        read, write = _needs(keys.uses[at if len(keys.uses) > 1 else 0])
        if command.name == b"set":  # reads only where it is asked to
            read = any(word.upper() == b"GET" for word in request[3:])
        yield place, request[place], read, write


@lru_cache
def _needs(use: str) -> tuple[bool, bool]:
    """Where a use is neither, any pattern that matches is enough."""
    words = set(use.split())
    return "access" in words, bool(words & {"insert", "delete", "update"})


def _groups(
    command: Command, request: Sequence[bytes]
) -> Iterator[tuple[int, bytes, bytes]]:
    """Each group with its key. Its name stands behind the key; in XREADGROUP behind
    GROUP, of which the last would count, and each is checked."""
    keys = command.keys
    assert keys is not None
    if not keys.keyword:
        yield keys.first, request[keys.first], request[keys.first + 1]
        return
    names = [
        request[place + 1]
        for place in _options(request)
        if request[place].upper() == b"GROUP"
    ]
    for place, key in _stream_keys(request):
        for name in names:
            yield place, key, name


def _stream_keys(request: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """The keys of XREAD and XREADGROUP as their handlers find them: a group or a
    consumer called STREAMS does not begin them."""
    for place in _options(request):
        if request[place].upper() == b"STREAMS":
            half = (len(request) - place - 1) // 2
            yield from enumerate(request[place + 1 : place + 1 + half], place + 1)


def _options(request: Sequence[bytes]) -> Iterator[int]:
    """The places of the options up to STREAMS, their values passed over."""
    place = 1
    while place < len(request) - 1:
        yield place
        word = request[place].upper()
        if word == b"STREAMS":
            return
        place += 1 + _OPTION_VALUES.get(word, 0)
