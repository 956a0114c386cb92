"""What must hold of the facts that clients noted, one rule each.

A rule finds what looks broken, then asks for an excuse: another fact that may have
happened in between, its answer lost or not. ``checked`` counts the facts that each
rule looked at, so that a run that met nothing cannot pass for a good one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tests.crash.facts import End, Fact, GroupEnd, History, Id, Kind, Rules, shown

_SLACK_NS = 5_000_000  # the server counts in ms
FOREVER_NS = 2**63

_GIVEN = (Kind.HANDED, Kind.TAKEN)
_PENDING = (*_GIVEN, Kind.SHOWN)
_REVIVED = (Kind.FORCED, Kind.SOUGHT, Kind.DESTROYED)
_UNLISTED = (Kind.REDRIVEN, Kind.FORCED, Kind.FINISHED, Kind.DESTROYED)
_NEW_ATTEMPTS = (Kind.REDRIVEN, *_REVIVED)
_CLAIM_ENDED = (
    *(Kind.TAKEN, Kind.FINISHED, Kind.BACK, Kind.EXTENDED, Kind.DEAD, Kind.REDRIVEN),
    *(Kind.REMOVED, *_REVIVED),
)


class Told:
    """The facts of one group, by entry and of the whole group."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.by_id: defaultdict[Id, list[Fact]] = defaultdict(list)
        self.whole: defaultdict[Kind, list[Fact]] = defaultdict(list)
        for fact in facts:
            if fact.id is None or fact.kind in (Kind.CURSOR, Kind.TRIMMED):
                self.whole[fact.kind].append(fact)
            else:
                self.by_id[fact.id].append(fact)

    def may_have_been(
        self,
        kinds: Iterable[Kind],
        id_: Id | None,
        since_ns: int,
        until_ns: int,
        but: Fact | None = None,
    ) -> bool:
        """Whether one of these may have happened to the entry in this time."""
        facts = [fact for kind in kinds for fact in self.whole.get(kind, ())]
        if id_ is not None:
            facts += [f for f in self.by_id.get(id_, ()) if f.kind in kinds]
        return any(
            fact.ended_ns >= since_ns and fact.began_ns <= until_ns
            for fact in facts
            if fact is not but
        )


@dataclass(slots=True)
class Verdict:
    broken: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)


def judge(history: History, rules: Mapping[str, Rules], end: End) -> Verdict:
    verdict = Verdict(list(history.errors))
    facts: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in history.facts:
        facts[fact.group].append(fact)
    streams = {name: Told(facts[name]) for name in end.entries}
    verdict.broken += _streams(history, streams, end, verdict.checked)
    for name, rule in rules.items():
        stream = name.split()[0]
        told = Told(facts[name] + facts[""])
        slack_ns = _SLACK_NS + history.drift_ns
        group = _Group(name, rule, told, streams[stream], verdict.checked, slack_ns)
        for broken in (
            group.finished_stays_finished(),
            group.dead_stays_dead(),
            group.letters_stay_listed(end.groups[name]),
            group.delays_are_not_early(),
            group.cursor_moves_forward(),
            group.attempts_are_bound(),
            group.claims_stand(),
            group.new_entries_come_once(),
            group.what_is_given_was_sent(history),
            group.nothing_is_left(end.groups[name]),
            group.all_is_accounted_for(end.entries[stream], end.groups[name]),
        ):
            verdict.broken += (f"{name}: {line}" for line in broken)
    return verdict


def _streams(
    history: History, streams: Mapping[str, Told], end: End, checked: Counter[str]
) -> Iterator[str]:
    for (stream, id_), payload in history.added.items():
        checked["answered XADDs that must be there"] += 1
        there = end.entries[stream].get(id_)
        if there is None and not _may_be_gone(streams[stream], id_, FOREVER_NS):
            yield f"{stream} {shown(id_)}: its XADD was answered and it is gone"
        elif there not in (None, payload):
            yield f"{stream} {shown(id_)}: it is another entry now"
    copies = Counter(p for entries in end.entries.values() for p in entries.values())
    for payload, count in copies.items():
        if payload not in history.sent:
            yield f"{payload.decode()} is there and nobody sent it"
        elif count > 1:
            yield f"{payload.decode()} is there {count} times"
    for stream, told in streams.items():
        for id_, facts in told.by_id.items():
            if id_ in end.entries[stream] and any(
                fact.kind is Kind.DELETED and fact.sure for fact in facts
            ):
                yield f"{stream} {shown(id_)}: its XDEL was answered and it is there"


def _may_be_gone(stream: Told, id_: Id, until_ns: int) -> bool:
    return any(
        fact.began_ns <= until_ns
        for fact in stream.by_id.get(id_, ())
        if fact.kind is Kind.DELETED
    ) or any(
        fact.began_ns <= until_ns
        for fact in stream.whole[Kind.TRIMMED]
        if fact.id and fact.id > id_
    )


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    rules: Rules
    told: Told
    stream: Told
    checked: Counter[str]
    slack_ns: int

    def finished_stays_finished(self) -> Iterator[str]:
        for id_, facts in self.told.by_id.items():
            ends = [f for f in facts if f.kind is Kind.FINISHED and f.sure]
            later = _sightings(facts) if ends else []
            for at, done in enumerate(ends):
                self.checked["answered acks"] += 1
                for fact in later:
                    if fact.began_ns > done.ended_ns and not self._excused(
                        _REVIVED, id_, done, fact
                    ):
                        how = fact.kind.name.lower()
                        yield f"{shown(id_)} was {how} after its ack was answered"
                for second in ends[at + 1 :]:
                    first, last = sorted((done, second), key=lambda f: f.began_ns)
                    if not self._excused(_REVIVED, id_, first, last):
                        yield f"{shown(id_)} was finished twice"

    def dead_stays_dead(self) -> Iterator[str]:
        for id_, facts in self.told.by_id.items():
            deaths = [f for f in facts if f.kind is Kind.DEAD and f.sure]
            later = _sightings(facts) if deaths else []
            for death in deaths:
                for fact in later:
                    if fact.began_ns > death.ended_ns and not self._excused(
                        _UNLISTED, id_, death, fact
                    ):
                        how = fact.kind.name.lower()
                        yield f"{shown(id_)} was {how} and is a dead letter"

    def letters_stay_listed(self, end: GroupEnd) -> Iterator[str]:
        """From the first sight of a letter on, each whole list has it."""
        last = Fact(Kind.LISTED, self.name, None, FOREVER_NS, FOREVER_NS, ids=end.dead)
        lists = sorted(
            [*self.told.whole[Kind.LISTED], last], key=lambda fact: fact.began_ns
        )
        deaths = sorted(
            (f for facts in self.told.by_id.values() for f in facts if _is_death(f)),
            key=lambda fact: fact.ended_ns,
        )
        known: dict[Id, Fact] = {}
        at = 0
        for listed in lists:
            while at < len(deaths) and deaths[at].ended_ns < listed.began_ns:
                death = deaths[at]
                assert death.id is not None
                known[death.id] = death
                at += 1
            self.checked["dead letters that must be listed"] += len(known)
            for id_ in known.keys() - listed.ids:
                death = known.pop(id_)
                if not self._excused(
                    _UNLISTED, id_, death, listed
                ) and not _may_be_gone(self.stream, id_, listed.ended_ns):
                    yield f"{shown(id_)}: the dead letter is lost"

    def delays_are_not_early(self) -> Iterator[str]:
        """A nack of what was redriven before has no delay."""
        at_once = (Kind.REDRIVEN, Kind.FORCED, Kind.DESTROYED)
        for id_, facts in self.told.by_id.items():
            for nack in [f for f in facts if f.kind is Kind.BACK and f.sure and f.ms]:
                self.checked["answered delays"] += 1
                until_ns = nack.began_ns + nack.ms * 1_000_000 - self.slack_ns
                for fact in facts:
                    if (
                        fact.sure
                        and fact.kind in _GIVEN
                        and fact.began_ns > nack.ended_ns
                        and fact.ended_ns < until_ns
                        and not self.told.may_have_been(at_once, id_, 0, fact.ended_ns)
                        and not self._excused((Kind.SOUGHT,), id_, nack, fact)
                    ):
                        early_ms = (until_ns - fact.ended_ns) // 1_000_000
                        yield f"{shown(id_)} came {early_ms} ms before its delay ended"

    def cursor_moves_forward(self) -> Iterator[str]:
        """Each reading is compared with the one before it, and with the highest."""
        readings = self.told.whole[Kind.CURSOR]
        over = sorted(readings, key=lambda fact: fact.ended_ns)
        best = previous = None
        at = 0
        for reading in sorted(readings, key=lambda fact: fact.began_ns):
            while at < len(over) and over[at].ended_ns < reading.began_ns:
                previous = over[at]
                best = max(best or previous, previous, key=lambda f: f.id or (0, 0))
                at += 1
            self.checked["readings of a cursor"] += 1
            for before in {id(f): f for f in (best, previous) if f}.values():
                assert before.id is not None
                assert reading.id is not None
                seeks = (Kind.SOUGHT, Kind.DESTROYED)
                if reading.id < before.id and not self._excused(
                    seeks, None, before, reading
                ):
                    places = f"{shown(before.id)} to {shown(reading.id)}"
                    yield f"the cursor moved back from {places}"

    def attempts_are_bound(self) -> Iterator[str]:
        """By what the server says, and by counting between two crashes."""
        most = self.rules.attempts_max
        if not most:
            return
        crashes = sorted(fact.began_ns for fact in self.told.whole[Kind.CRASHED])
        for id_, facts in self.told.by_id.items():
            eras: defaultdict[int, list[Fact]] = defaultdict(list)
            for fact in facts:
                if fact.amount > most:
                    yield f"{shown(id_)} had attempt {fact.amount} of {most}"
                era = bisect_left(crashes, fact.began_ns)
                if fact.kind is Kind.HANDED and era == bisect_left(
                    crashes, fact.ended_ns
                ):
                    self.checked["attempts of a bound group"] += 1
                    eras[era].append(fact)
            for given in eras.values():
                given.sort(key=lambda fact: fact.began_ns)
                for first, last in zip(given, given[most:], strict=False):
                    if not self._excused(_NEW_ATTEMPTS, id_, first, last):
                        yield f"{shown(id_)} was handed out {most + 1} times"

    def claims_stand(self) -> Iterator[str]:
        """Until its time is over nobody else gets it, and its receipt is good."""
        if not self.rules.claims_stand:
            return
        crash = () if self.rules.durable_claims else (Kind.CRASHED,)
        ended = (*_CLAIM_ENDED, *crash)
        for id_, facts in self.told.by_id.items():
            for claim in facts:
                if not claim.sure or claim.kind not in (Kind.HANDED, Kind.EXTENDED):
                    continue
                until_ns = claim.began_ns + claim.ms * 1_000_000 - self.slack_ns
                for fact in facts:
                    given = fact.kind is Kind.HANDED
                    refused = fact.kind is Kind.REFUSED and (
                        fact.receipt == claim.receipt
                    )
                    if not (given or refused) or not (
                        claim.ended_ns < fact.began_ns and fact.ended_ns < until_ns
                    ):
                        continue
                    if not self.told.may_have_been(
                        ended, id_, claim.began_ns, fact.ended_ns, but=claim
                    ):
                        left_ms = (until_ns - fact.ended_ns) // 1_000_000
                        what = "was given away" if given else "was refused"
                        yield f"{shown(id_)}: a claim {what} {left_ms} ms too early"
                self.checked["claims that must stand"] += 1

    def new_entries_come_once(self) -> Iterator[str]:
        if not self.rules.once:
            return
        for id_, facts in self.told.by_id.items():
            given = [f for f in facts if f.kind is Kind.HANDED]
            self.checked["new entries in mode redis"] += bool(given)
            given.sort(key=lambda fact: fact.began_ns)
            for first, last in pairwise(given):
                if not self._excused((Kind.SOUGHT, Kind.DESTROYED), id_, first, last):
                    yield f"{shown(id_)} was handed out as new twice"

    def what_is_given_was_sent(self, history: History) -> Iterator[str]:
        stream = self.name.split()[0]
        for id_, facts in self.told.by_id.items():
            gone = [
                f.ended_ns
                for f in self.stream.by_id.get(id_, ())
                if f.kind is Kind.DELETED and f.sure
            ]
            for fact in facts:
                if fact.kind not in _PENDING or not fact.payload:
                    continue
                self.checked["payloads handed out"] += 1
                sent_ns = history.sent.get(fact.payload, FOREVER_NS)
                if sent_ns > fact.ended_ns:
                    yield f"{shown(id_)} was handed out before it was sent"
                elif history.added.get((stream, id_), fact.payload) != fact.payload:
                    yield f"{shown(id_)} was handed out with another's payload"
                elif gone and min(gone) < fact.began_ns:
                    yield f"{shown(id_)} was handed out after its XDEL was answered"

    def nothing_is_left(self, end: GroupEnd) -> Iterator[str]:
        if end.pending or end.lag:
            yield f"{end.pending} are pending at the end, and {end.lag} behind"
        for id_ in end.returned:
            yield f"{shown(id_)} came again after the last restart"

    def all_is_accounted_for(
        self, entries: Mapping[Id, bytes], end: GroupEnd
    ) -> Iterator[str]:
        """With nothing pending, what nobody finished was lost by the group."""
        whole = self.told.whole
        if whole[Kind.SOUGHT] or whole[Kind.DESTROYED]:
            return
        lost = [
            id_
            for id_ in entries
            if id_ not in end.dead
            and not any(f.kind is Kind.FINISHED for f in self.told.by_id.get(id_, ()))
        ]
        self.checked["entries that somebody must have finished"] += len(entries)
        if len(lost) > sum(fact.amount for fact in whole[Kind.FINISHED]):
            for id_ in lost:
                yield f"{shown(id_)} is finished and nobody finished it"

    def _excused(
        self, kinds: Iterable[Kind], id_: Id | None, first: Fact, last: Fact
    ) -> bool:
        return self.told.may_have_been(kinds, id_, first.began_ns, last.ended_ns)


def _sightings(facts: Iterable[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.sure and fact.kind in _PENDING]


def _is_death(fact: Fact) -> bool:
    return fact.kind is Kind.DEAD and fact.sure
