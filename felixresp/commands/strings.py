"""SET, GET, STRLEN: enough of strings for locks, flags and counters of size."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.reply import OK, Reply
from .args import INT64_MAX, Args
from .context import Context
from .errors import SYNTAX, CommandError, invalid_expire

_EXPIRIES = {
    b"EX": (1000, True),  # ms per unit, counted from now
    b"PX": (1, True),
    b"EXAT": (1000, False),
    b"PXAT": (1, False),
}


@dataclass(slots=True)
class _Options:
    condition: bytes = b""  # NX or XX
    get: bool = False
    keep_ttl: bool = False
    expiry: bytes = b""
    expiry_word: bytes = b""


def set_(ctx: Context, args: Args) -> Reply:
    """SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"""  # noqa: E501
    keyspace, db = ctx.keyspace, ctx.client.db
    key, data = args.bytes(), args.bytes()
    options = _options(args)
    expire_ms = _expire_ms(ctx, options)

    old: bytes | None = None
    if options.get:
        string = keyspace.string(db, key)
        old = string.data if string else None
    refusal = old if options.get else None
    if options.condition:
        exists = keyspace.get(db, key) is not None
        if exists == (options.condition == b"NX"):
            return refusal
    _store(ctx, key, data, expire_ms, keep_ttl=options.keep_ttl)
    return old if options.get else OK


def get(ctx: Context, args: Args) -> Reply:
    """GET key"""
    string = ctx.keyspace.string(ctx.client.db, args.bytes())
    return string.data if string else None


def strlen(ctx: Context, args: Args) -> Reply:
    """STRLEN key"""
    string = ctx.keyspace.string(ctx.client.db, args.bytes())
    return len(string.data) if string else 0


def _options(args: Args) -> _Options:
    options = _Options()
    while args:
        option = args.token()
        if option in (b"NX", b"XX") and options.condition in (b"", option):
            options.condition = option
        elif option == b"GET":
            options.get = True
        elif option == b"KEEPTTL" and not options.expiry:
            options.keep_ttl = True
        elif (
            option in _EXPIRIES
            and options.expiry in (b"", option)
            and not options.keep_ttl
        ):
            options.expiry = option
            options.expiry_word = args.bytes()
        else:
            raise CommandError(SYNTAX)
    return options


def _expire_ms(ctx: Context, options: _Options) -> int | None:
    if not options.expiry:
        return None
    ms_per_unit, relative = _EXPIRIES[options.expiry]
    value = Args((options.expiry_word,), 0).int()
    expire_ms = value * ms_per_unit + (ctx.wall_ms if relative else 0)
    if value <= 0 or expire_ms > INT64_MAX:
        raise invalid_expire(b"set")  # noqa: EM101
    return expire_ms


def _store(
    ctx: Context, key: bytes, data: bytes, expire_ms: int | None, *, keep_ttl: bool
) -> None:
    keyspace, db = ctx.keyspace, ctx.client.db
    before = keyspace.get(db, key)
    if expire_ms is not None and expire_ms <= ctx.wall_ms:
        # in the past already: the key is gone at once, as in Redis
        if before is not None:
            keyspace.drop(before)
        return
    if keep_ttl and before is not None:
        expire_ms = before.expire_ms
    string = keyspace.set_string(db, key, data)
    if expire_ms is not None:
        keyspace.set_expiry(string, expire_ms)
