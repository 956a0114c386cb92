"""XINFO: what a stream, its groups and their consumers look like."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ..engine.errors import NotResident
from ..engine.group import Group
from ..engine.handouts import Consumer
from ..engine.ids import MAX_ID, MIN_ID, EntryID, format_id
from ..engine.lag import redis_lag
from ..engine.nodes import decode_fields
from ..engine.stream import Stream
from ..protocol.reply import Entries, Map, Reply, Simple
from .args import Args
from .context import Context
from .errors import NO_SUCH_KEY, CommandError, bad_subcommand, no_group_for_key

_FULL_COUNT = 10

_HELP = (
    b"XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"CONSUMERS <key> <groupname>",
    b"    Show consumers of <groupname>.",
    b"GROUPS <key>",
    b"    Show the stream consumer groups.",
    b"STREAM <key> [FULL [COUNT <count>]",
    b"    Show information about the stream.",
    b"HELP",
    b"    Print this help.",
)

_Pair = tuple[Reply, Reply]


def stream(ctx: Context, args: Args) -> Reply:
    """XINFO STREAM key [FULL [COUNT count]]"""
    words = args.words
    found = _stream(ctx, args.bytes())
    if not args:
        return Map((*_counters(ctx, found), *_summary(found)))
    bad = bad_subcommand(b"xinfo", words[1])
    if args.token() != b"FULL" or args.remaining() not in (0, 2):
        raise bad
    count = _FULL_COUNT
    if args:
        if args.token() != b"COUNT":
            raise bad
        count = args.int()
        if count < 0:
            count = _FULL_COUNT
    # the entries come last: their slices are pinned for a reply that is sent
    rows = [_full_group(group, count or None) for group in _sorted_groups(found)]
    entries = Entries(*found.range(MIN_ID, MAX_ID, count or None, reverse=False))
    return Map(
        (*_counters(ctx, found), (b"entries", entries), (b"groups", rows)),
    )


def groups(ctx: Context, args: Args) -> Reply:
    """XINFO GROUPS key"""
    return [
        Map(
            (
                (b"name", group.name),
                (b"consumers", len(group.consumers)),
                (b"pending", len(group.pending)),
                (b"last-delivered-id", format_id(group.head)),
                (b"entries-read", group.entries_read),
                (b"lag", lag(group)),
            )
        )
        for group in _sorted_groups(_stream(ctx, args.bytes()))
    ]


def consumers(ctx: Context, args: Args) -> Reply:
    """XINFO CONSUMERS key group"""
    key, name = args.bytes(), args.bytes()
    group = _stream(ctx, key).group(name)
    if group is None:
        raise no_group_for_key(key, name)
    now_ms = ctx.now_ms
    return [
        Map(
            (
                (b"name", consumer.name),
                (b"pending", consumer.pending),
                (b"idle", max(now_ms - consumer.seen_ms, 0)),
                (b"inactive", _since(consumer.active_ms, now_ms)),
            )
        )
        for consumer in _sorted_consumers(group)
    ]


def help_(_ctx: Context, _args: Args) -> Reply:
    """XINFO HELP"""
    return [Simple(line) for line in _HELP]


def _stream(ctx: Context, key: bytes) -> Stream:
    found = ctx.keyspace.stream(ctx.client.db, key)
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    return found


def _sorted_groups(found: Stream) -> list[Group]:
    groups = [found.groups[name] for name in sorted(found.groups)]
    missing = [group for group in groups if not group.resident]
    if missing:
        raise NotResident(found, (), missing)
    return groups


def _sorted_consumers(group: Group) -> list[Consumer]:
    return [group.consumers[name] for name in sorted(group.consumers)]


def lag(group: Group) -> int | None:
    """Redis's lag in mode redis; else what polls could return now and later."""
    return group.lag if group.mode.leases else redis_lag(group)


def _since(active_ms: int, now_ms: int) -> int:
    return -1 if active_ms < 0 else max(now_ms - active_ms, 0)


def _counters(ctx: Context, found: Stream) -> tuple[_Pair, ...]:
    """A node counts as one key of Redis's tree; the tree's shape is not copied."""
    nodes, settings = len(found.nodes), ctx.settings
    return (
        (b"length", found.length),
        (b"radix-tree-keys", nodes),
        (b"radix-tree-nodes", max(nodes, 1)),
        (b"last-generated-id", format_id(found.last_id)),
        (b"max-deleted-entry-id", format_id(found.max_deleted_id)),
        (b"entries-added", found.entries_added),
        (b"recorded-first-entry-id", format_id(found.first_id())),
        (b"idmp-duration", settings.stream_idmp_duration),
        (b"idmp-maxsize", settings.stream_idmp_maxsize),
        (b"pids-tracked", 0),
        (b"iids-tracked", 0),
        (b"iids-added", 0),
        (b"iids-duplicates", 0),
    )


def _summary(found: Stream) -> tuple[_Pair, ...]:
    return (
        (b"groups", len(found.groups)),
        (b"first-entry", _entry(found, found.first_id())),
        (b"last-entry", _entry(found, found.top_id())),
    )


def _entry(found: Stream, id_: EntryID) -> Reply:
    entry = found.entry(id_)
    return None if entry is None else [format_id(id_), decode_fields(entry)]


def _full_group(group: Group, count: int | None) -> Reply:
    """``count`` bounds each list of pending entries; None shows all."""
    members = _sorted_consumers(group)
    held = sum(member.pending for member in members)
    return Map(
        (
            (b"name", group.name),
            (b"last-delivered-id", format_id(group.head)),
            (b"entries-read", group.entries_read),
            (b"lag", lag(group)),
            (b"pel-count", len(group.pending)),
            (b"nacked-count", len(group.pending) - held),
            (b"pending", _full_pending(group, islice(group.pending_from(), count))),
            (b"consumers", [_full_consumer(group, m, count) for m in members]),
        )
    )


def _full_pending(group: Group, ids: Iterable[EntryID]) -> Reply:
    """What nobody holds has no consumer and no delivery time."""
    rows: list[Reply] = []
    for id_ in ids:
        handout = group.pending[id_]
        name = handout.consumer.name if handout.consumer else b""
        handed_ms = handout.handed_ms if handout.consumer else 0
        rows.append([format_id(id_), name, handed_ms, group.tally(id_).deliveries])
    return rows


def _full_consumer(group: Group, consumer: Consumer, count: int | None) -> Reply:
    held = group.held_by(consumer)
    return Map(
        (
            (b"name", consumer.name),
            (b"seen-time", consumer.seen_ms),
            (b"active-time", consumer.active_ms),
            (b"pel-count", len(held)),
            (
                b"pending",
                [
                    [
                        format_id(id_),
                        group.pending[id_].handed_ms,
                        group.tally(id_).deliveries,
                    ]
                    for id_ in held[:count]
                ],
            ),
        )
    )
