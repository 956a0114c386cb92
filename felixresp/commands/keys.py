"""Commands on keys of any type: find, delete, rename, expire, scan, flush."""

from __future__ import annotations

import re

from ..engine.stream import Stream
from ..engine.values import String
from ..protocol.reply import OK, Reply, Simple
from .args import INT64_MAX, INT64_MIN, Args
from .context import Context
from .errors import (
    EXPIRE_GT_WITH_LT,
    EXPIRE_NX_WITH_OTHERS,
    INVALID_CURSOR,
    NO_SUCH_KEY,
    SYNTAX,
    CommandError,
    invalid_expire,
    unsupported_option,
)
from .glob import matcher

_CURSOR = re.compile(rb"\s*\+?(\d{1,20})")
_CURSOR_MAX = 2**64 - 1
_EXPIRE_OPTIONS = frozenset((b"NX", b"XX", b"GT", b"LT"))


def exists(ctx: Context, args: Args) -> Reply:
    """EXISTS key [key ...]"""
    db = ctx.client.db
    return sum(ctx.keyspace.get(db, key) is not None for key in args.rest())


def delete(ctx: Context, args: Args) -> Reply:
    """DEL key [key ...]"""
    return _delete(ctx, args)


def unlink(ctx: Context, args: Args) -> Reply:
    """UNLINK key [key ...]"""
    return _delete(ctx, args)


def type_(ctx: Context, args: Args) -> Reply:
    """TYPE key"""
    value = ctx.keyspace.get(ctx.client.db, args.bytes())
    return Simple(type_name(value))


def keys(ctx: Context, args: Args) -> Reply:
    """KEYS pattern"""
    pattern = args.bytes()
    names = ctx.keyspace.keys(ctx.client.db)
    if pattern == b"*":
        return list(names)
    match = matcher(pattern)
    return [name for name in names if match(name)]


def scan(ctx: Context, args: Args) -> Reply:
    """SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]"""
    cursor = _cursor(args.bytes())
    pattern, count, wanted = b"*", 10, b""
    while args:
        match args.token():
            case b"MATCH":
                pattern = args.bytes()
            case b"COUNT":
                count = args.int()
                if count < 1:
                    raise CommandError(SYNTAX)
            case b"TYPE":
                wanted = args.bytes().lower()
            case _:
                raise CommandError(SYNTAX)

    keyspace, db = ctx.keyspace, ctx.client.db
    cursor, names = keyspace.scan(db, cursor, count)
    if pattern != b"*":
        match = matcher(pattern)
        names = [name for name in names if match(name)]
    if wanted:
        names = [name for name in names if type_name(keyspace.get(db, name)) == wanted]
    return [b"%d" % cursor, names]


def rename(ctx: Context, args: Args) -> Reply:
    """RENAME key newkey"""
    _rename(ctx, args.bytes(), args.bytes(), replace=True)
    return OK


def renamenx(ctx: Context, args: Args) -> Reply:
    """RENAMENX key newkey"""
    return int(_rename(ctx, args.bytes(), args.bytes(), replace=False))


def ttl(ctx: Context, args: Args) -> Reply:
    """TTL key"""
    return _time_left(ctx, args, ms_per_unit=1000, since_ms=ctx.wall_ms)


def pttl(ctx: Context, args: Args) -> Reply:
    """PTTL key"""
    return _time_left(ctx, args, ms_per_unit=1, since_ms=ctx.wall_ms)


def expiretime(ctx: Context, args: Args) -> Reply:
    """EXPIRETIME key"""
    return _time_left(ctx, args, ms_per_unit=1000, since_ms=0)


def pexpiretime(ctx: Context, args: Args) -> Reply:
    """PEXPIRETIME key"""
    return _time_left(ctx, args, ms_per_unit=1, since_ms=0)


def expire(ctx: Context, args: Args) -> Reply:
    """EXPIRE key seconds [NX | XX | GT | LT]"""
    return _expire(ctx, args, b"expire", ms_per_unit=1000, since_ms=ctx.wall_ms)


def pexpire(ctx: Context, args: Args) -> Reply:
    """PEXPIRE key milliseconds [NX | XX | GT | LT]"""
    return _expire(ctx, args, b"pexpire", ms_per_unit=1, since_ms=ctx.wall_ms)


def expireat(ctx: Context, args: Args) -> Reply:
    """EXPIREAT key unix-time-seconds [NX | XX | GT | LT]"""
    return _expire(ctx, args, b"expireat", ms_per_unit=1000, since_ms=0)


def pexpireat(ctx: Context, args: Args) -> Reply:
    """PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]"""
    return _expire(ctx, args, b"pexpireat", ms_per_unit=1, since_ms=0)


def persist(ctx: Context, args: Args) -> Reply:
    """PERSIST key"""
    value = ctx.keyspace.get(ctx.client.db, args.bytes())
    if value is None or value.expire_ms is None:
        return 0
    ctx.keyspace.set_expiry(value, None)
    return 1


def flushdb(ctx: Context, args: Args) -> Reply:
    """FLUSHDB [ASYNC | SYNC]"""
    _flush_options(args)
    ctx.keyspace.flush(ctx.client.db)
    return OK


def flushall(ctx: Context, args: Args) -> Reply:
    """FLUSHALL [ASYNC | SYNC]"""
    _flush_options(args)
    ctx.keyspace.flush(None)
    return OK


def type_name(value: Stream | String | None) -> bytes:
    if value is None:
        return b"none"
    return b"stream" if isinstance(value, Stream) else b"string"


def _delete(ctx: Context, args: Args) -> int:
    deleted = 0
    for key in args.rest():
        value = ctx.keyspace.get(ctx.client.db, key)
        if value is not None:
            ctx.keyspace.drop(value)
            deleted += 1
    return deleted


def _rename(ctx: Context, key: bytes, new_key: bytes, *, replace: bool) -> bool:
    keyspace, db = ctx.keyspace, ctx.client.db
    value = keyspace.get(db, key)
    if value is None:
        raise CommandError(NO_SUCH_KEY)
    if not replace and keyspace.get(db, new_key) is not None:
        return False
    if new_key != key:
        keyspace.rename(value, db, new_key)
    return True


def _cursor(word: bytes) -> int:
    found = _CURSOR.fullmatch(word)
    if not found or int(found[1]) > _CURSOR_MAX:
        raise CommandError(INVALID_CURSOR)
    return int(found[1])


def _time_left(ctx: Context, args: Args, *, ms_per_unit: int, since_ms: int) -> int:
    value = ctx.keyspace.get(ctx.client.db, args.bytes())
    if value is None:
        return -2
    if value.expire_ms is None:
        return -1
    left_ms = max(value.expire_ms - since_ms, 0)
    return (left_ms + ms_per_unit // 2) // ms_per_unit


def _expire(
    ctx: Context, args: Args, command: bytes, *, ms_per_unit: int, since_ms: int
) -> int:
    key, when = args.bytes(), args.bytes()
    options = _expire_options(args)
    time_ms = Args((when,), 0).int() * ms_per_unit
    expire_ms = time_ms + since_ms
    if time_ms < INT64_MIN or expire_ms > INT64_MAX:
        raise invalid_expire(command)

    value = ctx.keyspace.get(ctx.client.db, key)
    if value is None or not _may_expire(value.expire_ms, expire_ms, options):
        return 0
    if expire_ms <= ctx.wall_ms:
        ctx.keyspace.drop(value)
    else:
        ctx.keyspace.set_expiry(value, expire_ms)
    return 1


def _expire_options(args: Args) -> set[bytes]:
    options = set()
    for word in args.rest():
        option = word.upper()
        if option not in _EXPIRE_OPTIONS:
            raise unsupported_option(word)
        options.add(option)
    if b"NX" in options and len(options) > 1:
        raise CommandError(EXPIRE_NX_WITH_OTHERS)
    if options >= {b"GT", b"LT"}:
        raise CommandError(EXPIRE_GT_WITH_LT)
    return options


def _may_expire(now_ms: int | None, new_ms: int, options: set[bytes]) -> bool:
    """A key without expiry counts as one that expires later than any."""
    if b"NX" in options and now_ms is not None:
        return False
    if b"XX" in options and now_ms is None:
        return False
    if b"GT" in options and (now_ms is None or new_ms <= now_ms):
        return False
    return not (b"LT" in options and now_ms is not None and new_ms >= now_ms)


def _flush_options(args: Args) -> None:
    """Both ways are the same here: a dropped key's records go in the background."""
    words = args.rest()
    if len(words) > 1 or (words and words[0].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError(SYNTAX)
