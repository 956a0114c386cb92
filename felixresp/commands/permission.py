"""The check of a user's rights, wherever a request is about to run.

A request is checked when it comes, when MULTI queues it, once more when EXEC runs
it, and whenever a blocked one is run again: rights may be taken away meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol.reply import Error
from .acl_errors import NO_GROUP_RIGHT, NO_KEY_RIGHT, no_command_right, rights_changed
from .command import Command
from .context import Context
from .errors import NO_AUTH, CommandError
from .rights import Reason, Refusal

_NAMES = {Reason.COMMAND: b"command", Reason.KEY: b"key", Reason.GROUP: b"group"}
_NO_LONGER = {
    Reason.COMMAND: b"no permission to execute the command or subcommand",
    Reason.KEY: b"no permission to touch the specified keys",
    Reason.GROUP: b"no permission to touch the specified groups",
}


def check_rights(ctx: Context, command: Command, request: Sequence[bytes]) -> None:
    """Raises CommandError: NOAUTH, or NOPERM, which the ACL log has then."""
    found = _refusal(ctx, command, request)
    if found is None:
        return
    if found.reason is Reason.COMMAND:
        raise no_command_right(ctx.user, found.word)
    is_key = found.reason is Reason.KEY
    raise CommandError(NO_KEY_RIGHT if is_key else NO_GROUP_RIGHT)


def still_refused(
    ctx: Context, command: Command, request: Sequence[bytes]
) -> Error | None:
    """The reply of EXEC to a command that was queued and may not run any more."""
    try:
        found = _refusal(ctx, command, request)
    except CommandError as error:
        return Error(error.text)
    return Error(rights_changed(_NO_LONGER[found.reason])) if found else None


def is_refused(ctx: Context, command: Command, request: Sequence[bytes]) -> bool:
    """Only looks: nothing is logged."""
    if command.no_auth:
        return False
    user = ctx.server.users.in_force(ctx.client)
    return user is None or user.check(command, request) is not None


def log_refusal(ctx: Context, reason: bytes, word: bytes, user: bytes) -> None:
    client = ctx.client
    in_multi = ctx.in_multi or client.queued is not None
    ctx.server.users.refusals.add(
        reason,
        b"multi" if in_multi else b"toplevel",
        word,
        user,
        client.describe(ctx.now_ms),
        ctx.wall_ms,
    )


def _refusal(
    ctx: Context, command: Command, request: Sequence[bytes]
) -> Refusal | None:
    user = ctx.server.users.in_force(ctx.client)
    if user is None and not command.no_auth:
        raise CommandError(NO_AUTH)
    found = user.check(command, request) if user else None
    if found is not None:
        log_refusal(ctx, _NAMES[found.reason], found.word, ctx.user)
    return found
