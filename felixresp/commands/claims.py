"""XACK, XPENDING, XCLAIM, XAUTOCLAIM: settle, show and take over what is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from ..engine.claims import learn
from ..engine.group import Group
from ..engine.handouts import Consumer
from ..engine.ids import EntryID, InvalidID, format_id, parse_id
from ..engine.settle import ack
from ..engine.stream import Stream
from ..engine.takeover import ClaimOptions, autoclaim, claim
from ..protocol.reply import NIL_ARRAY, Entries, Reply
from .args import INT64_MAX, Args, integer
from .context import UNCOMMON, Context, Uncommon
from .errors import (
    COUNT_NOT_POSITIVE,
    COUNT_TOO_HIGH,
    SYNTAX,
    CommandError,
    bad_min_idle,
    bad_xclaim_option,
    bad_xclaim_value,
)
from .lookup import existing_group, find_group, member_of
from .ranges import end_id, start_id
from .receipts import settled_mark, standing_ids

_ACK_WORDS_MIN = 4
_AUTOCLAIM_COUNT = 100
_COUNT_BYTES = 16  # Redis sets aside so many for each of COUNT
_MEMORY_BYTES_MAX = 2**47
_PENDING_WORDS_MAX = 9


def xack(ctx: Context, args: Args) -> Reply:
    """XACK key group <id | receipt> [<id | receipt> ...]"""
    words = args.words
    group = find_group(ctx, words[1], words[2])
    if group is None:
        return 0
    marks = [settled_mark(word) for word in words[3:]]
    return ack(group, standing_ids(group, marks, ctx.now_ms))


def xack_plain(ctx: Context, words: Sequence[bytes]) -> Reply | Uncommon:
    """XACK key group id [id ...], of a group that is there."""
    if len(words) < _ACK_WORDS_MIN:
        return UNCOMMON
    stream = ctx.keyspace.get(ctx.client.db, words[1])
    group = stream.group(words[2]) if type(stream) is Stream else None
    if group is None:
        return UNCOMMON
    try:
        ids = [parse_id(word) for word in words[3:]]
    except InvalidID:
        return UNCOMMON
    return ack(group, ids)


def xpending(ctx: Context, args: Args) -> Reply:
    """XPENDING key group [[IDLE min-idle-time] start end count [consumer]]"""
    key, name = args.bytes(), args.bytes()
    if not args:
        return _summary(existing_group(ctx, key, name))
    min_idle_ms = 0
    if len(args.words) > _PENDING_WORDS_MAX:
        raise CommandError(SYNTAX)
    if args.peek().upper() == b"IDLE":
        args.bytes()
        min_idle_ms = args.int()
    if args.remaining() < 3:
        raise CommandError(SYNTAX)
    start, end, count = args.bytes(), args.bytes(), args.int()
    first, last = start_id(start), end_id(end)
    group = existing_group(ctx, key, name)
    ids = group.pending_from(first)
    if args:
        ids = _held_from(group, args.bytes(), first)
    shown: list[Reply] = []
    for id_ in ids:
        if id_ > last or len(shown) >= count:
            break
        row = _pending_row(ctx, group, id_, min_idle_ms)
        if row is not None:
            shown.append(row)
    return shown


def xclaim(ctx: Context, args: Args) -> Reply:
    """XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID last-id]"""  # noqa: E501
    group = existing_group(ctx, args.bytes(), args.bytes())
    name = args.bytes()
    min_idle_ms = max(args.int(error=bad_min_idle(b"XCLAIM")), 0)
    ids = _leading_ids(args)
    options = _claim_options(ctx, args, min_idle_ms)
    member = member_of(ctx, group, name)
    found: list[dict[EntryID, bytes]] = []
    for some in _rounds(ids):
        where = ctx.now_ms, ctx.client.id
        step = partial(claim, group, member, some, options, *where)
        taken = ctx.at_once(step) if found else step()
        found.append(dict(zip(taken.ids, taken.entries, strict=True)))
    times: Counter[EntryID] = Counter()
    shown: list[EntryID] = []
    entries: list[bytes] = []
    for id_ in ids:
        claimed = found[times[id_]]
        times[id_] += 1
        if id_ in claimed:
            shown.append(id_)
            entries.append(claimed[id_])
    return _claimed(shown, entries, just_id=options.just_id)


def xautoclaim(ctx: Context, args: Args) -> Reply:
    """XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]"""
    key, group_name, name = args.bytes(), args.bytes(), args.bytes()
    min_idle_ms = max(args.int(error=bad_min_idle(b"XAUTOCLAIM")), 0)
    start = start_id(args.bytes())
    count, just_id = _AUTOCLAIM_COUNT, False
    while args:
        option = args.token()
        if option == b"COUNT" and args:
            count = args.int(error=COUNT_NOT_POSITIVE)
            if not 0 < count <= INT64_MAX // _COUNT_BYTES:
                raise CommandError(COUNT_NOT_POSITIVE)
        elif option == b"JUSTID":
            just_id = True
        else:
            raise CommandError(SYNTAX)
    group = existing_group(ctx, key, group_name)
    if count * _COUNT_BYTES > _MEMORY_BYTES_MAX:
        raise CommandError(COUNT_TOO_HIGH)

    member = member_of(ctx, group, name)
    learn(group, min_idle_ms, ctx.now_ms)
    taken = autoclaim(
        group,
        member,
        start,
        ctx.now_ms,
        min_idle_ms=min_idle_ms,
        count=count,
        just_id=just_id,
        client_id=ctx.client.id,
    )
    return [
        format_id(taken.next_id),
        _claimed(taken.polled.ids, taken.polled.entries, just_id=just_id),
        [format_id(id_) for id_ in taken.deleted],
    ]


def _summary(group: Group) -> Reply:
    lowest = next(group.pending_from(), None)
    if lowest is None:
        return [0, None, None, NIL_ARRAY]
    counts = [(name, group.consumers[name].pending) for name in sorted(group.consumers)]
    return [
        len(group.pending),
        format_id(lowest),
        format_id(group.last_pending()),
        [[name, b"%d" % count] for name, count in counts if count],
    ]


def _held_from(group: Group, name: bytes, start: EntryID) -> Iterator[EntryID]:
    """What one consumer holds, from ``start`` on; nothing for an unknown one."""
    consumer: Consumer | None = group.consumers.get(name)
    held = group.held_by(consumer) if consumer else []
    return (id_ for id_ in held if id_ >= start)


def _pending_row(
    ctx: Context, group: Group, id_: EntryID, min_idle_ms: int
) -> Reply | None:
    """What nobody holds is idle for ever: it shows as -1."""
    handout = group.pending[id_]
    deliveries = group.tally(id_).deliveries
    if handout.consumer is None:
        return [format_id(id_), b"", -1, deliveries]
    idle_ms = max(ctx.now_ms - handout.handed_ms, 0)
    if idle_ms < min_idle_ms:
        return None
    return [format_id(id_), handout.consumer.name, idle_ms, deliveries]


def _rounds(ids: Sequence[EntryID]) -> Sequence[Sequence[EntryID]]:
    """One that is given twice is claimed twice, as in Redis."""
    rounds: list[list[EntryID]] = [[]]
    times: Counter[EntryID] = Counter()
    for id_ in ids:
        if times[id_] == len(rounds):
            rounds.append([])
        rounds[times[id_]].append(id_)
        times[id_] += 1
    return rounds


def _leading_ids(args: Args) -> Sequence[EntryID]:
    """The words up to the first that is no ID."""
    ids = []
    while args:
        try:
            ids.append(parse_id(args.peek()))
        except InvalidID:
            break
        args.bytes()
    return ids


def _claim_options(ctx: Context, args: Args, min_idle_ms: int) -> ClaimOptions:
    now_ms = handed_ms = ctx.now_ms
    retry_count: int | None = None
    force = just_id = False
    last_id = 0
    while args:
        word = args.bytes()
        option = word.upper()
        if option == b"FORCE":
            force = True
        elif option == b"JUSTID":
            just_id = True
        elif option == b"LASTID" and args:
            last_id = args.id()
        elif option in (b"IDLE", b"TIME", b"RETRYCOUNT") and args:
            value = integer(args.bytes(), bad_xclaim_value(option))
            if option == b"RETRYCOUNT":
                retry_count = value if value >= 0 else None
            elif option == b"IDLE":
                handed_ms = now_ms - value
            else:  # a time of the wall clock
                handed_ms = value - ctx.wall_ms + now_ms if value >= 0 else now_ms
        else:
            raise bad_xclaim_option(word)
    if not 0 <= handed_ms <= now_ms:
        handed_ms = now_ms
    return ClaimOptions(min_idle_ms, handed_ms, retry_count, force, just_id, last_id)


def _claimed(
    ids: Sequence[EntryID], entries: Sequence[bytes], *, just_id: bool
) -> Reply:
    if just_id:
        return [format_id(id_) for id_ in ids]
    return Entries(len(entries), entries)
