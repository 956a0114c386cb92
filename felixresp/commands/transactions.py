"""MULTI, EXEC, DISCARD, WATCH, UNWATCH.

EXEC runs what was queued back to back: one change set, one reply. Nothing blocks
inside it, and a cold read is loaded at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ..protocol.reply import NIL_ARRAY, OK, Reply
from .args import Args
from .command import Command, find
from .context import Answer, Block, Context, Effect, Outcome
from .errors import (
    DISCARD_WITHOUT_MULTI,
    EXEC_ABORT,
    EXEC_WITHOUT_MULTI,
    MULTI_NESTED,
    NO_SPACE,
    WATCH_IN_MULTI,
    CommandError,
    exec_abort,
)
from .permission import still_refused


def multi(ctx: Context, _args: Args) -> Reply:
    """MULTI"""
    client = ctx.client
    if client.queued is not None:
        raise CommandError(MULTI_NESTED)
    client.queued = []
    client.queued_bytes = 0
    client.queue_failed = False
    return OK


def exec_(commands: Mapping[bytes, Command], ctx: Context, _args: Args) -> Answer:
    """EXEC"""
    client = ctx.client
    requests, failed = client.queued, client.queue_failed
    if requests is None:
        raise CommandError(EXEC_WITHOUT_MULTI)
    touched = any(
        ctx.keyspace.watches.version(db, key) != seen
        for (db, key), seen in client.watched.items()
    )
    end_multi(ctx)
    if failed:
        raise CommandError(EXEC_ABORT)
    if touched:
        return NIL_ARRAY
    queued = [(find(commands, request), request) for request in requests]
    if any(command.deny_oom for command, _ in queued) and ctx.server.full:
        raise exec_abort(NO_SPACE)

    ctx.in_multi = True
    try:
        return _run_all(ctx, queued)
    finally:
        ctx.in_multi = False


def discard(ctx: Context, _args: Args) -> Reply:
    """DISCARD"""
    if ctx.client.queued is None:
        raise CommandError(DISCARD_WITHOUT_MULTI)
    end_multi(ctx)
    return OK


def watch(ctx: Context, args: Args) -> Reply:
    """WATCH key [key ...]"""
    client = ctx.client
    if client.queued is not None:
        raise CommandError(WATCH_IN_MULTI)
    for key in args.rest():
        name = (client.db, key)
        if name not in client.watched:
            client.watched[name] = ctx.keyspace.watches.watch(*name)
    return OK


def unwatch(ctx: Context, _args: Args) -> Reply:
    """UNWATCH"""
    forget_watched(ctx)
    return OK


def end_multi(ctx: Context) -> None:
    """Back to normal: nothing queued, nothing watched."""
    client = ctx.client
    client.queued = None
    client.queued_bytes = 0
    client.queue_failed = False
    forget_watched(ctx)


def forget_watched(ctx: Context) -> None:
    watched = ctx.client.watched
    for db, key in watched:
        ctx.keyspace.watches.unwatch(db, key)
    watched.clear()


def _run_all(ctx: Context, queued: Sequence[tuple[Command, list[bytes]]]) -> Answer:
    replies: list[Reply] = []
    effects: list[Effect] = []
    for command, request in queued:
        refused = still_refused(ctx, command, request)
        if refused is not None:
            replies.append(refused)
            continue
        answer = ctx.at_once(partial(command.run, ctx, request))
        if isinstance(answer, Outcome):
            effects += answer.effects
            answer = answer.reply
        elif isinstance(answer, Block):
            answer = NIL_ARRAY
        replies.append(answer)
    return Outcome(replies, effects) if effects else replies
