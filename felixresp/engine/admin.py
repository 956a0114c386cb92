"""What a manager does to a group: seek, settings, pause."""

from __future__ import annotations

from collections.abc import Mapping

from ..config import SETTINGS
from .changes import Configured, Sought
from .errors import WrongMode
from .group import Group
from .ids import EntryID
from .lag import estimate
from .modes import MODES
from .stream import Stream


def seek(group: Group, head: EntryID, now_ms: int) -> None:
    """XGROUP SEEK: new entries are those above ``head``; every claim is void.

    Raises WrongMode, NotResident.
    """
    if not group.mode.leases:
        raise WrongMode
    passed = group.stream.count_until(head)
    read = estimate(group.stream, head)
    group.record(Sought(group, head, read, passed, now_ms))


def oldest(stream: Stream) -> EntryID:
    """The lowest position a group can seek to: just below the first entry."""
    first = stream.first_id()
    return first - 1 if first else stream.last_id


def at_time(stream: Stream, unix_ms: int) -> EntryID:
    """The position before everything added at ``unix_ms`` or later, clamped."""
    position = (max(unix_ms, 0) << 64) - 1
    return max(oldest(stream), min(position, stream.last_id))


def configure(group: Group, settings: Mapping[str, str], now_ms: int) -> None:
    """Give the group settings of its own; names leave out ``group-``.

    Claims that stand keep their deadlines, unless the mode changes. Raises
    InvalidSetting for a bad value, KeyError for a bad name.
    """
    own = dict(group.own_settings)
    for name, text in settings.items():
        own[name] = str(SETTINGS[f"group-{name}"].parse(text))
    _record(group, own, now_ms, paused=group.paused)


def pause(group: Group, now_ms: int, *, paused: bool) -> None:
    """Hold polls back, or let them go on."""
    if paused != group.paused:
        _record(group, dict(group.own_settings), now_ms, paused=paused)


def _record(group: Group, own: dict[str, str], now_ms: int, *, paused: bool) -> None:
    deadline_ms = 0
    if "mode" in own and MODES[own["mode"]] is not group.mode:
        deadline_ms = now_ms + group.visibility_ms
    learned_ms = group.learned_visibility_ms
    group.record(Configured(group, own, paused, learned_ms, deadline_ms))
