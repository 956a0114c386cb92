"""What a manager may ask of a group, and what each answer lets it know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.crash.facts import Fact, Kind, entry_id
from tests.crash.turns import CONSUMERS, Ask, Turn, Verb, Word, ids_of, nothing
from tests.wire import named

_PENDING = (b"claimed", b"delayed", b"owed", b"reserved")
_CONFIGURED: tuple[tuple[Word, Word], ...] = (
    ("visibility-timeout-ms", 100),
    ("visibility-timeout-ms", 500),
    ("max-attempts", 0),
    ("max-attempts", 2),
    ("backoff", "none"),
    ("backoff", "exponential 50 2 800 0.5"),
    ("lapse-backoff", "none"),
    ("lapse-backoff", "linear 50 300"),
    ("claims-follow", "timer"),
    ("claims-follow", "connection"),
    ("follow-max-ms", 3000),
    ("disconnect-grace-ms", -1),
    ("disconnect-grace-ms", 50),
    ("max-in-flight", 20),
    ("max-in-flight", 10000),
    ("max-poll-entries", 3),
    ("max-poll-entries", 1000),
    ("max-poll-bytes", 100),
    ("max-poll-bytes", 4194304),
    ("durable-claims", "yes"),
    ("durable-claims", "no"),
    ("max-dead-letters", 5),
    ("max-dead-letters", 100000),
)


# --- dead letters


def letters(turn: Turn) -> Ask:
    """The whole list."""

    def learn(reply: Any) -> Iterable[Fact]:
        rows = [named(row) for row in reply]
        ids = [row["id"] for row in rows]
        turn.shared.letters.extend(ids)
        for row in rows:
            yield turn.fact(Kind.DEAD, row["id"], amount=row["attempts"])
        yield turn.fact(Kind.LISTED, ids=ids_of(ids))

    return Ask("XDLQ LIST", ("XDLQ", "LIST", *_names(turn)), learn)


def some_letters(turn: Turn) -> Ask:
    def learn(reply: Any) -> Iterable[Fact]:
        for row in map(named, reply):
            yield turn.fact(Kind.DEAD, row["id"], amount=row["attempts"])

    options = (("CAUSE", "consumer"), ("REASON", "bad"), ("-", "+", "COUNT", 3))
    words = ("XDLQ", "LIST", *_names(turn), *turn.dice.choice(options))
    return Ask("XDLQ LIST filtered", words, learn)


def redrive(turn: Turn) -> Ask | None:
    return _settle_letters(turn, "REDRIVE", Kind.REDRIVEN)


def discard(turn: Turn) -> Ask | None:
    return _settle_letters(turn, "DISCARD", Kind.FINISHED)


def _settle_letters(turn: Turn, verb: str, kind: Kind) -> Ask | None:
    names = _names(turn)
    if turn.use.all_letters and turn.maybe(0.2):
        words: list[Word] = ["XDLQ", verb, *names, "ALL", "LIMIT", 20]
        words += ["REASON", "bad"] if turn.maybe(0.3) else []
        if turn.maybe(0.2):
            return Ask(f"XDLQ {verb} DRYRUN", [*words, "DRYRUN"], nothing)

        def learn_all(count: Any) -> Iterable[Fact]:
            return [turn.fact(kind, sure=False, amount=count)] if count else []

        lost = [turn.fact(kind, sure=False, amount=20)]
        return Ask(f"XDLQ {verb} ALL", words, learn_all, lost)
    known = turn.shared.letters
    ids = list({known.popleft() for _ in range(min(3, len(known)))})
    if not ids:
        return None

    def learn(count: Any) -> Iterable[Fact]:
        return turn.applied(kind, ids, count)

    words = ["XDLQ", verb, *names, *ids]
    return Ask(f"XDLQ {verb}", words, learn, turn.unsure(kind, *ids))


# --- the group


def describe(turn: Turn) -> Ask:
    def learn(reply: Any) -> Iterable[Fact]:
        told = named(reply)
        turn.shared.backlog = told["backlog"]
        return [turn.fact(Kind.CURSOR, told["cursor"])]

    return Ask("XGROUP DESCRIBE", ("XGROUP", "DESCRIBE", *_names(turn)), learn)


def explain(turn: Turn) -> Ask:
    held = turn.held(1, keep=True) if turn.maybe(0.8) else []
    words: list[Word] = ["XEXPLAIN", *_names(turn), *(one.id for one in held)]

    def learn(reply: Any) -> Iterable[Fact]:
        told = named(reply)
        if not held:
            return [turn.fact(Kind.CURSOR, told["cursor"])]
        if told["state"] in _PENDING:
            return [turn.fact(Kind.SHOWN, told["id"])]
        if told["state"] == b"dead":
            return [turn.fact(Kind.DEAD, told["id"], amount=told["attempts"])]
        return ()

    return Ask("XEXPLAIN", words, learn)


def seek(turn: Turn) -> Ask:
    sought = [turn.fact(Kind.SOUGHT, sure=False)]
    places: list[tuple[Word, ...]] = [("EARLIEST",), ("LATEST",)]
    if turn.shared.known:
        recent = turn.dice.choice(list(turn.shared.known)[-100:])
        places += [(recent,), ("TIME", entry_id(recent)[0])] * 3
    words = ("XGROUP", "SEEK", *_names(turn), *turn.dice.choice(places))
    return Ask("XGROUP SEEK", words, lambda _reply: sought, sought)


def setid(turn: Turn) -> Ask:
    sought = [turn.fact(Kind.SOUGHT, sure=False)]
    known = list(turn.shared.known)[-100:]
    place = turn.dice.choice(known) if known and turn.maybe(0.8) else "$"
    words = ("XGROUP", "SETID", *_names(turn), place)
    return Ask("XGROUP SETID", words, lambda _reply: sought, sought)


def config(turn: Turn) -> Ask:
    words: list[Word] = ["XGROUP", "CONFIG", "SET", *_names(turn)]
    for pair in turn.dice.sample(_CONFIGURED, 2):
        words += pair
    return Ask("XGROUP CONFIG SET", words, nothing)


def settings(turn: Turn) -> Ask:
    words = ("XGROUP", "CONFIG", "GET", *_names(turn))
    return Ask("XGROUP CONFIG GET", words, nothing)


def pause(turn: Turn) -> Ask:
    return Ask("XGROUP PAUSE", ("XGROUP", "PAUSE", *_names(turn)), nothing)


def resume(turn: Turn) -> Ask:
    return Ask("XGROUP RESUME", ("XGROUP", "RESUME", *_names(turn)), nothing)


def delconsumer(turn: Turn) -> Ask:
    removed = [turn.fact(Kind.REMOVED, sure=False)]
    words = ("XGROUP", "DELCONSUMER", *_names(turn), _consumer(turn))
    return Ask("XGROUP DELCONSUMER", words, lambda _reply: removed, removed)


def createconsumer(turn: Turn) -> Ask:
    words = ("XGROUP", "CREATECONSUMER", *_names(turn), _consumer(turn))
    return Ask("XGROUP CREATECONSUMER", words, nothing)


def destroy(turn: Turn) -> Ask:
    gone = [turn.fact(Kind.DESTROYED, sure=False)]
    words = ("XGROUP", "DESTROY", *_names(turn))
    return Ask("XGROUP DESTROY", words, lambda _reply: gone, gone)


def create(turn: Turn) -> Ask:
    return Ask("XGROUP CREATE", ("XGROUP", "CREATE", *_names(turn), "0"), nothing)


# --- the stream


def delete(turn: Turn) -> Ask | None:
    known = list(turn.shared.known)[-300:]
    if not known:
        return None
    id_, stream = turn.dice.choice(known), turn.use.stream

    def learn(count: Any) -> Iterable[Fact]:
        return [Fact(Kind.DELETED, stream, entry_id(id_))] if count else []

    lost = [Fact(Kind.DELETED, stream, entry_id(id_), sure=False)]
    return Ask("XDEL", ("XDEL", stream, id_), learn, lost)


def trim(turn: Turn) -> Ask | None:
    known = list(turn.shared.known)
    if len(known) < 200:
        return None
    id_, stream = known[-turn.dice.randrange(150, 200)], turn.use.stream
    how = turn.dice.choice("=~")
    trimmed = [Fact(Kind.TRIMMED, stream, entry_id(id_), sure=False)]
    words = ("XTRIM", stream, "MINID", how, id_)
    return Ask("XTRIM", words, lambda _reply: trimmed, trimmed)


def _names(turn: Turn) -> tuple[Word, Word]:
    return turn.use.stream, turn.use.name


def _consumer(turn: Turn) -> str:
    return f"w{turn.dice.randrange(CONSUMERS)}"


MANAGING: Mapping[str, Verb] = {
    verb.__name__: verb
    for verb in (
        *(letters, some_letters, redrive, discard, describe, explain),
        *(seek, setid, config, settings, pause, resume),
        *(delconsumer, createconsumer, destroy, create, delete, trim),
    )
}
