"""The groups of the run with every verb: how each is set up, used and judged.

A group whose cursor is never sought, or whose settings stay, promises more than
one where everything is done to it: so each kind of use has a group of its own.
"""

from __future__ import annotations

from tests.crash.facts import Rules
from tests.crash.turns import Use

KEPT, CUT = "verbs:kept", "verbs:cut"  # from CUT entries are deleted and trimmed

_READ = {"read": 16, "read_block": 3, "history": 3, "pending": 2}
_POLL = {"poll": 16, "poll_block": 3, "poll_visibility": 2, "poll_reclaim": 1}
_SETTLE = {"ack": 40, "ack_receipt": 16, "silent": 3, "fail": 8, "extend": 6}
_TAKE = {"claim": 3, "claim_justid": 2, "autoclaim": 2}
_LETTERS = {"letters": 4, "some_letters": 1, "redrive": 3, "discard": 1}
_LOOK = {"describe": 5, "explain": 5, "settings": 1}
_MANAGE = {"pause": 0.3, "resume": 1.5, "delconsumer": 0.7, "createconsumer": 0.5}
_ALL = _READ | _POLL | _SETTLE | _TAKE | _LETTERS | _LOOK | _MANAGE
_CUT = {"delete": 0.5, "trim": 0.5}

USES = (
    Use(
        KEPT,
        "plain",
        _ALL | {"fatal": 1, "read_noack": 0.5},
        Rules(claims_stand=True),
        ("backoff", "fixed 300", "max-attempts", 0),
        backoff_ms=300,
    ),
    Use(
        KEPT,
        "bound",
        {**_ALL, "silent": 0, "fail": 12, "fatal": 2},
        Rules(attempts_max=3),
        ("visibility-timeout-ms", 250, "max-attempts", 3),
        visibility_ms=250,
        all_letters=True,
    ),
    Use(
        KEPT,
        "durable",
        _READ | _POLL | _SETTLE | _LOOK,
        Rules(claims_stand=True, durable_claims=True),
        ("visibility-timeout-ms", 3000, "max-attempts", 0, "durable-claims", "yes"),
        visibility_ms=3000,
    ),
    Use(
        KEPT,
        "redis",
        {
            **(_READ | _TAKE | _LOOK),
            **{"ack": 40, "silent": 2, "fail": 2, "fatal": 1, "autoclaim": 6},
        },
        Rules(once=True),
        ("mode", "redis"),
        leases=False,
    ),
    Use(
        CUT,
        "sought",
        _ALL | _CUT | {"fatal": 2, "seek": 0.7, "setid": 0.5, "claim_force": 2},
        settings=("max-attempts", 4),
        forces=True,
        all_letters=True,
    ),
    Use(
        CUT,
        "configured",
        _ALL | _CUT | {"fatal": 2, "read_noack": 1, "config": 4},
        all_letters=True,
    ),
    Use(
        CUT,
        "fleeting",
        _ALL | {"fatal": 2, "destroy": 0.5, "create": 2},
        all_letters=True,
        comes_and_goes=True,
    ),
)
