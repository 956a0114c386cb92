"""What COMMAND DOCS says: a row of facts and the handler's own grammar line.

The arguments are read out of the grammar that every handler has as its
docstring: ``[optional]``, ``<one | of | these>``, ``word [word ...]`` for several.
Words in capitals are tokens, the others names of values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from ..protocol.reply import Map, Reply, Set, Simple
from .command import Command
from .facts import FACTS

_WORD = re.compile(r"\[|\]|<|>|\||\.\.\.|[^\s\[\]<>|]+")
# fmt: off
_INTEGERS = frozenset((
    "client-id", "count", "entries-added", "entries-read", "index", "limit", "maxage",
    "milliseconds", "min-idle-time", "ms", "numids", "protover", "seconds",
))
# fmt: on


@dataclass(slots=True)
class Argument:
    """One node of COMMAND DOCS's ``arguments``."""

    name: str
    kind: str
    token: str = ""
    flags: list[str] = field(default_factory=list)
    parts: list[Argument] = field(default_factory=list)

    def reply(self) -> Reply:
        pairs: list[tuple[Reply, Reply]] = [
            (b"name", self.name.encode()),
            (b"type", self.kind.encode()),
        ]
        if not self.parts:
            pairs.append((b"display_text", self.name.encode()))
        if self.kind == "key":
            pairs.append((b"key_spec_index", 0))
        if self.token:
            pairs.append((b"token", self.token.encode()))
        if self.flags:
            pairs.append((b"flags", Set([Simple(f.encode()) for f in self.flags])))
        if self.parts:
            pairs.append((b"arguments", [part.reply() for part in self.parts]))
        return Map(pairs)


def describe(command: Command) -> Reply:
    """The command's map in COMMAND DOCS."""
    since, group, complexity, summary = FACTS[command.name.decode()]
    pairs: list[tuple[Reply, Reply]] = [
        (b"summary", summary.encode()),
        (b"since", since.encode()),
        (b"group", group.encode()),
        (b"complexity", complexity.encode()),
    ]
    arguments = [argument.reply() for argument in read_grammar(grammar(command))]
    if arguments:
        pairs.append((b"arguments", arguments))
    if command.subcommands:
        subcommands = [(c.name, describe(c)) for c in command.subcommands.values()]
        pairs.append((b"subcommands", Map(subcommands)))
    return Map(pairs)


def grammar(command: Command) -> str:
    """The arguments in the handler's docstring; empty where it shows none."""
    handler = command.handler
    text = handler.func.__doc__ if isinstance(handler, partial) else handler.__doc__
    name = command.name.decode().replace("|", " ").upper()
    return text.removeprefix(name) if text and text.startswith(name) else ""


def read_grammar(text: str) -> list[Argument]:
    words = _WORD.findall(text)
    arguments = _sequence(words, "")
    assert not words, text
    return arguments


def _sequence(words: list[str], end: str) -> list[Argument]:
    """Reads ``words`` from the front, through the closing ``end``."""
    choices: list[list[Argument]] = [[]]
    while words:
        word = words.pop(0)
        if word == end:
            break
        here = choices[-1]
        if word == "|":
            choices.append([])
        elif word == "[":
            _add_optional(here, words)
        elif word == "<":
            here.append(_one(_sequence(words, ">")))
        elif word == "...":
            here.append(Argument("...", "more"))
        else:
            here.append(_plain(word))
    joined = [_join(choice) for choice in choices]
    if len(joined) == 1:
        return joined[0]
    parts = [_one(choice) for choice in joined]
    return [Argument(parts[0].name, "oneof", parts=parts)]


def _add_optional(before: list[Argument], words: list[str]) -> None:
    inner = _sequence(words, "]")
    if inner[-1].kind != "more":
        optional = _one(inner)
        optional.flags.insert(0, "optional")
        before.append(optional)
        return
    repeated = inner[:-1]  # "key [key ...]", "field value [field value ...]"
    del before[len(before) - len(repeated) :]
    several = _one(repeated)
    several.flags.append("multiple")
    before.append(several)


def _join(arguments: list[Argument]) -> list[Argument]:
    """Give a token the values that follow it: ``COUNT count``."""
    joined: list[Argument] = []
    for argument in arguments:
        last = joined[-1] if joined else None
        takes = (
            last is not None
            and last.token.isupper()
            and "optional" not in last.flags
            and argument.kind not in ("pure-token", "oneof", "more")
            and "optional" not in argument.flags
        )
        if last is None or not takes:
            joined.append(argument)
        elif last.kind == "pure-token" and not argument.token:
            argument.token = last.token
            joined[-1] = argument
        else:
            joined[-1] = _grown(last, argument)
    return joined


def _grown(first: Argument, second: Argument) -> Argument:
    """A token with one more value: a block."""
    if first.kind == "block" and not first.flags:
        first.parts.append(second)
        return first
    token, first.token = first.token, ""
    return Argument(token.lower(), "block", token, parts=[first, second])


def _one(arguments: Sequence[Argument]) -> Argument:
    if len(arguments) == 1:
        return arguments[0]
    return Argument(arguments[0].name, "block", parts=list(arguments))


def _plain(word: str) -> Argument:
    if word.upper() == word and not word.isdigit():
        return Argument(word.lower(), "pure-token", word)
    if word in ("key", "newkey"):
        return Argument(word, "key")
    if word == "pattern":
        return Argument(word, "pattern")
    if word.startswith("unix-time"):
        return Argument(word, "unix-time")
    return Argument(word, "integer" if word in _INTEGERS else "string")
