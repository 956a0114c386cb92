"""XGROUP SEEK, DESCRIBE, CONFIG, PAUSE, RESUME, and XEXPLAIN: run a group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from ..config import SETTINGS, InvalidSetting, Setting
from ..engine import admin
from ..engine.errors import WrongMode
from ..engine.explain import blocked_by, explain, settle_time, state
from ..engine.group import Group
from ..engine.handouts import Attempt
from ..engine.ids import EntryID, format_id
from ..engine.stream import Stream
from ..protocol.reply import OK, Map, Reply
from .args import Args, entry_id
from .context import Context
from .errors import (
    NOT_LEASED,
    SEEK_OUTSIDE,
    SYNTAX,
    CommandError,
    bad_group_setting,
    unknown_group_setting,
)
from .glob import matches
from .lookup import existing_group, managed_group

_PREFIX = "group-"
_FOR_NEW_GROUPS = ("group-auto-create",)
_SETTINGS = {
    name.removeprefix(_PREFIX): setting
    for name, setting in SETTINGS.items()
    if name.startswith(_PREFIX) and name not in _FOR_NEW_GROUPS
}
_Pair = tuple[bytes, Reply]


def seek(ctx: Context, args: Args) -> Reply:
    """XGROUP SEEK key group <EARLIEST | LATEST | id | TIME unix-time-milliseconds>"""
    group = managed_group(ctx, args.bytes(), args.bytes())
    head = _position(group.stream, args)
    if args:
        raise CommandError(SYNTAX)
    try:
        admin.seek(group, head, ctx.now_ms)
    except WrongMode:
        raise CommandError(NOT_LEASED) from None
    return OK


def pause(ctx: Context, args: Args) -> Reply:
    """XGROUP PAUSE key group"""
    group = managed_group(ctx, args.bytes(), args.bytes())
    admin.pause(group, ctx.now_ms, paused=True)
    return OK


def resume(ctx: Context, args: Args) -> Reply:
    """XGROUP RESUME key group"""
    admin.pause(
        managed_group(ctx, args.bytes(), args.bytes()), ctx.now_ms, paused=False
    )
    return OK


def config(ctx: Context, args: Args) -> Reply:
    """XGROUP CONFIG <GET | SET> key group [pattern [pattern ...] | name value [name value ...]]"""  # noqa: E501
    verb = args.token()
    if args.remaining() < 2 or verb not in (b"GET", b"SET"):
        raise CommandError(SYNTAX)
    group = managed_group(ctx, args.bytes(), args.bytes())
    if verb == b"GET":
        return Map(tuple(_settings(group, [w.lower() for w in args.rest()])))
    if not args or args.remaining() % 2:
        raise CommandError(SYNTAX)
    values: dict[str, str] = {}
    while args:
        word, value = args.bytes(), args.bytes()
        name = word.decode("latin-1").lower().removeprefix(_PREFIX)
        setting = _SETTINGS.get(name)
        if setting is None:
            raise unknown_group_setting(word)
        values[name] = _checked(word, setting, value)
    admin.configure(group, values, ctx.now_ms)
    return OK


def describe(ctx: Context, args: Args) -> Reply:
    """XGROUP DESCRIBE key group"""
    group = managed_group(ctx, args.bytes(), args.bytes())
    ctx.at_once(partial(settle_time, group, ctx.now_ms))
    unread = ctx.at_once(lambda: group.unread)
    claimed = group.in_flight - len(group.delayed)
    deadline_ms = group.next_deadline()
    pairs: list[_Pair] = [
        (b"head", format_id(group.head)),
        (b"cursor", format_id(group.cursor)),
        (b"tail", format_id(group.stream.last_id)),
        (b"lag", unread + len(group.owed)),
        (b"backlog", unread + len(group.pending)),
        (b"in-flight", group.in_flight),
        (b"claimed", claimed),
        (b"delayed", len(group.delayed)),
        (b"owed", len(group.owed)),
        (b"dead-letters", len(group.dead_letters.listed)),
        (b"redriven", len(group.dead_letters.redriven)),
        (b"oldest-pending", _oldest_pending(ctx, group)),
        (b"next-deadline", deadline_ms),
        (b"blocked-by", list(blocked_by(group))),
        (b"polls-capped", group.polls_capped),
        (b"skipped", group.skipped),
        (b"lapsed-while-connected", group.lapsed_connected),
        (b"mode", group.mode.name.encode()),
        (b"paused", int(group.paused)),
        (b"visibility-ms", group.visibility_ms),
        (b"visibility-learned", int(_is_learned(group))),
        (b"settings", Map(tuple(_settings(group, ())))),
    ]
    return Map(tuple(pairs))


def xexplain(ctx: Context, args: Args) -> Reply:
    """XEXPLAIN key group [id]"""
    if args.remaining() > 3:
        raise CommandError(SYNTAX)
    key, name = args.bytes(), args.bytes()
    id_ = entry_id(args.bytes()) if args else None
    group = existing_group(ctx, key, name)
    ctx.at_once(partial(settle_time, group, ctx.now_ms))
    if id_ is None:
        return Map(tuple(_explain_cursor(ctx, group)))
    return Map(tuple(_explain_entry(ctx, group, id_)))


def _position(stream: Stream, args: Args) -> EntryID:
    word = args.bytes()
    match word.upper():
        case b"EARLIEST":
            return admin.oldest(stream)
        case b"LATEST":
            return stream.last_id
        case b"TIME" if args:
            return admin.at_time(stream, args.int())
    position = entry_id(word)
    if not admin.oldest(stream) <= position <= stream.last_id:
        raise CommandError(SEEK_OUTSIDE)
    return position


def _checked(word: bytes, setting: Setting, value: bytes) -> str:
    text = value.decode("utf-8", "surrogateescape")
    try:
        return str(setting.parse(text))
    except InvalidSetting as exc:
        reason = str(exc).encode("utf-8", "surrogateescape")
        raise bad_group_setting(word, reason) from None


def _settings(group: Group, patterns: Sequence[bytes]) -> list[_Pair]:
    shown: list[_Pair] = []
    for name, setting in _SETTINGS.items():
        word = name.encode()
        if patterns and not any(matches(pattern, word) for pattern in patterns):
            continue
        value = str(getattr(group.settings, setting.attribute))
        if name == "mode":
            value = group.mode.name
        shown.append((word, value.encode()))
    return shown


def _is_learned(group: Group) -> bool:
    return group.learned_visibility_ms > group.settings.group_visibility_timeout_ms


def _oldest_pending(ctx: Context, group: Group) -> Reply:
    """The lowest pending entry: what the cursor waits for, or redriven."""
    id_ = next(group.pending_from(), None)
    if id_ is None:
        return None
    first_ms = group.tally(id_).first_ms
    return Map(
        (
            (b"id", format_id(id_)),
            (b"age", max(ctx.now_ms - first_ms, 0) if first_ms else 0),
            (b"state", state(group, id_)),
            (b"holder", group.last_consumer(id_)),
            (b"attempts", group.tally(id_).attempts),
        )
    )


def _explain_cursor(ctx: Context, group: Group) -> list[_Pair]:
    """Why it stands where it stands: the first entry above it that is pending."""
    gap = next(group.pending_from(group.cursor + 1), None)
    waits = gap is not None and (gap <= group.head or group.cursor < group.head)
    waiting = 0
    if waits and gap is not None:
        above = islice(group.pending_from(gap), len(group.pending))
        waiting = sum(1 for id_ in above if id_ <= group.head)
    pairs: list[_Pair] = [
        (b"cursor", format_id(group.cursor)),
        (b"head", format_id(group.head)),
        (b"tail", format_id(group.stream.last_id)),
        (b"pending-above-cursor", waiting),
        (b"blocked-by", list(blocked_by(group))),
    ]
    if waits and gap is not None:
        pairs.append((b"waits-for", Map(tuple(_explain_entry(ctx, group, gap)))))
    else:
        pairs.append((b"waits-for", None))
    return pairs


def _explain_entry(ctx: Context, group: Group, id_: EntryID) -> list[_Pair]:
    found = ctx.at_once(partial(explain, group, id_))
    present = ctx.at_once(partial(group.stream.contains, id_))
    attempts: list[Reply] = [Map(tuple(_attempt(a))) for a in found.story]
    if found.held_since_ms:
        now = (
            (b"consumer", found.consumer),
            (b"began", found.held_since_ms),
            (b"lasted", max(ctx.now_ms - found.held_since_ms, 0)),
            (b"ended", b"standing"),
            (b"reason", b""),
        )
        attempts.append(Map(now))
    return [
        (b"id", format_id(id_)),
        (b"state", found.state),
        (b"present", int(present)),
        (b"attempts", found.attempts),
        (b"deliveries", found.deliveries),
        (b"first-delivered", found.first_ms),
        (b"consumer", found.consumer),
        (b"user", found.user),
        (b"until", found.until_ms),
        (b"last-reason", found.reason),
        (b"history", attempts),
    ]


def _attempt(attempt: Attempt) -> list[_Pair]:
    return [
        (b"consumer", attempt.consumer),
        (b"began", attempt.began_ms),
        (b"lasted", max(attempt.ended_ms - attempt.began_ms, 0)),
        (b"ended", attempt.how),
        (b"reason", attempt.reason),
    ]
