"""What a worker may ask of a group, and what each answer lets it know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.crash.facts import Fact, Kind
from tests.crash.turns import Ask, Held, Turn, Verb, Word
from tests.wire import named

# --- polls


def read(turn: Turn) -> Ask:
    return _read(turn)


def read_block(turn: Turn) -> Ask:
    return _read(turn, "BLOCK", turn.dice.randrange(1, 150))


def read_noack(turn: Turn) -> Ask:
    return _read(turn, "NOACK")


def _read(turn: Turn, *options: Word) -> Ask:
    use, count = turn.use, turn.dice.randrange(1, 12)
    no_ack = "NOACK" in options
    words: list[Word] = ["XREADGROUP", "GROUP", use.name, turn.consumer]
    words += ["COUNT", count, *options, "STREAMS", use.stream, ">"]

    def learn(reply: Any) -> Iterable[Fact]:
        entries = reply[0][1] if reply else ()
        for id_, fields in entries:
            kind, ms = _kind(turn), use.visibility_ms
            yield turn.fact(kind, id_, payload=fields[1], ms=0 if no_ack else ms)
            if no_ack:
                yield turn.fact(Kind.FINISHED, id_)
        if not no_ack:
            turn.shared.put(Held(entry[0], b"", turn.consumer) for entry in entries)

    lost = [turn.fact(Kind.FINISHED, sure=False, amount=count)] if no_ack else []
    verb = " ".join(("XREADGROUP >", *map(str, options[:1])))
    return Ask(verb, words, learn, [*lost, *_reclaims(turn)])


def poll(turn: Turn) -> Ask:
    return _poll(turn)


def poll_block(turn: Turn) -> Ask:
    return _poll(turn, "BLOCK", turn.dice.randrange(1, 150))


def poll_visibility(turn: Turn) -> Ask:
    return _poll(turn, "VISIBILITY", turn.dice.choice((50, 300, 1000, 4000)))


def poll_reclaim(turn: Turn) -> Ask:
    turn.reclaimed.add(turn.use.label)
    return _poll(turn, "RECLAIM")


def _poll(turn: Turn, *options: Word) -> Ask:
    use, visibility_ms = turn.use, turn.use.visibility_ms
    if options[:1] == ("VISIBILITY",):
        visibility_ms = int(options[1])

    def learn(reply: Any) -> Iterable[Fact]:
        got = []
        for id_, fields, flat in reply:
            meta = named(flat)
            got.append(Held(id_, meta["receipt"], turn.consumer))
            yield turn.fact(
                _kind(turn),
                id_,
                payload=fields[1],
                ms=visibility_ms,
                amount=meta["attempts"],
                receipt=meta["receipt"],
            )
        turn.shared.put(got)

    count = turn.dice.randrange(1, 12)
    words = ("XPOLL", use.stream, use.name, turn.consumer, "COUNT", count, *options)
    verb = " ".join(("XPOLL", *map(str, options[:1])))
    return Ask(verb, words, learn, _reclaims(turn))


def _kind(turn: Turn) -> Kind:
    """A connection that reclaims gets what stands in its own name."""
    return Kind.TAKEN if turn.use.label in turn.reclaimed else Kind.HANDED


def _reclaims(turn: Turn) -> list[Fact]:
    if turn.use.label not in turn.reclaimed:
        return []
    return [turn.fact(Kind.TAKEN, sure=False)]


def history(turn: Turn) -> Ask:
    use = turn.use

    def learn(reply: Any) -> Iterable[Fact]:
        for id_, fields in reply[0][1]:
            yield turn.fact(Kind.SHOWN, id_, payload=fields[1] if fields else b"")

    words: list[Word] = ["XREADGROUP", "GROUP", use.name, turn.consumer]
    words += ["COUNT", 20, "STREAMS", use.stream, "0"]
    return Ask("XREADGROUP history", words, learn)


def pending(turn: Turn) -> Ask:
    def learn(reply: Any) -> Iterable[Fact]:
        return (turn.fact(Kind.SHOWN, row[0]) for row in reply)

    words = ("XPENDING", turn.use.stream, turn.use.name, "-", "+", 30)
    return Ask("XPENDING", words, learn)


# --- settling


def ack(turn: Turn) -> Ask | None:
    ids = [held.id for held in turn.held(turn.dice.randrange(1, 8))]
    if not ids:
        return None
    words: list[Word] = ["XACK", turn.use.stream, turn.use.name, *ids]

    def learn(count: Any) -> Iterable[Fact]:
        return turn.applied(Kind.FINISHED, ids, count)

    return Ask("XACK id", words, learn, turn.unsure(Kind.FINISHED, *ids))


def ack_receipt(turn: Turn) -> Ask | None:
    held = _with_receipt(turn)
    if held is None:
        return None
    words = ("XACK", turn.use.stream, turn.use.name, held.receipt)

    def learn(count: Any) -> Iterable[Fact]:
        if not count:
            return [turn.fact(Kind.REFUSED, held.id, receipt=held.receipt)]
        return [turn.fact(Kind.FINISHED, held.id)]

    return Ask("XACK receipt", words, learn, turn.unsure(Kind.FINISHED, held.id))


def _with_receipt(turn: Turn, *, keep: bool = False) -> Held | None:
    return next((held for held in turn.held(3, keep=keep) if held.receipt), None)


def silent(turn: Turn) -> Ask | None:
    return _nack(turn, "SILENT")


def fail(turn: Turn) -> Ask | None:
    return _nack(turn, "FAIL")


def fatal(turn: Turn) -> Ask | None:
    return _nack(turn, "FATAL")


def _nack(turn: Turn, mode: str) -> Ask | None:
    use, dice = turn.use, turn.dice
    several = turn.held(dice.randrange(1, 4))
    if not several:
        return None
    one = several[0]
    by_receipt = len(several) == 1 and bool(one.receipt) and turn.maybe(0.5)
    ids = [held.id for held in several]
    words: list[Word] = ["XNACK", use.stream, use.name, mode, "IDS", len(ids)]
    words += [one.receipt] if by_receipt else ids
    delay_ms = use.backoff_ms if mode == "FAIL" else 0
    by_name = use.leases and turn.maybe(0.2)
    if use.leases and mode != "FATAL" and turn.maybe(0.5):
        delay_ms = dice.choice((0, 50, 200, 700, 1500))
        words += ["DELAY", delay_ms]
    if use.leases and turn.maybe(0.4):
        words += ["REASON", dice.choice(("downstream slow", "bad input", "later"))]
    if by_name:
        words += ["CONSUMER", one.consumer]
    feared: list[Fact] = []
    if use.forces and turn.maybe(0.2):
        words += ["RETRYCOUNT", dice.randrange(4)]
    if use.forces and turn.maybe(0.2):
        words.append("FORCE")
        feared = turn.unsure(Kind.FORCED, *ids)
    kind = Kind.DEAD if mode == "FATAL" and use.leases else Kind.BACK
    if kind is Kind.DEAD:
        turn.shared.letters.extend(ids)

    def learn(count: Any) -> Iterable[Fact]:
        yield from turn.applied(kind, ids, count, ms=delay_ms)
        yield from feared
        if not count and by_receipt and not by_name:
            yield turn.fact(Kind.REFUSED, one.id, receipt=one.receipt)

    return Ask(
        f"XNACK {mode}", words, learn, [*turn.unsure(kind, *ids, ms=delay_ms), *feared]
    )


def extend(turn: Turn) -> Ask | None:
    held = _with_receipt(turn, keep=True)
    if held is None:
        return None
    ms = turn.dice.choice((100, 500, 2000))
    words = ("XEXTEND", turn.use.stream, turn.use.name, ms, "IDS", 1, held.receipt)

    def learn(reply: Any) -> Iterable[Fact]:
        if not reply[0]:
            return [turn.fact(Kind.REFUSED, held.id, receipt=held.receipt)]
        more: dict[str, Any] = {"ms": reply[0], "receipt": held.receipt}
        return [turn.fact(Kind.EXTENDED, held.id, **more)]

    return Ask("XEXTEND", words, learn, turn.unsure(Kind.EXTENDED, held.id))


# --- taking over


def claim(turn: Turn) -> Ask | None:
    return _claim(turn)


def claim_justid(turn: Turn) -> Ask | None:
    return _claim(turn, "JUSTID")


def claim_force(turn: Turn) -> Ask | None:
    return _claim(turn, "FORCE")


def _claim(turn: Turn, *options: Word) -> Ask | None:
    use, dice = turn.use, turn.dice
    ids = [held.id for held in turn.held(3, keep=True)]
    words: list[Word] = ["XCLAIM", use.stream, use.name, turn.consumer]
    words += [dice.choice((0, use.visibility_ms // 2)), *ids]
    if not ids:
        return None
    feared = turn.unsure(Kind.TAKEN, *ids)
    forced: list[Fact] = []
    if "FORCE" in options:
        forced = turn.unsure(Kind.FORCED, *ids)
        if turn.maybe(0.3):
            words += ["RETRYCOUNT", dice.randrange(4)]
        if turn.maybe(0.3):
            words += ["LASTID", ids[0]]
            forced.append(turn.fact(Kind.SOUGHT, sure=False))
    words += options

    def learn(reply: Any) -> Iterable[Fact]:
        yield from _taken(turn, reply, just_id="JUSTID" in options)
        yield from forced

    verb = " ".join(("XCLAIM", *map(str, options)))
    return Ask(verb, words, learn, [*feared, *forced])


def autoclaim(turn: Turn) -> Ask:
    just_id = turn.maybe(0.3)
    words: list[Word] = ["XAUTOCLAIM", turn.use.stream, turn.use.name, turn.consumer]
    words += [turn.use.visibility_ms // turn.dice.choice((1, 2, 4)), "0-0", "COUNT", 5]
    words += ["JUSTID"] if just_id else []

    def learn(reply: Any) -> Iterable[Fact]:
        return _taken(turn, reply[1], just_id=just_id)

    return Ask("XAUTOCLAIM", words, learn, [turn.fact(Kind.TAKEN, sure=False)])


def _taken(turn: Turn, reply: Any, *, just_id: bool) -> Iterable[Fact]:
    if just_id:
        return [turn.fact(Kind.TAKEN, id_) for id_ in reply]
    turn.shared.put(Held(entry[0], b"", turn.consumer) for entry in reply)
    return [turn.fact(Kind.TAKEN, id_, payload=fields[1]) for id_, fields in reply]


CONSUMING: Mapping[str, Verb] = {
    verb.__name__: verb
    for verb in (
        *(read, read_block, read_noack, history, pending),
        *(poll, poll_block, poll_visibility, poll_reclaim),
        *(ack, ack_receipt, silent, fail, fatal, extend),
        *(claim, claim_justid, claim_force, autoclaim),
    )
}
