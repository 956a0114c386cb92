"""XNACK and XEXTEND: give a claim back, give up on it, or keep it longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..engine.claims import expire
from ..engine.group import Group
from ..engine.handouts import Member
from ..engine.settle import FAIL, FATAL, SILENT, Nack, extend, holds, nack
from ..protocol.reply import Reply
from .args import INT64_MAX, Args, integer
from .context import Context
from .errors import (
    BAD_NACK_MODE,
    BAD_RETRY_COUNT,
    DELAY_NEGATIVE,
    DELAY_WITH_FATAL,
    EXTEND_NEEDS_HOLDER,
    EXTEND_NOT_POSITIVE,
    IDS_EXPECTED,
    NOT_LEASED,
    NUMIDS_MISMATCH,
    NUMIDS_NOT_POSITIVE,
    REASON_TOO_LONG,
    SYNTAX,
    CommandError,
    bad_xnack_option,
    no_group,
)
from .lookup import find_group
from .receipts import Mark, settled_mark, standing_ids

_REASON_BYTES_MAX = 1024
_OWN_OPTIONS = (b"CONSUMER", b"DELAY", b"REASON")


@dataclass(slots=True)
class _Options:
    marks: Sequence[Mark] = ()
    retry_count: int | None = None
    force: bool = False
    delay_ms: int | None = None
    reason: bytes = b""
    consumer: bytes | None = None


def xnack(ctx: Context, args: Args) -> Reply:
    """XNACK key group <SILENT | FAIL | FATAL> IDS numids <id | receipt> [<id | receipt> ...] [RETRYCOUNT count] [FORCE] [CONSUMER name] [DELAY ms] [REASON text]"""  # noqa: E501
    key, name, mode = args.bytes(), args.bytes(), args.token()
    group = find_group(ctx, key, name)
    if mode not in (SILENT, FAIL, FATAL):
        raise CommandError(BAD_NACK_MODE)
    if group is None:
        raise no_group(key, name)
    options = _nack_options(group, args)
    if options.delay_ms is not None and mode == FATAL:
        raise CommandError(DELAY_WITH_FATAL)
    wish = Nack(
        mode,
        options.retry_count,
        options.force,
        options.delay_ms,
        options.reason,
        _holder(ctx, group, options.consumer),
        options.consumer is not None,
    )
    ids = standing_ids(group, options.marks, ctx.now_ms)
    return nack(group, ids, wish, ctx.now_ms)


def xextend(ctx: Context, args: Args) -> Reply:
    """XEXTEND key group ms IDS numids <id | receipt> [<id | receipt> ...] [CONSUMER name]"""  # noqa: E501
    key, name = args.bytes(), args.bytes()
    ms = args.int()
    group = find_group(ctx, key, name)
    if group is None:
        raise no_group(key, name)
    if not group.mode.leases:
        raise CommandError(NOT_LEASED)
    if ms <= 0:
        raise CommandError(EXTEND_NOT_POSITIVE)
    if args.token() != b"IDS":
        raise CommandError(IDS_EXPECTED)
    marks = _marks(args)
    consumer = None
    if args:
        if args.token() != b"CONSUMER" or args.remaining() != 1:
            raise CommandError(SYNTAX)
        consumer = args.bytes()
    if consumer is None and not all(nonce for _, nonce in marks):
        raise CommandError(EXTEND_NEEDS_HOLDER)
    expire(group, ctx.now_ms)
    holder = _holder(ctx, group, consumer)
    granted: list[Reply] = []
    for mark in marks:
        ids = standing_ids(group, (mark,), ctx.now_ms)
        if not ids or (
            consumer is not None and not holds(group, holder, ids[0], ctx.now_ms)
        ):
            granted.append(0)
        else:
            granted.append(extend(group, ids[0], ms, ctx.now_ms))
    return granted


def _holder(ctx: Context, group: Group, name: bytes | None) -> Member | None:
    consumer = None if name is None else group.consumers.get(name)
    return consumer.members.get(ctx.client.user.name) if consumer else None


def _nack_options(group: Group, args: Args) -> _Options:
    """The options, in any order; Redis's own ones only, in mode redis."""
    options = _Options()
    while args:
        word = args.bytes()
        option = word.upper()
        if option == b"IDS" and args:
            options.marks = _marks(args)
        elif option == b"FORCE":
            options.force = True
        elif option == b"RETRYCOUNT" and args:
            options.retry_count = args.int()
            if options.retry_count < 0:
                raise CommandError(BAD_RETRY_COUNT)
        elif option in _OWN_OPTIONS and args and group.mode.leases:
            _own_option(options, option, args.bytes())
        else:
            raise bad_xnack_option(word)
    if not options.marks:
        raise CommandError(IDS_EXPECTED)
    return options


def _own_option(options: _Options, option: bytes, value: bytes) -> None:
    if option == b"CONSUMER":
        options.consumer = value
    elif option == b"REASON":
        if len(value) > _REASON_BYTES_MAX:
            raise CommandError(REASON_TOO_LONG)
        options.reason = value
    else:
        options.delay_ms = integer(value)
        if options.delay_ms < 0:
            raise CommandError(DELAY_NEGATIVE)


def _marks(args: Args) -> Sequence[Mark]:
    """``numids id [id ...]``"""
    count = args.int(error=NUMIDS_NOT_POSITIVE)
    if not 0 < count <= INT64_MAX:
        raise CommandError(NUMIDS_NOT_POSITIVE)
    if count > args.remaining():
        raise CommandError(NUMIDS_MISMATCH)
    return [settled_mark(args.bytes()) for _ in range(count)]
