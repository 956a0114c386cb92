"""Plays one case on one server and writes down every reply.

A step never sleeps to hope: a client counts as blocked once CLIENT LIST, asked
on another connection, shows it blocked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from .script import Action, Case, Step, filled, unescape
from .wire import Connection, ConnectionClosed, NoReply, Reply, canonical

BLOCKED_TIMEOUT_S = 5.0
POLL_PAUSE_S = 0.002
STILL_BLOCKED = b"(still blocked)"
CLOSED = b"(closed)"
NOTHING = b"(no reply)"
ANSWERED_AT_ONCE = b"(answered at once) "
NOT_PLAYED = b"(not played)"
USERS = (b"u", b"v", b"w")  # those of the cases; each case begins without them


@dataclass(frozen=True, slots=True)
class Seen:
    """What one step got: to show, and to compare."""

    raw: bytes
    compared: bytes


class Player:
    """One case on one server; every connection is made for it alone."""

    def __init__(self, host: str, port: int, protocol: int) -> None:
        self._address = host, port
        self._protocol = protocol
        self._observer = Connection(host, port)
        self._connections: dict[str, Connection] = {}
        self._ids: dict[str, bytes] = {}
        self._answered_early: set[str] = set()

    def close(self) -> None:
        for connection in (self._observer, *self._connections.values()):
            connection.close()

    def play(self, steps: Sequence[Step]) -> list[Seen]:
        self._observer.call(b"FLUSHALL")
        self._observer.call(b"ACL", b"DELUSER", *USERS)
        self._observer.call(b"ACL", b"LOG", b"RESET")
        seen: list[Seen] = []
        for step in steps:
            try:
                seen.append(self._take(step))
            except ConnectionClosed:
                self._reopen(step.connection)
                seen.append(_note(CLOSED))
            except NoReply:
                seen.append(_note(NOTHING))
                seen += [_note(NOT_PLAYED)] * (len(steps) - len(seen))
                break
        return seen

    def _take(self, step: Step) -> Seen:
        connection = self._connection(step.connection)
        match step.action:
            case Action.COMMAND:
                seen = _seen(connection.call(*step.arguments(self._value)), step)
            case Action.BLOCKS:
                connection.send(*step.arguments(self._value))
                seen = self._await_block(step, connection)
            case Action.GETS if step.connection in self._answered_early:
                seen = _note(ANSWERED_AT_ONCE)
            case Action.GETS:
                seen = _seen(connection.read(), step)
            case Action.WAITS:
                seen = self._still_blocked(step, connection)
            case Action.RAW:
                sent = filled(step.text[1:-1], self._value).decode("latin-1")
                connection.send_raw(unescape(sent))
                seen = _joined(connection, step)
            case Action.CLOSED:
                seen = _note(b"(open) " + connection.read().raw)
        return seen

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            connection = Connection(*self._address, self._protocol)
            self._connections[name] = connection
            self._ids[name] = connection.call(b"CLIENT", b"ID").text
        return self._connections[name]

    def _reopen(self, name: str) -> None:
        if name in self._connections:
            self._connections.pop(name).close()

    def _value(self, word: str, sign: str, operand: str) -> bytes:
        """What a placeholder of a command stands for."""
        if word == "id":
            self._connection(operand)
            return self._ids[operand]
        if sign == "*":
            return word.encode() * int(operand)
        moved = int(sign + (operand or "0"))
        if word == "now_s":
            return b"%d" % (int(time.time()) + moved)
        if word == "now_ms":
            return b"%d" % (int(time.time() * 1000) + moved)
        raise ValueError(word)

    def _is_blocked(self, name: str) -> bool:
        listed = self._observer.call(b"CLIENT", b"LIST").text
        for line in listed.splitlines():
            words = dict(word.partition(b"=")[::2] for word in line.split(b" "))
            if words.get(b"id") == self._ids[name]:
                return b"b" in words.get(b"flags", b"")
        return False

    def _await_block(self, step: Step, connection: Connection) -> Seen:
        deadline = time.monotonic() + BLOCKED_TIMEOUT_S
        while not self._is_blocked(step.connection):
            if connection.has_reply():
                self._answered_early.add(step.connection)
                reply = connection.read()
                return _note(ANSWERED_AT_ONCE + canonical(reply, step.marks))
            if time.monotonic() > deadline:
                raise NoReply
            time.sleep(POLL_PAUSE_S)
        return _note(STILL_BLOCKED)

    def _still_blocked(self, step: Step, connection: Connection) -> Seen:
        if self._is_blocked(step.connection) and not connection.has_reply():
            return _note(STILL_BLOCKED)
        self._answered_early.add(step.connection)
        return _seen(connection.read(), step)


def play(case: Case, host: str, port: int, protocol: int) -> list[Seen]:
    try:
        player = Player(host, port, protocol)
    except (OSError, ConnectionClosed, NoReply):
        return [_note(CLOSED)] * len(case.steps)
    try:
        return player.play(case.steps)
    except (OSError, ConnectionClosed, NoReply):
        return [_note(CLOSED)] * len(case.steps)
    finally:
        player.close()


def _seen(reply: Reply, step: Step) -> Seen:
    return Seen(reply.raw, canonical(reply, step.marks, step.fields))


def _note(text: bytes) -> Seen:
    return Seen(text, text)


def _joined(connection: Connection, step: Step) -> Seen:
    """Several replies to raw bytes, up to the end of the connection if it comes."""
    raw, compared = b"", b""
    for _ in range(step.replies):
        try:
            reply = connection.read()
        except ConnectionClosed:
            return Seen(raw + CLOSED, compared + CLOSED)
        raw += reply.raw
        compared += canonical(reply, step.marks)
    return Seen(raw, compared)
