"""The two modes of a group: what is a lease's rule and what is Redis's.

A mode is data that the verbs ask; nothing else knows which mode a group has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from ..config import SETTINGS, Settings, Value

_NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Mode:
    """``lifted`` are the settings that do not count in this mode."""

    name: str
    leases: bool  # claims lapse, attempts are bound, the dead are listed
    redelivers: bool  # ``>`` hands out owed entries
    shares: bool  # a woken waiter leaves something for those behind it
    by_user: bool  # a claim belongs to the user too
    durable_claims: bool  # a delivery is durable before its reply
    lifted: Mapping[str, Value] = field(default_factory=dict)


LEASE = Mode(
    "lease",
    leases=True,
    redelivers=True,
    shares=True,
    by_user=True,
    durable_claims=False,
)
REDIS = Mode(
    "redis",
    leases=False,
    redelivers=False,
    shares=False,
    by_user=False,
    durable_claims=True,
    lifted={
        "group_max_attempts": 0,
        "group_max_in_flight": _NO_LIMIT,
        "group_max_poll_entries": _NO_LIMIT,
        "group_max_poll_bytes": _NO_LIMIT,
        "group_max_dead_letters": _NO_LIMIT,
        "group_max_acked_ahead_ranges": _NO_LIMIT,
        "group_learn_visibility": "no",
        "group_consumer_expiry_ms": _NO_LIMIT,
    },
)

MODES: Mapping[str, Mode] = {mode.name: mode for mode in (LEASE, REDIS)}


class _GroupSettings:
    """Has the attributes of Settings: a group's own, else the server's of now."""

    def __init__(self, server: Settings, own: Mapping[str, Value]) -> None:
        self.__dict__.update(own)
        self._server = server

    def __getattr__(self, name: str) -> Value:
        return cast(Value, getattr(self._server, name))


def settings_for(server: Settings, own: Mapping[str, str], mode: Mode) -> Settings:
    """The settings in force in a group; ``own`` names leave out ``group-``."""
    if not own and not mode.lifted:
        return server
    values: dict[str, Value] = {}
    for name, text in own.items():
        row = SETTINGS[f"group-{name}"]
        values[row.attribute] = row.parse(text)
    return cast(Settings, _GroupSettings(server, {**values, **mode.lifted}))
