"""System calls of a server, from strace, and what must hold of their order.

A reply may leave only when the bytes it answers for are on the disk: the write of
them, then a sync of that file that began later and succeeded, then the send.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path

_WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg")
_READS = ("read", "readv", "recvfrom", "recvmsg")
_SYNCS = ("fdatasync", "fsync")
_STRING_MAX_BYTES = 4 * 1024 * 1024  # more than the largest write: nothing is cut

_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
_UNFINISHED = " <unfinished ...>"
_TARGET = re.compile(r"\d+<(TCP(?:v6)?:\[[^\]]*\]|[^>]*)>")
_PEER = re.compile(r":(\d+)\]$")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
_ENTRY_ID = re.compile(rb"\r\n(\d+-\d+)(?=\r\n)")


def strace(output: Path) -> list[str]:
    """The command that runs another one under strace, as its direct child."""
    calls = ",".join((*_WRITES, *_READS, *_SYNCS))
    command = ["strace", "-D", "-f", "-yy", "-s", str(_STRING_MAX_BYTES)]
    return [*command, "-e", f"trace={calls}", "-o", str(output)]


@dataclass(frozen=True, slots=True)
class Call:
    """``began`` and ``ended`` are lines of the trace: one order over all threads."""

    name: str
    target: str  # the file's path, or TCP:[...]
    data: bytes
    result: int
    began: int
    ended: int

    @property
    def peer(self) -> int:
        """The port on the other side, 0 for a file."""
        found = _PEER.search(self.target) if self.target.startswith("TCP") else None
        return int(found[1]) if found else 0


class Trace:
    """The calls that worked, sorted by kind, each in the order of ending."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.writes: list[Call] = []
        self.syncs: list[Call] = []
        self.sends: list[Call] = []
        self.receives: list[Call] = []
        for call in _calls(lines):
            if call.name in _SYNCS and call.result == 0:
                self.syncs.append(call)
            elif call.result > 0 and call.name in _WRITES:
                (self.sends if call.peer else self.writes).append(call)
            elif call.result > 0 and call.peer:
                self.receives.append(call)

    def early_entries(self, payloads: Mapping[bytes, bytes]) -> Iterator[str]:
        """Sends that name an entry before its payload was durable.

        ``payloads`` is payload by ID; a payload occurs in no other entry. A send
        may be the answer of an XADD or EXEC, or a delivery to any reader.
        """
        durable = self._durable(set(payloads.values()))
        for send in self.sends:
            for entry_id in _ENTRY_ID.findall(send.data):
                payload = payloads.get(entry_id)
                if payload and durable.get(payload, send.began) >= send.began:
                    yield f"line {send.began}: {entry_id.decode()} was not yet durable"

    def early_replies(self, ports: Collection[int]) -> Iterator[str]:
        """Sends on these connections with nothing made durable since the request.

        Each of them asks for one thing at a time, which must be made durable;
        what was answered up to its +PONG does not count.
        """
        for port in ports:
            for requested, send in self._answers(port):
                synced = (self._synced_before(send.began, f) for f in self._commits)
                if max(synced, default=-1) < requested:
                    yield f"line {send.began}: {send.data[:40]!r} was not yet durable"

    def early_acks(
        self, acks: Mapping[int, Sequence[bytes]], payloads: Collection[bytes]
    ) -> Iterator[str]:
        """Answers to XACK, of one ID each, that left before its record was durable.

        ``acks`` is, by client port, the IDs in the order of asking. The journal
        holds an ID as 16 bytes, and the last record that names a finished entry is
        the one that finished it.
        """
        records = self._journal(_any_of(payloads))
        for port, ids in acks.items():
            asked = iter(ids)
            for requested, send in self._answers(port):
                for entry_id in islice(asked, send.data.count(b"\r\n")):
                    name = struct.pack(">QQ", *map(int, entry_id.split(b"-")))
                    last = [call for call in records if name in call.data][-1:]
                    if not any(
                        requested < call.began
                        and call.began <= self._synced_before(send.began, call.target)
                        for call in last
                    ):
                        yield f"line {send.began}: the ack of {entry_id.decode()}"

    def _answers(self, port: int) -> Iterator[tuple[int, Call]]:
        """Each send to this client after +PONG, with the line of the last request."""
        requested, started = -1, False
        both = [call for call in self.sends + self.receives if call.peer == port]
        for call in sorted(both, key=lambda call: call.ended):
            if call.name in _READS:
                requested = call.ended
            elif started:
                yield requested, call
            started |= call.data == b"+PONG\r\n"

    def _journal(self, payload: re.Pattern[bytes]) -> list[Call]:
        """The writes to the files that payloads go to first, before any checkpoint."""
        known: set[bytes] = set()
        journals: set[str] = set()
        for call in self.writes:
            found = set(payload.findall(call.data))
            if found - known:
                journals.add(call.target)
            known |= found
        return [call for call in self.writes if call.target in journals]

    def _synced_before(self, line: int, target: str) -> int:
        """Where the newest write to this file began that was synced by then."""
        ends, newest = self._commits.get(target, ([], []))
        at = bisect_left(ends, line)
        return newest[at - 1] if at else -1

    def _durable(self, payloads: set[bytes]) -> dict[bytes, int]:
        """The line at which each payload first was on the disk."""
        word = _any_of(payloads)
        written: dict[str, dict[bytes, int]] = {}
        for call in self.writes:
            for payload in word.findall(call.data):
                written.setdefault(call.target, {}).setdefault(payload, call.ended)
        durable: dict[bytes, int] = {}
        for sync in self.syncs:
            waiting = written.get(sync.target, {})
            for payload in [p for p, ended in waiting.items() if ended < sync.began]:
                del waiting[payload]
                durable.setdefault(payload, sync.ended)
        return durable

    @cached_property
    def _commits(self) -> dict[str, tuple[list[int], list[int]]]:
        """By file: where syncs ended, and where the newest write under them began."""
        steps = [(call.ended, call) for call in self.writes]
        steps += [(call.began, call) for call in self.syncs]
        latest: dict[str, int] = {}
        covered: dict[str, list[tuple[int, int]]] = {}
        for _, call in sorted(steps, key=lambda step: step[0]):
            if call.name not in _SYNCS:
                latest[call.target] = call.began
            elif call.target in latest:
                pair = (call.ended, latest[call.target])
                covered.setdefault(call.target, []).append(pair)
        commits = {}
        for target, pairs in covered.items():
            pairs.sort()
            newest = accumulate((began for _, began in pairs), max)
            commits[target] = ([ended for ended, _ in pairs], list(newest))
        return commits


def _any_of(words: Collection[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, sorted(words))))


def _calls(lines: Iterable[str]) -> Iterator[Call]:
    """Calls in the order of ending. strace splits one that another thread's parts."""
    open_calls: dict[str, tuple[str, str, int]] = {}
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue  # a signal or an exit
        thread, resumed, name, text = found.groups()
        began = number
        if resumed:
            name, start, began = open_calls.pop(thread)
            text = start + text
        if text.rstrip().endswith(_UNFINISHED):
            start = text.rstrip().removesuffix(_UNFINISHED)
            open_calls[thread] = (name, start, began)
            continue
        arguments, _, outcome = text.rpartition(" = ")
        target = _TARGET.match(arguments)
        if target is not None:
            result = int(outcome.split()[0]) if outcome[:1] != "?" else -1
            yield Call(name, target[1], _data(arguments), result, began, number)


def _data(arguments: str) -> bytes:
    strings = []
    for content, cut in _STRING.findall(arguments):
        assert not cut, "strace cut a string"
        strings.append(content)
    return "".join(strings).encode().decode("unicode_escape").encode("latin-1")
