"""XPOLL: a poll of one group that also says what each claim is.

A verb of its own, so that no client's XREADGROUP parser meets an extra element.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.group import Group
from ..engine.ids import MIN_ID, EntryID, format_id
from ..engine.members import reclaim
from ..engine.modes import MODES
from ..engine.nodes import decode_fields
from ..engine.poll import poll
from ..protocol.reply import Map, Reply
from .args import Args
from .context import Answer, Block, Context
from .errors import (
    COUNT_NOT_POSITIVE,
    NAME_LENGTH,
    NOT_LEASED,
    SYNTAX,
    TIMEOUT_NEGATIVE,
    TIMEOUT_NOT_AN_INTEGER,
    VISIBILITY_NOT_POSITIVE,
    CommandError,
    no_group,
)
from .lookup import member_of
from .reading import fair_share
from .receipts import receipt

_NAME_BYTES_MAX = 128
_ALL = 2**63  # without COUNT, as XREADGROUP


@dataclass(slots=True)
class _Request:
    count: int = _ALL
    block_ms: int | None = None
    visibility_ms: int | None = None
    reclaim: bool = False


def xpoll(ctx: Context, args: Args) -> Answer:
    """XPOLL key group consumer [COUNT count] [BLOCK ms] [VISIBILITY ms] [RECLAIM]"""
    key, group_name, name = args.bytes(), args.bytes(), args.bytes()
    for word in (group_name, name):
        if not 1 <= len(word) <= _NAME_BYTES_MAX:
            raise CommandError(NAME_LENGTH)
    request = _parse(args)
    group = _group(ctx, key, group_name)
    member = member_of(ctx, group, name)
    if request.reclaim:
        reclaim(group, member, ctx.client.id)
    polled = poll(
        group,
        member,
        ctx.now_ms,
        count=fair_share(ctx, group, request.count),
        client_id=ctx.client.id,
        bytes_max=group.settings.group_max_poll_bytes,
        visibility_ms=request.visibility_ms,
        with_receipts=True,
    )
    if polled.ids:
        entries = zip(polled.ids, polled.entries, strict=True)
        return [_entry(group, id_, raw) for id_, raw in entries]
    return _wait(ctx, request, key, group)


def _entry(group: Group, id_: EntryID, raw: bytes) -> Reply:
    handout = group.pending[id_]
    meta = Map(
        (
            (b"attempts", group.tally(id_).attempts),
            (b"receipt", receipt(id_, handout.nonce)),
            (b"deadline", handout.deadline_ms),
            (b"skipped-before", group.skips.get(id_, 0)),
            (b"last-reason", group.reason(id_)),
        )
    )
    return [format_id(id_), decode_fields(raw), meta]


def _wait(ctx: Context, request: _Request, key: bytes, group: Group) -> Answer:
    if request.block_ms is None or ctx.in_multi:
        return ()
    deadline_ms = ctx.deadline_ms  # of the first time it was run
    if deadline_ms is None:
        most_ms = group.settings.group_max_wait_ms
        deadline_ms = ctx.now_ms + min(request.block_ms or most_ms, most_ms)
    return Block((key,), deadline_ms, group=group.name, timeout=())


def _group(ctx: Context, key: bytes, name: bytes) -> Group:
    """The group; of a stream that is there it is created at its start."""
    stream = ctx.keyspace.stream(ctx.client.db, key)
    group = stream.group(name) if stream else None
    if stream is None or (group is None and ctx.again):
        raise no_group(key, name)  # a destroyed one is not brought back
    mode = group.mode if group else MODES[ctx.settings.group_mode]
    if not mode.leases:
        raise CommandError(NOT_LEASED)
    return group or ctx.keyspace.create_group(stream, name, MIN_ID, None)


def _parse(args: Args) -> _Request:
    request = _Request()
    while args:
        option = args.token()
        if option == b"COUNT" and args:
            request.count = args.int(error=COUNT_NOT_POSITIVE)
            if request.count <= 0:
                raise CommandError(COUNT_NOT_POSITIVE)
        elif option == b"BLOCK" and args:
            request.block_ms = args.int(error=TIMEOUT_NOT_AN_INTEGER)
            if request.block_ms < 0:
                raise CommandError(TIMEOUT_NEGATIVE)
        elif option == b"VISIBILITY" and args:
            request.visibility_ms = args.int()
            if request.visibility_ms <= 0:
                raise CommandError(VISIBILITY_NOT_POSITIVE)
        elif option == b"RECLAIM":
            request.reclaim = True
        else:
            raise CommandError(SYNTAX)
    return request
