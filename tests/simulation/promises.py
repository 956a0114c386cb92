"""The engine's promises by name, so that a failure says which one was broken.

The first group speaks for itself: each is a sentence of semantics.md. The second
says where the model told another story. When several break at once the first of
the step is told, so what is most particular is looked at first.
"""

from __future__ import annotations

from enum import Enum


class Promise(Enum):
    CURSOR_GAP = "the cursor never stands over a gap"
    CURSOR_BACK = "the cursor never moves back but by a seek or SETID"
    RESERVED_ONCE = "a reserved entry is never given twice"
    CLAIMED_ONCE = "a poll never hands out what another member holds"
    NOT_AFTER_ACK = "nothing finished is handed out"
    NOT_AFTER_DEATH = "nothing dead is handed out"
    DELAY_NOT_EARLY = "a delayed entry is never handed out early"
    DELAY_KEPT = "a delay outlives a restart"
    CAP = "a poll never passes the cap"
    BOUND = "nothing is handed out more often than the bound allows"
    OWED_FIRST = "owed entries go out before new ones, lowest ID first"
    PAYLOAD = "an entry is handed out as it was written"
    RECEIPT_STALE = "a stale, forged or foreign receipt settles nothing"
    LETTER_KEPT = "a dead letter is listed or owed, never neither"
    REDRIVEN_KEPT = "a redriven entry stays in play over a restart"
    AHEAD_KEPT = "what is finished above the head stays finished"
    CLAIMS_KEPT = "a clean stop keeps every claim"
    ATTEMPTS = "every hand-out counts one attempt, and only SILENT takes it back"
    SEEK_VOIDS = "a seek voids every claim"
    WAITER_WOKEN = "who waits is woken by whatever there is for it"
    ARMED = "the timer is set to the earliest deadline"
    STATES = "a pending entry is claimed, delayed or owed: exactly one"
    COUNTS = "the counters equal a recount"
    LAG = "the lag equals a recount"
    IN_USE = "a consumer in use is never dropped"
    UNUSED = "an unused consumer is dropped in time"
    MODE_REDIS = "in mode redis no claim has a deadline"

    NOTHING_CHANGED = "a verb that needs more in memory has changed nothing"
    SAME_JOURNAL = "the journal tells the same state"
    SAME_STREAM = "the stream is the model's"
    SAME_REPLY = "the reply is the model's"
    SAME_HEAD = "the head is the model's"
    SAME_PENDING = "what is pending is the model's"
    SAME_CLAIMS = "who holds what, since and until when, is the model's"
    SAME_DELIVERIES = "the delivery counts are the model's"
    SAME_DEAD = "the dead letters are the model's"
    SAME_STORY = "the history of attempts is the model's"
    SAME_CONSUMERS = "the consumers are the model's"
    SAME_RESERVED = "what is reserved is the model's"
    SAME_SETTINGS = "the settings in force are the model's"


class Broken(AssertionError):
    """A promise was broken."""

    def __init__(self, promise: Promise, told: object) -> None:
        super().__init__(f"BROKEN: {promise.value} [{promise.name}]: {told}")
        self.promise = promise


def require(promise: Promise, holds: bool, told: object = "") -> None:
    if not holds:
        raise Broken(promise, told)


def same(promise: Promise, engine: object, model: object) -> None:
    if engine != model:
        where, one, other = _difference(engine, model)
        raise Broken(promise, f"{where} engine {one!r}, model {other!r}")


def _difference(one: object, other: object) -> tuple[str, object, object]:
    """Where two descriptions differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in (*one, *other):
            if one.get(key) != other.get(key) and key in one and key in other:
                where, *parts = _difference(one[key], other[key])
                return f"{key}: {where}", parts[0], parts[1]
    return "", one, other
