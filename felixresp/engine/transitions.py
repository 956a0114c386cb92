"""The delivery machine of a leasing group as one table: event x state.

Every cell is a step or a refusal: then the verb answers 0 or nothing, and
nothing of the entry changes. The table is what the verbs must do; a test takes a
group through all of it, and the diagram in docs/semantics.md is drawn from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NEW = "new"
CLAIMED = "claimed"
RESERVED = "reserved"  # claimed, and kept for the connection that reclaimed it
DELAYED = "delayed"
OWED = "owed"
REDRIVEN = "redriven"  # owed, and no seek forgets it
DEAD = "dead"  # its attempts were spent
REJECTED = "rejected"  # dead too: a consumer gave it up
FINISHED = "finished"
ABSENT = "absent"  # gone before the group reached it

STATES = (
    NEW,
    CLAIMED,
    RESERVED,
    DELAYED,
    OWED,
    REDRIVEN,
    DEAD,
    REJECTED,
    FINISHED,
)


@dataclass(frozen=True, slots=True)
class Step:
    """Where the entry is then.

    ``spent``: where the bound leaves it no further attempt. ``gone``: where the
    stream does not have it any more. Empty: as for any other entry.
    """

    to: str  # empty: refused
    attempts: str = ""  # "+ 1", "- 1", "= 0" or "= 1"; empty: as before
    spent: str = ""
    gone: str = ""


Row = Mapping[str, Step]

_HANDED_OUT = Step(CLAIMED, "+ 1", spent=DEAD, gone=FINISHED)
_FIRST = Step(CLAIMED, "= 1")
_OVER = Step(OWED, spent=DEAD, gone=FINISHED)  # a lapse, a failure
_UNJUDGED = Step(OWED)
_DONE = Step(FINISHED)
_GIVEN_UP = Step(REJECTED, gone=FINISHED)
_BACK_IN_PLAY = Step(OWED, "= 0")
_REDRIVEN = Step(REDRIVEN, "= 0")
_FORCED = Step(CLAIMED, "= 1")


def _no(*states: str, gone: str = "") -> Row:
    return dict.fromkeys(states, Step("", gone=gone))


def _stays(*states: str, gone: str = "") -> Row:
    """The same state, but the deadline or the counts are others."""
    return {state: Step(state, gone=gone) for state in states}


def _all(step: Step, *states: str) -> Row:
    return dict.fromkeys(states, step)


_HELD = CLAIMED, RESERVED
_AGAIN = OWED, REDRIVEN
_LEFT = DEAD, REJECTED, FINISHED

# fmt: off
TABLE: Mapping[str, Row] = {
    # hand-outs
    "poll": {NEW: _FIRST, **_all(_HANDED_OUT, *_AGAIN), **_no(*_HELD, DELAYED, *_LEFT)},
    "poll NOACK": {
        NEW: _DONE, **_all(Step(FINISHED, spent=DEAD), *_AGAIN),
        **_no(*_HELD, DELAYED, *_LEFT)},
    "poll by the reserving connection": {
        NEW: _FIRST, **_all(_HANDED_OUT, RESERVED, *_AGAIN),
        **_no(CLAIMED, DELAYED, *_LEFT)},
    "poll RECLAIM by its member": {
        NEW: _FIRST, **_all(_HANDED_OUT, *_HELD, *_AGAIN), **_no(DELAYED, *_LEFT)},
    "poll RECLAIM cut short": {
        CLAIMED: Step(RESERVED), **_stays(RESERVED),
        **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "history on another connection": {
        CLAIMED: Step(CLAIMED, "+ 1", spent=DEAD, gone=CLAIMED),
        **_no(NEW, RESERVED, DELAYED, *_AGAIN, *_LEFT)},
    "reply lost": {
        **_all(Step(OWED, "- 1"), *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    # taking over
    "XCLAIM by its holder": {
        **_stays(*_HELD, gone=FINISHED), **_all(_HANDED_OUT, *_AGAIN),
        **_no(DELAYED, gone=FINISHED), **_no(NEW, *_LEFT)},
    "XCLAIM by another": {
        **_all(_HANDED_OUT, *_HELD, *_AGAIN), **_no(DELAYED, gone=FINISHED),
        **_no(NEW, *_LEFT)},
    "XCLAIM FORCE by another": {
        **_all(_HANDED_OUT, *_HELD, DELAYED, *_AGAIN), **_all(_FORCED, NEW, *_LEFT)},
    "XAUTOCLAIM by another": {
        **_all(_HANDED_OUT, *_HELD, *_AGAIN), **_no(NEW, DELAYED, *_LEFT)},
    # settling
    "ack": {
        **_all(_DONE, *_HELD, DELAYED, *_AGAIN, DEAD), **_no(NEW, REJECTED, FINISHED)},
    "ack by its receipt": {
        **_all(_DONE, *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "ack by a stale receipt": _no(*STATES),
    "XEXTEND": {**_stays(*_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "XEXTEND by a stale receipt": _no(*STATES),
    "nack SILENT": {
        **_all(Step(OWED, "- 1", gone=FINISHED), *_HELD),
        **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "nack FAIL": {**_all(_OVER, *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "nack FAIL with a delay": {
        **_all(Step(DELAYED, spent=DEAD, gone=FINISHED), *_HELD),
        **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "nack FAIL FORCE": {
        **_all(_OVER, *_HELD), **_no(DELAYED, *_AGAIN),
        **_all(_REDRIVEN, DEAD, REJECTED), **_all(_BACK_IN_PLAY, NEW, FINISHED)},
    "nack FATAL": {**_all(_GIVEN_UP, *_HELD, DELAYED, *_AGAIN), **_no(NEW, *_LEFT)},
    "nack by a stale receipt": _no(*STATES),
    # time, connections, restarts
    "lapse": {**_all(_OVER, *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "delay over": {DELAYED: _UNJUDGED, **_no(NEW, *_HELD, *_AGAIN, *_LEFT)},
    "connections closed": {
        RESERVED: Step(CLAIMED), **_no(NEW, CLAIMED, DELAYED, *_AGAIN, *_LEFT)},
    "disconnect grace over": {
        **_all(Step(OWED, gone=FINISHED), *_HELD),
        **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "consumer removed": {
        **_all(_UNJUDGED, *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "crash": {**_all(_UNJUDGED, *_HELD), **_no(NEW, DELAYED, *_AGAIN, *_LEFT)},
    "clean restart": {
        RESERVED: Step(CLAIMED), **_no(NEW, CLAIMED, DELAYED, *_AGAIN, *_LEFT)},
    # managing
    "redrive": {
        **_all(_REDRIVEN, DEAD, REJECTED),
        **_no(NEW, *_HELD, DELAYED, *_AGAIN, FINISHED)},
    "discard": {
        **_all(_DONE, DEAD, REJECTED), **_no(NEW, *_HELD, DELAYED, *_AGAIN, FINISHED)},
    "seek below it": {
        **_all(Step(NEW, gone=ABSENT), *_HELD, DELAYED, OWED), FINISHED: Step(NEW),
        **_no(NEW, REDRIVEN, DEAD, REJECTED)},
    "seek beyond it": {
        **_all(_DONE, NEW, *_HELD, DELAYED, OWED), **_no(REDRIVEN, *_LEFT)},
    "SETID below it": {
        FINISHED: Step(NEW), **_no(NEW, *_HELD, DELAYED, *_AGAIN, DEAD, REJECTED)},
    "SETID beyond it": {NEW: _DONE, **_no(*_HELD, DELAYED, *_AGAIN, *_LEFT)},
}
# fmt: on
