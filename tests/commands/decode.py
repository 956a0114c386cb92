"""Replies as tests like to read them: strings, integers, lists and None.

An error is its text after ``!``; the null array is ``NIL``.
"""

from __future__ import annotations

from typing import Any

from felixresp.commands.context import Answer, Block, Outcome
from felixresp.protocol.encoder import encode

NIL = "(null array)"


def plain(answer: Answer) -> Any:
    """The answer as RESP2 would show it; a Block as it is."""
    if isinstance(answer, Block):
        return answer
    reply = answer.reply if isinstance(answer, Outcome) else answer
    value, end = _value(wire := encode(reply, 2), 0)
    assert end == len(wire)
    return value


def _value(  # noqa: PLR0911 - a branch for each kind
    wire: bytes, start: int
) -> tuple[Any, int]:
    end = wire.index(b"\r\n", start)
    kind, rest, start = wire[start : start + 1], wire[start + 1 : end], end + 2
    match kind:
        case b"+":
            return rest.decode(), start
        case b"-":
            return "!" + rest.decode("latin-1"), start
        case b":":
            return int(rest), start
        case b"$":
            if rest == b"-1":
                return None, start
            end = start + int(rest)
            return wire[start:end].decode("latin-1"), end + 2
        case _:
            assert kind == b"*"
            if rest == b"-1":
                return NIL, start
            items = []
            for _ in range(int(rest)):
                item, start = _value(wire, start)
                items.append(item)
            return items, start
