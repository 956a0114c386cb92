"""A stream's entries: add, range, delete, trim, set the last ID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..engine.errors import IDTooSmall
from ..engine.ids import MAX_ID, SEQ_MAX, EntryID
from ..engine.stream import Stream
from ..protocol.reply import NIL_ARRAY, OK, Entries, Reply
from .args import Args, entry_id
from .context import UNCOMMON, Context, Uncommon
from .errors import (
    ENTRIES_ADDED_NEGATIVE,
    ENTRIES_ADDED_TOO_SMALL,
    EXHAUSTED,
    ID_TOO_SMALL,
    ID_ZERO,
    NO_SUCH_KEY,
    SYNTAX,
    TOO_LARGE,
    XSETID_BELOW_DELETED,
    XSETID_BELOW_GIVEN_DELETED,
    XSETID_BELOW_TOP,
    XTRIM_WITHOUT_STRATEGY,
    CommandError,
    wrong_arity,
)
from .ranges import end_id, start_id
from .trimming import Trim, TrimOptions

_XADD = b"xadd"
_PLAIN_WORDS = 5
_SHORT_BYTES = 1024 * 1024  # of a value that needs no look at the entry's size
_ENTRY_BYTES_MAX = 1024 * 1024 * 1024


def xadd(ctx: Context, args: Args) -> Reply:
    """XADD key [NOMKSTREAM] [KEEPREF] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]"""  # noqa: E501
    words = args.words
    key, db = words[1], ctx.client.db
    if words[2] == b"*":  # by far the most common shape
        options, fields = _PLAIN, words[3:]
    else:
        options = _add_options(ctx, args)
        fields = args.rest()
    if not fields or len(fields) % 2:
        raise wrong_arity(_XADD)
    if options.id == 0:
        raise CommandError(ID_ZERO)

    stream = ctx.keyspace.stream(db, key)
    if stream is None and options.no_make:
        return None
    id_ = _new_id(stream, options, ctx.wall_ms)
    if sum(map(len, fields)) > _ENTRY_BYTES_MAX:
        raise CommandError(TOO_LARGE)
    if stream is None:
        stream = ctx.keyspace.create_stream(db, key)
    stream.append(id_, fields)
    if options.trim is not None:
        trim, target = options.trim, stream
        ctx.at_once(lambda: trim.apply(target))
    return b"%d-%d" % (id_ >> 64, id_ & SEQ_MAX)


def xadd_plain(ctx: Context, words: Sequence[bytes]) -> Reply | Uncommon:
    """XADD key * field value, to a stream that is there."""
    if len(words) != _PLAIN_WORDS or words[2] != b"*":
        return UNCOMMON
    stream = ctx.keyspace.get(ctx.client.db, words[1])
    if (
        type(stream) is not Stream
        or stream.last_id == MAX_ID
        or len(words[3]) + len(words[4]) > _SHORT_BYTES
    ):
        return UNCOMMON
    id_ = stream.next_id(ctx.wall_ms)
    stream.append(id_, words[3:])
    return b"%d-%d" % (id_ >> 64, id_ & SEQ_MAX)


def xlen(ctx: Context, args: Args) -> Reply:
    """XLEN key"""
    stream = ctx.keyspace.stream(ctx.client.db, args.bytes())
    return stream.length if stream else 0


def xrange(ctx: Context, args: Args) -> Reply:
    """XRANGE key start end [COUNT count]"""
    key, start, end = args.bytes(), args.bytes(), args.bytes()
    return _range(ctx, args, key, start, end, reverse=False)


def xrevrange(ctx: Context, args: Args) -> Reply:
    """XREVRANGE key end start [COUNT count]"""
    key, end, start = args.bytes(), args.bytes(), args.bytes()
    return _range(ctx, args, key, start, end, reverse=True)


def xdel(ctx: Context, args: Args) -> Reply:
    """XDEL key id [id ...]"""
    stream = ctx.keyspace.stream(ctx.client.db, args.bytes())
    if stream is None:
        return 0
    ids = [entry_id(word) for word in args.rest()]
    return ctx.in_batches(stream.delete, ids)


def xtrim(ctx: Context, args: Args) -> Reply:
    """XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF]"""
    key = args.bytes()
    options, keep_ref = TrimOptions(), False
    while args:
        if options.take(args):
            continue
        if args.token() != b"KEEPREF" or keep_ref:
            raise CommandError(SYNTAX)
        keep_ref = True
    trim = options.trim(ctx.settings, XTRIM_WITHOUT_STRATEGY)
    assert trim is not None
    stream = ctx.keyspace.stream(ctx.client.db, key)
    return trim.apply(stream) if stream else 0


def xsetid(ctx: Context, args: Args) -> Reply:
    """XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]"""
    key, last_id = args.bytes(), args.id()
    entries_added: int | None = None
    max_deleted_id = 0
    while args:
        option = args.token()
        if option == b"ENTRIESADDED" and args:
            entries_added = args.int()
            if entries_added < 0:
                raise CommandError(ENTRIES_ADDED_NEGATIVE)
        elif option == b"MAXDELETEDID" and args:
            max_deleted_id = args.id()
            if last_id < max_deleted_id:
                raise CommandError(XSETID_BELOW_GIVEN_DELETED)
        else:
            raise CommandError(SYNTAX)

    stream = ctx.keyspace.stream(ctx.client.db, key)
    if stream is None:
        raise CommandError(NO_SUCH_KEY)
    if last_id < stream.max_deleted_id:
        raise CommandError(XSETID_BELOW_DELETED)
    if stream.length:
        if last_id < stream.top_id():
            raise CommandError(XSETID_BELOW_TOP)
        if entries_added is not None and entries_added < stream.length:
            raise CommandError(ENTRIES_ADDED_TOO_SMALL)
    stream.set_id(
        last_id,
        stream.entries_added if entries_added is None else entries_added,
        max_deleted_id or stream.max_deleted_id,
    )
    return OK


@dataclass(frozen=True, slots=True)
class _AddOptions:
    """``*`` has neither an ``id`` nor an ``ms``; ``ms-*`` has no ``id``."""

    id: EntryID | None = None
    ms: int | None = None
    no_make: bool = False
    trim: Trim | None = None


_PLAIN = _AddOptions()


def _add_options(ctx: Context, args: Args) -> _AddOptions:
    args.bytes()  # the key
    trimming, no_make, keep_ref = TrimOptions(), False, False
    while args:
        if trimming.take(args):
            continue
        word = args.peek().upper()
        if word == b"NOMKSTREAM":
            no_make = True
        elif word == b"KEEPREF" and not keep_ref:
            keep_ref = True
        else:
            break  # the ID
        args.bytes()
    if not args:
        raise wrong_arity(_XADD)
    id_: EntryID | None = None
    ms: int | None = None
    word = args.bytes()
    if word.endswith(b"-*"):
        ms = entry_id(word[:-1] + b"0") >> 64
    elif word != b"*":
        id_ = entry_id(word)
    return _AddOptions(id_, ms, no_make, trimming.trim(ctx.settings))


def _new_id(stream: Stream | None, options: _AddOptions, wall_ms: int) -> EntryID:
    if stream is not None and stream.last_id == MAX_ID:
        raise CommandError(EXHAUSTED)
    if options.id is not None:
        if stream is not None and options.id <= stream.last_id:
            raise CommandError(ID_TOO_SMALL)
        return options.id
    if options.ms is None:
        return wall_ms << 64 if stream is None else stream.next_id(wall_ms)
    if stream is None:
        return options.ms << 64 or 1
    try:
        return stream.next_id_at(options.ms)
    except IDTooSmall:
        raise CommandError(ID_TOO_SMALL) from None


def _range(
    ctx: Context, args: Args, key: bytes, start: bytes, end: bytes, *, reverse: bool
) -> Reply:
    first, last = start_id(start), end_id(end)
    count: int | None = None
    while args:
        if args.token() != b"COUNT" or not args:
            raise CommandError(SYNTAX)
        count = args.int()
    stream = ctx.keyspace.stream(ctx.client.db, key)
    if stream is None:
        return []
    if count is not None and count <= 0:
        return NIL_ARRAY
    return Entries(*stream.range(first, last, count, reverse=reverse))
