"""What a group still knows after kill -9, asked over the wire."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.server_process import ServerProcess
from tests.wire import Wire, entry_ids, named

STREAM, GROUP = "s", "g"
HOLDS = ("--group-visibility-timeout-ms=600000", "--group-max-attempts=5")
DIES_FAST = ("--group-visibility-timeout-ms=50", "--group-max-attempts=1")
WAIT_MAX_S = 20.0


def fill(wire: Wire, count: int) -> list[bytes]:
    wire.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
    ids: list[bytes] = wire.call_many([("XADD", STREAM, "*", "f", "v")] * count)
    return ids


def poll(wire: Wire, count: int = 1000) -> list[bytes]:
    words = ("XREADGROUP", "GROUP", GROUP, "consumer", "COUNT", count)
    return entry_ids(wire.call(*words, "STREAMS", STREAM, ">"))


def ack(wire: Wire, *ids: bytes) -> Any:
    return wire.call("XACK", STREAM, GROUP, *ids)


def pending(wire: Wire) -> list[bytes]:
    return [row[0] for row in wire.call("XPENDING", STREAM, GROUP, "-", "+", 1000)]


def dead_letters(wire: Wire) -> list[dict[str, Any]]:
    return [
        named(letter)
        for letter in wire.call("XDLQ", "LIST", STREAM, GROUP, "-", "+", "COUNT", 1000)
    ]


def dead_ids(wire: Wire) -> list[bytes]:
    return [letter["id"] for letter in dead_letters(wire)]


def wait_for_dead(wire: Wire, count: int) -> None:
    give_up_at = time.monotonic() + WAIT_MAX_S
    while wire.call("XDLQ", "LEN", STREAM, GROUP) < count:
        assert time.monotonic() < give_up_at
        time.sleep(0.002)


def dead(directory: Path, count: int) -> list[bytes]:
    """A directory whose group gave up on ``count`` entries, left by a crash."""
    with (
        ServerProcess.start(directory, *DIES_FAST) as server,
        Wire(server.port) as wire,
    ):
        ids = fill(wire, count)
        poll(wire)
        wait_for_dead(wire, count)
    return ids


def test_a_restart_redelivers_only_what_was_not_acked(tmp_path: Path) -> None:
    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        first, second, third, fourth, fifth = fill(wire, 5)
        poll(wire)
        assert ack(wire, fifth, first, second, fourth) == 4

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert pending(wire) == [third]
        assert poll(wire) == [third]
        assert ack(wire, first, second, fourth, fifth) == 0
        assert ack(wire, third) == 1

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert poll(wire) == []
        (group,) = wire.call("XINFO", "GROUPS", STREAM)
        assert named(group)["last-delivered-id"] == fifth
        assert named(group)["pending"] == 0
        assert named(group)["lag"] == 0


def test_an_ack_by_plain_id_is_taken_after_a_crash(tmp_path: Path) -> None:
    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        ids = fill(wire, 5)
        assert poll(wire) == ids

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert ack(wire, ids[1], ids[3]) == 2
        assert poll(wire) == [ids[0], ids[2], ids[4]]


def test_owed_entries_go_before_new_ones_after_a_crash(tmp_path: Path) -> None:
    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        ids = fill(wire, 4)
        assert poll(wire, 2) == ids[:2]

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        later = wire.call("XADD", STREAM, "*", "f", "v")
        assert poll(wire, 3) == ids[:3]
        assert poll(wire, 3) == [ids[3], later]


@pytest.mark.parametrize("listed", [0, 1, 50, 100])
def test_a_crash_leaves_an_entry_listed_or_owed_never_neither(
    tmp_path: Path, listed: int
) -> None:
    with ServerProcess.start(tmp_path, *DIES_FAST) as server, Wire(server.port) as wire:
        ids = fill(wire, 100)
        for _ in range(20):  # deadlines of their own: they die one batch at a time
            poll(wire, 5)
        wait_for_dead(wire, listed)

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        owed = poll(wire)

        assert sorted(dead_ids(wire) + owed) == sorted(ids)
        assert len(dead_ids(wire)) >= listed
        assert pending(wire) == owed


def test_dead_letters_survive_a_crash(tmp_path: Path) -> None:
    with ServerProcess.start(tmp_path, *DIES_FAST) as server, Wire(server.port) as wire:
        ids = fill(wire, 10)
        poll(wire)
        wait_for_dead(wire, 10)
        before = dead_letters(wire)

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert [letter["id"] for letter in before] == ids
        assert dead_letters(wire) == before
        assert poll(wire) == []
        assert wire.call("XLEN", STREAM) == 10


def test_a_redriven_entry_is_owed_and_unlisted_after_a_crash(tmp_path: Path) -> None:
    first, second = dead(tmp_path, 2)

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert wire.call("XDLQ", "REDRIVE", STREAM, GROUP, first) == 1

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert dead_ids(wire) == [second]
        assert poll(wire) == [first]


def test_a_finished_redrive_does_not_return_after_a_crash(tmp_path: Path) -> None:
    first, second = dead(tmp_path, 2)

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert wire.call("XDLQ", "REDRIVE", STREAM, GROUP, first) == 1
        assert poll(wire) == [first]
        assert ack(wire, first) == 1

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert poll(wire) == []
        assert dead_ids(wire) == [second]
        assert pending(wire) == []


def test_a_discarded_dead_letter_does_not_return_after_a_crash(tmp_path: Path) -> None:
    first, second = dead(tmp_path, 2)

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert wire.call("XDLQ", "DISCARD", STREAM, GROUP, first) == 1

    with ServerProcess.start(tmp_path, *HOLDS) as server, Wire(server.port) as wire:
        assert dead_ids(wire) == [second]
        assert poll(wire) == []
