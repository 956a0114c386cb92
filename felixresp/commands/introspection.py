"""COMMAND: what the server knows of its own commands.

The handlers are methods, for they read the very table that lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..protocol.reply import Map, Reply, Set, Simple
from .args import Args
from .command import Command, Flags, Keys
from .context import Context
from .documentation import describe
from .errors import (
    INVALID_ARGUMENT_COUNT,
    INVALID_ARGUMENTS,
    INVALID_COMMAND,
    NO_KEY_ARGUMENTS,
    SYNTAX,
    CommandError,
)
from .glob import matches

_HELP = (
    b"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"(no subcommand)",
    b"    Return details about all Redis commands.",
    b"COUNT",
    b"    Return the total number of commands in this Redis server.",
    b"LIST",
    b"    Return a list of all commands in this Redis server.",
    b"INFO [<command-name> ...]",
    b"    Return details about multiple Redis commands.",
    b"    If no command names are given, documentation details for all",
    b"    commands are returned.",
    b"DOCS [<command-name> ...]",
    b"    Return documentation details about multiple Redis commands.",
    b"    If no command names are given, documentation details for all",
    b"    commands are returned.",
    b"GETKEYS <full-command>",
    b"    Return the keys from a full Redis command.",
    b"HELP",
    b"    Print this help.",
)


class Introspection:
    def __init__(self, commands: Mapping[bytes, Command]) -> None:
        self._commands = commands

    def command(self, _ctx: Context, _args: Args) -> Reply:
        """COMMAND"""
        return [_info(command) for command in self._commands.values()]

    def count(self, _ctx: Context, _args: Args) -> Reply:
        """COMMAND COUNT"""
        return len(self._commands)

    def list_(self, _ctx: Context, args: Args) -> Reply:
        """COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"""  # noqa: E501
        if not args:
            return [command.name for command in self._commands.values()]
        if args.remaining() != 3 or args.token() != b"FILTERBY":
            raise CommandError(SYNTAX)
        kind, value = args.token(), args.bytes().lower()
        match kind:
            case b"MODULE":
                return []
            case b"ACLCAT":
                wanted = value.decode("latin-1")
                return [c.name for c in self._all() if wanted in c.categories]
            case b"PATTERN":
                return [c.name for c in self._all() if matches(value, c.name)]
            case _:
                raise CommandError(SYNTAX)

    def info(self, _ctx: Context, args: Args) -> Reply:
        """COMMAND INFO [command-name [command-name ...]]"""
        if not args:
            return [_info(command) for command in self._commands.values()]
        found = (self._find(name) for name in args.rest())
        return [_info(command) if command else None for command in found]

    def docs(self, _ctx: Context, args: Args) -> Reply:
        """COMMAND DOCS [command-name [command-name ...]]"""
        if not args:
            return Map([(c.name, describe(c)) for c in self._commands.values()])
        found = (self._find(name) for name in args.rest())
        return Map([(c.name, describe(c)) for c in found if c])

    def getkeys(self, _ctx: Context, args: Args) -> Reply:
        """COMMAND GETKEYS command [arg [arg ...]]"""
        request = args.rest()
        command = self._commands.get(request[0].lower())
        if command is not None and command.subcommands and len(request) > 1:
            command = command.subcommands.get(request[1].lower())
        if command is None:
            raise CommandError(INVALID_COMMAND)
        if command.keys is None:
            raise CommandError(NO_KEY_ARGUMENTS)
        if not command.accepts(len(request)):
            raise CommandError(INVALID_ARGUMENT_COUNT)
        keys = command.keys.find(request)
        if not keys:
            raise CommandError(INVALID_ARGUMENTS)
        return keys

    def help_(self, _ctx: Context, _args: Args) -> Reply:
        """COMMAND HELP"""
        return [Simple(line) for line in _HELP]

    def _all(self) -> Iterator[Command]:
        for command in self._commands.values():
            yield command
            yield from command.subcommands.values()

    def _find(self, name: bytes) -> Command | None:
        """``xgroup`` or ``xgroup|create``."""
        name = name.lower()
        command = self._commands.get(name.partition(b"|")[0])
        if command is None or command.name == name:
            return command
        return command.subcommands.get(name.partition(b"|")[2])


def _info(command: Command) -> Reply:
    keys = command.keys
    first, last, step = (keys.first, keys.last, keys.step) if keys else (0, 0, 0)
    if keys and keys.keyword:
        first = last = step = 0
    shown = [flag for flag in command.flags if flag is not Flags.IMMEDIATE]
    return (
        command.name,
        command.arity,
        Set([Simple(str(flag.name).lower().encode()) for flag in shown]),
        first,
        last,
        step,
        Set([Simple(b"@" + name.encode()) for name in command.categories]),
        Set(()),  # tips
        Set(_key_specs(keys) if keys else ()),
        Set([_info(subcommand) for subcommand in command.subcommands.values()]),
    )


def _key_specs(keys: Keys) -> Sequence[Reply]:
    if keys.keyword:
        return (_key_spec(keys, keys.uses[0], keys.first, -1, 2),)
    if len(keys.uses) > 1:
        return [
            _key_spec(keys, use, keys.first + at, 0, 0)
            for at, use in enumerate(keys.uses)
        ]
    last = keys.last if keys.last < 0 else keys.last - keys.first
    return (_key_spec(keys, keys.uses[0], keys.first, last, 0),)


def _key_spec(keys: Keys, use: str, start: int, last: int, limit: int) -> Reply:
    if keys.keyword:
        begin = _typed(b"keyword", ((b"keyword", keys.keyword), (b"startfrom", start)))
    else:
        begin = _typed(b"index", ((b"index", start),))
    span = ((b"lastkey", last), (b"keystep", keys.step), (b"limit", limit))
    return Map(
        (
            (b"flags", Set([Simple(flag.encode()) for flag in use.split()])),
            (b"begin_search", begin),
            (b"find_keys", _typed(b"range", span)),
        )
    )


def _typed(kind: bytes, spec: Sequence[tuple[bytes, Reply]]) -> Reply:
    return Map(((b"type", kind), (b"spec", Map(spec))))
