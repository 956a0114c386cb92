"""From a request's words to its answer.

The order of the checks is Redis's: name, subcommand, arity, authentication, rights,
room on the disk; then MULTI queues what it does not run at once. A request that
fails a check inside MULTI spoils the transaction. A browser that was made to send
commands in the body of an HTTP request is cut off at the request's head.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.errors import WrongType
from ..protocol.reply import QUEUED, Error, Reply
from .args import Args
from .command import Command, narrow
from .context import Answer, Client, Context, HangUp, Outcome, Uncommon
from .errors import (
    MULTI_TOO_LARGE,
    NO_SPACE,
    NOT_IN_MULTI,
    WRONG_TYPE,
    CommandError,
    exec_abort,
    unknown_command,
)
from .permission import check_rights
from .table import COMMANDS, HOT
from .transactions import end_multi

_WORD_BYTES = 56  # what a queued word costs besides its bytes
_SPELLINGS_MAX = 4096
_HTTP_WORDS = frozenset((b"post", b"host:"))

_SPELLINGS: dict[bytes, Command] = dict(COMMANDS)  # names as clients typed them


def dispatch(ctx: Context, request: Sequence[bytes]) -> Answer:
    """Run one request to completion. Never waits; raises NotResident only."""
    client = ctx.client
    hot = HOT.get(request[0])
    if (
        hot is not None
        and client.user.all_rights
        and client.queued is None
        and not ctx.server.full
    ):
        answer = hot(ctx, request)
        if not isinstance(answer, Uncommon):
            return answer
    command = _SPELLINGS.get(request[0]) or _look_up(request[0])
    try:
        if command is None:
            raise unknown_command(request)
        arity = command.arity
        if (
            len(request) != arity if arity > 0 else len(request) < -arity
        ) or command.subcommands:
            command = narrow(command, request)
        if not (client.user.all_rights or command.no_auth):
            check_rights(ctx, command, request)
        if command.deny_oom and ctx.server.full:
            raise CommandError(NO_SPACE)
        if client.queued is not None and not command.immediate:
            return _queue(ctx, command, request)
    except CommandError as exc:
        return _refuse(ctx, command, request, exc)
    try:
        return command.handler(ctx, Args(request, command.place))
    except CommandError as exc:
        return Error(exc.text)
    except WrongType:
        return Error(WRONG_TYPE)


def _look_up(name: bytes) -> Command | None:
    command = COMMANDS.get(name.lower())
    if command is not None and len(_SPELLINGS) < _SPELLINGS_MAX:
        _SPELLINGS[name] = command
    return command


def _queue(ctx: Context, command: Command, request: Sequence[bytes]) -> Reply:
    client = ctx.client
    assert client.queued is not None
    if command.no_multi:
        raise CommandError(NOT_IN_MULTI)
    size_bytes = sum(map(len, request)) + _WORD_BYTES * len(request)
    if client.queued_bytes + size_bytes > ctx.settings.client_query_buffer_limit:
        raise CommandError(MULTI_TOO_LARGE)
    client.queued.append(list(request))
    client.queued_bytes += size_bytes
    return QUEUED


def _refuse(
    ctx: Context,
    command: Command | None,
    request: Sequence[bytes],
    error: CommandError,
) -> Answer:
    client: Client = ctx.client
    if command is None and request[0].lower() in _HTTP_WORDS:
        return Outcome(None, (HangUp(),))
    if command is not None and command.name == b"exec":
        end_multi(ctx)
        return Error(exec_abort(error.text).text)
    if client.queued is not None:
        client.queue_failed = True
    return Error(error.text)
