"""What a command is, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto

from ..engine.errors import WrongType
from ..protocol.reply import Error
from .args import Args
from .context import Answer, Context, Handler
from .errors import (
    WRONG_TYPE,
    CommandError,
    unknown_command,
    unknown_subcommand,
    wrong_arity,
)


class Flags(Flag):
    """Named and ordered as COMMAND INFO shows them; the last row is not shown."""

    WRITE = auto()
    READONLY = auto()
    DENYOOM = auto()
    ADMIN = auto()
    NOSCRIPT = auto()
    BLOCKING = auto()
    LOADING = auto()
    STALE = auto()
    SKIP_SLOWLOG = auto()
    FAST = auto()
    NO_AUTH = auto()
    MOVABLEKEYS = auto()
    NO_MULTI = auto()
    ALLOW_BUSY = auto()
    IMMEDIATE = auto()  # runs at once inside MULTI too

    NONE = 0


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the keys stand: from word ``first`` to ``last``, or after a keyword.

    A negative ``last`` counts from the end. After a keyword the first half of
    the words are keys (XREAD). ``uses`` are the flags of the key specs: one for
    all keys, or one for each.
    """

    first: int
    last: int
    step: int
    uses: tuple[str, ...]
    keyword: bytes = b""

    def find(self, request: Sequence[bytes]) -> list[bytes]:
        """The keys of a request whose arity is right."""
        if not self.keyword:
            last = self.last if self.last >= 0 else len(request) + self.last
            return list(request[self.first : last + 1 : self.step])
        for place in range(self.first, len(request)):
            if request[place].upper() == self.keyword:
                words = request[place + 1 :]
                return list(words[: len(words) // 2])
        return []


def keys(first: int, last: int, step: int, *uses: str) -> Keys:
    return Keys(first, last, step, uses)


def keys_after(keyword: bytes, start: int, use: str) -> Keys:
    """The keyword is looked for from word ``start`` on."""
    return Keys(start, -1, 1, (use,), keyword)


@dataclass(frozen=True, slots=True)
class Command:
    """``name`` is in lower case, and ``xgroup|create`` for a subcommand."""

    name: bytes
    arity: int  # counts the name; negative means "at least", as in Redis
    flags: Flags
    keys: Keys | None
    categories: tuple[str, ...]
    handler: Handler
    subcommands: Mapping[bytes, Command] = field(default_factory=dict)
    # what every call asks, taken out of the flags once: Flag's & is slow
    place: int = field(init=False)  # of the first argument
    deny_oom: bool = field(init=False)
    no_auth: bool = field(init=False)
    no_multi: bool = field(init=False)
    names_group: bool = field(init=False)  # behind the key, or behind GROUP
    immediate: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, value in (
            ("place", 2 if b"|" in self.name else 1),
            ("deny_oom", Flags.DENYOOM in self.flags),
            ("no_auth", Flags.NO_AUTH in self.flags),
            ("no_multi", Flags.NO_MULTI in self.flags),
            ("names_group", not {"consume", "manage"}.isdisjoint(self.categories)),
            ("immediate", Flags.IMMEDIATE in self.flags),
        ):
            object.__setattr__(self, name, value)

    def accepts(self, argc: int) -> bool:
        return argc == self.arity if self.arity > 0 else argc >= -self.arity

    def run(self, ctx: Context, request: Sequence[bytes]) -> Answer:
        """Raises NotResident, nothing else."""
        try:
            return self.handler(ctx, Args(request, self.place))
        except CommandError as exc:
            return Error(exc.text)
        except WrongType:
            return Error(WRONG_TYPE)


def find(commands: Mapping[bytes, Command], request: Sequence[bytes]) -> Command:
    """Raises CommandError for an unknown name, subcommand or a wrong arity."""
    command = commands.get(request[0].lower())
    if command is None:
        raise unknown_command(request)
    return narrow(command, request)


def narrow(command: Command, request: Sequence[bytes]) -> Command:
    """The subcommand that the request names, where there are any."""
    if command.subcommands and len(request) > 1:
        subcommand = command.subcommands.get(request[1].lower())
        if subcommand is None:
            raise unknown_subcommand(command.name, request[1])
        command = subcommand
    if not command.accepts(len(request)):
        raise wrong_arity(command.name)
    return command
