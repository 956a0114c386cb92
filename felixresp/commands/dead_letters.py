"""XDLQ: look at a group's dead letters, put them back, or take them off the list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ..engine.dead_letters import DeadLetter
from ..engine.dead_letters import discard as discard_letters
from ..engine.dead_letters import redrive as redrive_letters
from ..engine.group import Group
from ..engine.ids import MAX_ID, MIN_ID, EntryID, format_id
from ..protocol.reply import Map, Reply, Simple
from .args import Args
from .context import Context
from .errors import COUNT_NOT_POSITIVE, LIMIT_NEGATIVE, SYNTAX, CommandError
from .lookup import existing_group
from .ranges import end_id, start_id

_CAUSES = (b"attempts", b"consumer")

_HELP = (
    b"XDLQ <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"LIST <key> <groupname> [<start> <end>] [COUNT <count>] [REASON <prefix>]",
    b"     [CAUSE <attempts|consumer>]",
    b"    Show the group's dead letters in ID order.",
    b"LEN <key> <groupname>",
    b"    Return how many dead letters the group has.",
    b"REDRIVE <key> <groupname> <id> [<id> ...]",
    b"REDRIVE <key> <groupname> ALL [REASON <prefix>] [LIMIT <count>] [DRYRUN]",
    b"    Hand the entries out again, with their attempts at 0.",
    b"DISCARD <key> <groupname> <id> [<id> ...]",
    b"DISCARD <key> <groupname> ALL [REASON <prefix>] [LIMIT <count>] [DRYRUN]",
    b"    Take dead letters off the list; their entries stay in the stream.",
    b"HELP",
    b"    Print this help.",
)

_Settle = Callable[[Group, Iterable[EntryID]], int]


def list_(ctx: Context, args: Args) -> Reply:
    """XDLQ LIST key group [start end] [COUNT count] [REASON prefix] [CAUSE cause]"""
    key, name = args.bytes(), args.bytes()
    start, end = MIN_ID, MAX_ID
    if args and args.peek().upper() not in (b"COUNT", b"REASON", b"CAUSE"):
        start, end = start_id(args.bytes()), end_id(args.bytes())
    count, reason, cause = None, b"", b""
    while args:
        option = args.token()
        if option == b"COUNT" and args:
            count = args.int(error=COUNT_NOT_POSITIVE)
            if count <= 0:
                raise CommandError(COUNT_NOT_POSITIVE)
        elif option == b"REASON" and args:
            reason = args.bytes()
        elif option == b"CAUSE" and args:
            cause = args.bytes().lower()
            if cause not in _CAUSES:
                raise CommandError(SYNTAX)
        else:
            raise CommandError(SYNTAX)

    group = existing_group(ctx, key, name)
    shown: list[Reply] = []
    for letter in group.dead_letters.between(start, end):
        if count is not None and len(shown) >= count:
            break
        if letter.reason.startswith(reason) and cause in (b"", letter.cause):
            present = _is_present(ctx, group, letter.id)
            shown.append(_row(letter, present=present))
    return shown


def len_(ctx: Context, args: Args) -> Reply:
    """XDLQ LEN key group"""
    return len(existing_group(ctx, args.bytes(), args.bytes()).dead_letters.listed)


def redrive(ctx: Context, args: Args) -> Reply:
    """XDLQ REDRIVE key group <id [id ...] | ALL [REASON prefix] [LIMIT count] [DRYRUN]>"""  # noqa: E501
    return _settle(ctx, args, redrive_letters, needs_entry=True)


def discard(ctx: Context, args: Args) -> Reply:
    """XDLQ DISCARD key group <id [id ...] | ALL [REASON prefix] [LIMIT count] [DRYRUN]>"""  # noqa: E501
    return _settle(ctx, args, discard_letters, needs_entry=False)


def help_(_ctx: Context, _args: Args) -> Reply:
    """XDLQ HELP"""
    return [Simple(line) for line in _HELP]


def _is_present(ctx: Context, group: Group, id_: EntryID) -> bool:
    return ctx.at_once(partial(group.stream.contains, id_))


def _row(letter: DeadLetter, *, present: bool) -> Reply:
    return Map(
        (
            (b"id", format_id(letter.id)),
            (b"present", int(present)),
            (b"attempts", letter.attempts),
            (b"cause", letter.cause),
            (b"reason", letter.reason),
            (b"last-consumer", letter.consumer),
            (b"first-delivered", letter.first_delivered_ms),
            (b"dead-at", letter.dead_ms),
            (b"redriven", letter.redriven),
        )
    )


def _settle(ctx: Context, args: Args, settle: _Settle, *, needs_entry: bool) -> Reply:
    key, name = args.bytes(), args.bytes()
    if args.peek().upper() != b"ALL":
        ids = [args.id() for _ in range(args.remaining())]
        return ctx.in_batches(partial(settle, existing_group(ctx, key, name)), ids)
    args.bytes()
    reason, limit, dry_run = b"", 0, False
    while args:
        option = args.token()
        if option == b"REASON" and args:
            reason = args.bytes()
        elif option == b"LIMIT" and args:
            limit = args.int()
            if limit < 0:
                raise CommandError(LIMIT_NEGATIVE)
        elif option == b"DRYRUN":
            dry_run = True
        else:
            raise CommandError(SYNTAX)
    group = existing_group(ctx, key, name)
    chosen: list[EntryID] = []
    for id_ in _with_reason(group, reason):
        if limit and len(chosen) >= limit:
            break
        if not needs_entry or _is_present(ctx, group, id_):
            chosen.append(id_)
    return len(chosen) if dry_run else ctx.in_batches(partial(settle, group), chosen)


def _with_reason(group: Group, prefix: bytes) -> Iterator[EntryID]:
    for letter in group.dead_letters.between(MIN_ID, MAX_ID):
        if letter.reason.startswith(prefix):
            yield letter.id
