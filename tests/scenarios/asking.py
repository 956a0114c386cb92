"""What the scenarios on the wire ask of a server, about one group of one stream.

Nothing here guesses how long something takes: ``until`` and ``until_passed`` ask the
server itself.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from tests.wire import Wire, entry_ids, named

LONG_MS = 600_000  # a claim that does not lapse while the test runs
POLL_S = 0.01
WAITS_S = 60.0


class Given(NamedTuple):
    """An entry that XPOLL handed out."""

    number: int
    attempts: int
    receipt: bytes
    reason: bytes


def add(wire: Wire, *numbers: int) -> None:
    for number in numbers:
        wire.call("XADD", "jobs", f"{number}-0", "job", "x")


def send_poll(wire: Wire, consumer: str, count: int = 10, block_ms: int = -1) -> None:
    waiting = ("BLOCK", block_ms) if block_ms >= 0 else ()
    words = "GROUP", "workers", consumer, "COUNT", count, *waiting
    wire.send("XREADGROUP", *words, "STREAMS", "jobs", ">")


def poll(wire: Wire, consumer: str, count: int = 10, block_ms: int = -1) -> list[int]:
    send_poll(wire, consumer, count, block_ms)
    return numbers(wire.read())


def numbers(reply: object) -> list[int]:
    return [int(id_.split(b"-")[0]) for id_ in entry_ids(reply)]


def ack(wire: Wire, *ids: int) -> int:
    done: int = wire.call("XACK", "jobs", "workers", *ids)
    return done


def info(wire: Wire, name: str) -> int:
    text: bytes = wire.call("INFO", "everything")
    fields = dict(line.split(b":", 1) for line in text.split(b"\r\n") if b":" in line)
    return int(fields[name.encode()])


def until(wire: Wire, name: str, value: int) -> None:
    """Wait for INFO to say so; the test fails if it never does."""
    end = time.monotonic() + WAITS_S
    while info(wire, name) != value:
        assert time.monotonic() < end, name
        time.sleep(POLL_S)


def xpoll(wire: Wire, consumer: str, *words: str | int) -> list[Given]:
    wire.send("XPOLL", "jobs", "workers", consumer, *words)
    return given(wire.read())


def given(reply: Any) -> list[Given]:
    """What an XPOLL answered."""
    assert isinstance(reply, list)
    found = []
    for id_, _, flat in reply:
        meta = named(flat)
        told = meta["attempts"], meta["receipt"], meta["last-reason"]
        found.append(Given(int(id_.split(b"-")[0]), *told))
    return found


def explain(wire: Wire, number: int) -> dict[str, Any]:
    """XEXPLAIN; its history as dicts too."""
    found = named(wire.call("XEXPLAIN", "jobs", "workers", f"{number}-0"))
    found["history"] = [named(attempt) for attempt in found["history"]]
    return found


def until_held_for(wire: Wire, number: int, ms: int) -> int:
    """Wait until the entry's claim has stood that long; it must not end before.
    How long it stood, on the server's clock."""
    while True:
        found = explain(wire, number)
        last = found["history"][-1]
        assert (found["state"], last["ended"]) == (b"claimed", b"standing")
        if last["lasted"] >= ms:
            lasted_ms: int = last["lasted"]
            return lasted_ms
        time.sleep(POLL_S)
