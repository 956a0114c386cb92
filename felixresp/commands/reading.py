"""XREAD and XREADGROUP: several streams in one request, waiting where asked to.

Every key, group and ID is checked before the first entry is handed out. A key
that has handed something out cannot be run again, so from then on missing nodes
are read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from ..engine.group import Group
from ..engine.ids import MAX_ID, MIN_ID, EntryID, format_id
from ..engine.poll import poll
from ..engine.stream import Stream
from ..engine.takeover import history
from ..protocol.reply import NIL_ARRAY, Entries, Reply, Streams
from .args import INT64_MAX, Args, entry_id
from .context import UNCOMMON, Answer, Block, Context, Uncommon
from .errors import (
    MISSING_GROUP,
    NEW_ID_OUTSIDE_GROUP,
    SYNTAX,
    TIMEOUT_NEGATIVE,
    TIMEOUT_NOT_AN_INTEGER,
    TIMEOUT_OUT_OF_RANGE,
    UNBALANCED_XREAD,
    UNBALANCED_XREADGROUP,
    CommandError,
    meaningless_id,
    no_group_to_read,
    only_xreadgroup,
)
from .lookup import member_of

_NEW = MAX_ID  # what > means, and therefore the highest ID too, as in Redis
_ALL = 2**63  # without COUNT
_COMMON_WORDS = 11
_DIGITS_MAX = 15  # so that no number is out of range


@dataclass(slots=True)
class _Request:
    """``count`` 0 and ``block_ms`` None where they are not given."""

    keys: Sequence[bytes] = ()
    ids: Sequence[bytes] = ()
    count: int = 0
    block_ms: int | None = None
    group: bytes | None = None
    consumer: bytes = b""
    no_ack: bool = False


def xread(ctx: Context, args: Args) -> Answer:
    """XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] <id | $ | +> [<id | $ | +> ...]"""  # noqa: E501
    request = _parse(ctx, args, for_group=False)
    db, frozen = ctx.client.db, ctx.frozen_ids
    wanted: list[tuple[bytes, Stream | None, EntryID]] = []
    for at, (key, word) in enumerate(zip(request.keys, request.ids, strict=True)):
        if frozen is not None and not isinstance(ctx.keyspace.get(db, key), Stream):
            stream = None  # who waits goes on waiting, whatever the key holds now
        else:
            stream = ctx.keyspace.stream(db, key)
        if word == b"$":
            last_id = stream.last_id if stream else 0
            after = frozen[at] if frozen else last_id
        elif word == b"+":
            after = _before_last(stream)
        elif word == b">":
            raise CommandError(NEW_ID_OUTSIDE_GROUP)
        else:
            after = entry_id(word)
        wanted.append((key, stream, after))

    replies: list[tuple[bytes, Reply]] = []
    for key, stream, after in wanted:
        if stream is None or after >= stream.last_id:
            continue
        step = partial(_read_from, stream, after + 1, request.count or None)
        entries = ctx.at_once(step) if replies else step()
        if entries.count:
            replies.append((key, entries))
    if replies:
        return Streams(replies)
    return _wait(ctx, request, frozen_ids=[after for _, _, after in wanted])


def xreadgroup(ctx: Context, args: Args) -> Answer:
    """XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]"""  # noqa: E501
    request = _parse_common(args.words) or _parse(ctx, args, for_group=True)
    keys, name = request.keys, request.group
    assert name is not None
    if len(keys) == 1 and request.ids[0] == b">":  # by far the most common shape
        group = _group(ctx, keys[0], name)
        room_bytes = group.settings.group_max_poll_bytes
        entries = _hand_out(ctx, request, group, room_bytes)
        return Streams(((keys[0], entries),)) if entries.count else _wait(ctx, request)
    starts: list[EntryID] = []
    for key, word in zip(keys, request.ids, strict=True):
        _find_group(ctx, key, name)
        if word in (b"$", b"+"):
            raise meaningless_id(word)
        starts.append(_NEW if word == b">" else entry_id(word))

    groups = [_group(ctx, key, name) for key in keys]
    replies: list[tuple[bytes, Reply]] = []
    read_bytes = 0
    for key, group, after in zip(keys, groups, starts, strict=True):
        room_bytes = group.settings.group_max_poll_bytes - read_bytes
        if after == _NEW:
            step = partial(_hand_out, ctx, request, group, room_bytes)
        else:
            step = partial(_read_again, ctx, request, group, room_bytes, after)
        entries = ctx.at_once(step) if replies else step()
        if entries.count or after != _NEW:
            replies.append((key, entries))
            read_bytes += sum(map(len, entries.parts))  # type: ignore[arg-type]
    return Streams(replies) if replies else _wait(ctx, request)


def xreadgroup_plain(ctx: Context, words: Sequence[bytes]) -> Answer | Uncommon:
    """XREADGROUP GROUP group consumer COUNT count BLOCK milliseconds STREAMS key >"""
    request = _parse_common(words)
    if request is None or request.ids[0] != b">":
        return UNCOMMON
    key = request.keys[0]
    stream = ctx.keyspace.get(ctx.client.db, key)
    group = None
    if type(stream) is Stream and request.group is not None:
        group = stream.group(request.group)
    if group is None:
        return UNCOMMON
    entries = _hand_out(ctx, request, group, group.settings.group_max_poll_bytes)
    return Streams(((key, entries),)) if entries.count else _wait(ctx, request)


def _group(ctx: Context, key: bytes, name: bytes) -> Group:
    stream, group = _find_group(ctx, key, name)
    return group or ctx.keyspace.create_group(stream, name, MIN_ID, None)


def _find_group(ctx: Context, key: bytes, name: bytes) -> tuple[Stream, Group | None]:
    """The group is None where it is to be made."""
    stream = ctx.keyspace.stream(ctx.client.db, key)
    group = stream.group(name) if stream else None
    if stream is None or (group is None and not _makes_groups(ctx)):
        raise no_group_to_read(key, name)
    return stream, group


def _makes_groups(ctx: Context) -> bool:
    """A group that was destroyed is not brought back by who waited for it."""
    return ctx.settings.group_auto_create == "yes" and not ctx.again


def _read_from(stream: Stream, start: EntryID, count: int | None) -> Entries:
    return Entries(*stream.range(start, MAX_ID, count, reverse=False))


def _hand_out(ctx: Context, request: _Request, group: Group, bytes_max: int) -> Entries:
    """``>``: owed and new entries."""
    member = member_of(ctx, group, request.consumer)
    if bytes_max <= 0:
        return Entries(0, ())
    polled = poll(
        group,
        member,
        ctx.now_ms,
        count=fair_share(ctx, group, request.count or _ALL),
        client_id=ctx.client.id,
        bytes_max=bytes_max,
        no_ack=request.no_ack,
    )
    return Entries(len(polled.entries), polled.entries)


def fair_share(ctx: Context, group: Group, count: int) -> int:
    """How many of ``count`` a client that waited may have: something is left for
    everyone who waits behind it."""
    if ctx.waiters_left <= 1 or not group.mode.shares:
        return count
    available = len(group.owed) + group.unread
    return min(count, -(-available // ctx.waiters_left))


def _read_again(
    ctx: Context, request: _Request, group: Group, bytes_max: int, after: EntryID
) -> Entries:
    """The consumer's own claims; a deleted entry shows as its ID and nil."""
    member = member_of(ctx, group, request.consumer)
    if bytes_max <= 0:
        return Entries(0, ())
    read = history(
        group,
        member,
        after,
        ctx.now_ms,
        count=request.count or _ALL,
        client_id=ctx.client.id,
        bytes_max=bytes_max,
    )
    nil = b"*-1\r\n" if ctx.client.resp == 2 else b"_\r\n"
    parts = [_deleted(id_, nil) if entry is None else entry for id_, entry in read]
    return Entries(len(parts), parts)


def _deleted(id_: EntryID, nil: bytes) -> bytes:
    text = format_id(id_)
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, nil)


def _wait(
    ctx: Context, request: _Request, frozen_ids: Sequence[EntryID] | None = None
) -> Answer:
    """Nothing to read: wait, where the request may."""
    if request.block_ms is None or ctx.in_multi:
        return NIL_ARRAY
    deadline_ms = ctx.deadline_ms  # of the first time it was run
    if deadline_ms is None and request.block_ms:
        deadline_ms = ctx.now_ms + request.block_ms
    return Block(request.keys, deadline_ms, frozen_ids, request.group, request.no_ack)


def _before_last(stream: Stream | None) -> EntryID:
    """Where a reader stands that wants the last entry only: ``+``."""
    if stream is None:
        return 0
    return stream.top_id() - 1 if stream.length else stream.last_id


def _parse_common(words: Sequence[bytes]) -> _Request | None:
    """XREADGROUP GROUP group consumer COUNT count BLOCK milliseconds STREAMS key id,
    in just this order; None leaves it to the general way."""
    if (
        len(words) != _COMMON_WORDS
        or words[8] != b"STREAMS"
        or words[6] != b"BLOCK"
        or words[4] != b"COUNT"
        or words[1] != b"GROUP"
    ):
        return None
    count, timeout = words[5], words[7]
    if len(count) > _DIGITS_MAX or len(timeout) > _DIGITS_MAX:
        return None
    numbers = _numbers(count, timeout)
    if numbers is None:
        return None
    return _Request(words[9:10], words[10:], numbers[0], numbers[1], words[2], words[3])


@lru_cache
def _numbers(count: bytes, timeout: bytes) -> tuple[int, int] | None:
    for word in (count, timeout):
        if not word.isdigit() or (word[0] == ord("0") and len(word) > 1):
            return None
    return int(count), int(timeout)


def _parse(ctx: Context, args: Args, *, for_group: bool) -> _Request:
    request = _Request()
    while args:
        word = args.token()
        left = args.remaining()
        if word == b"STREAMS" and left:
            words = args.rest()
            half, odd = divmod(len(words), 2)
            if odd:
                unbalanced = UNBALANCED_XREADGROUP if for_group else UNBALANCED_XREAD
                raise CommandError(unbalanced)
            request.keys, request.ids = words[:half], words[half:]
        elif word == b"COUNT" and left:
            request.count = max(args.int(), 0)
        elif word == b"BLOCK" and left:
            request.block_ms = _timeout(ctx, args)
        elif word == b"GROUP" and left >= 2:
            _only(for_group, word)
            request.group, request.consumer = args.bytes(), args.bytes()
        elif word == b"NOACK":
            _only(for_group, word)
            request.no_ack = True
        elif word == b"CLAIM" and left and not for_group:
            raise only_xreadgroup(word)
        else:
            raise CommandError(SYNTAX)
    if not request.keys:
        raise CommandError(SYNTAX)
    if for_group and request.group is None:
        raise CommandError(MISSING_GROUP)
    return request


def _only(for_group: bool, option: bytes) -> None:
    if not for_group:
        raise only_xreadgroup(option)


def _timeout(ctx: Context, args: Args) -> int:
    timeout_ms = args.int(error=TIMEOUT_NOT_AN_INTEGER)
    if timeout_ms < 0:
        raise CommandError(TIMEOUT_NEGATIVE)
    if timeout_ms > INT64_MAX - ctx.now_ms:
        raise CommandError(TIMEOUT_OUT_OF_RANGE)
    return timeout_ms
