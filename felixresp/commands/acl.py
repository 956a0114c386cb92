"""ACL: users, what they may do, and what was refused to them."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol.reply import OK, Map, Reply, Set, Simple
from .acl_errors import (
    BAD_PASSWORD_BITS,
    BAD_USER_NAME,
    DEFAULT_USER_STAYS,
    NO_USERS_FILE,
    USERS_NOT_SAVED,
    bad_rule,
    command_not_found,
    unknown_category,
    unmatched_parenthesis,
    unreadable_users_file,
    user_not_found,
)
from .args import Args
from .context import Answer, Close, Context, Kill, Outcome
from .errors import CommandError, bad_subcommand, wrong_arity
from .refusals import LoggedRefusal
from .rights import DEFAULT_USER, Reason, Selector, User
from .rules import CATEGORIES, RuleError, UnmatchedParenthesis, joined
from .users import BadUsersFile, is_user_name

_BITS = 256
_BITS_MAX = 4096
_LOG_COUNT = 10
_NEEDS = {
    Reason.COMMAND: b"run the '%b' command",
    Reason.KEY: b"access the '%b' key",
    Reason.GROUP: b"access the '%b' group",
}

_HELP = (
    b"ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"CAT [<category>]",
    b"    List all commands that belong to <category>, or all command categories",
    b"    when no category is specified.",
    b"DELUSER <username> [<username> ...]",
    b"    Delete a list of users.",
    b"DRYRUN <username> <command> [<arg> ...]",
    b"    Returns whether the user can execute the given command without executing "
    b"the command.",
    b"GETUSER <username>",
    b"    Get the user's details.",
    b"GENPASS [<bits>]",
    b"    Generate a secure 256-bit user password. The optional `bits` argument can",
    b"    be used to specify a different size.",
    b"LIST",
    b"    Show users details in config file format.",
    b"LOAD",
    b"    Reload users from the ACL file.",
    b"LOG [<count> | RESET]",
    b"    Show the ACL log entries.",
    b"SAVE",
    b"    Save the current config to the ACL file.",
    b"SETUSER <username> <attribute> [<attribute> ...]",
    b"    Create or modify a user with the specified attributes.",
    b"USERS",
    b"    List all the registered usernames.",
    b"WHOAMI",
    b"    Return the current connection username.",
    b"HELP",
    b"    Print this help.",
)


def cat(ctx: Context, args: Args) -> Reply:
    """ACL CAT [category]"""
    if args.remaining() > 1:
        raise bad_subcommand(b"acl", args.words[1])  # noqa: EM101
    if not args:
        return list(CATEGORIES)
    category = args.bytes()
    names = ctx.server.users.catalog.by_category.get(category.lower())
    if names is None:
        raise unknown_category(category)
    return list(names)


def deluser(ctx: Context, args: Args) -> Answer:
    """ACL DELUSER username [username ...]"""
    names = args.rest()
    if DEFAULT_USER in names:
        raise CommandError(DEFAULT_USER_STAYS)
    gone = [user for name in names if (user := ctx.server.users.delete(name))]
    return Outcome(len(gone), _ends(ctx, gone))


def dryrun(ctx: Context, args: Args) -> Reply:
    """ACL DRYRUN username command [arg [arg ...]]"""
    name, request = args.bytes(), args.rest()
    users = ctx.server.users
    user = users.get(name)
    if user is None:
        raise user_not_found(name)
    command = users.catalog.commands.get(request[0].lower())
    if command is None or b"|" in command.name:
        raise command_not_found(request[0])
    if command.subcommands and len(request) > 1:
        command = command.subcommands.get(request[1].lower())
        if command is None:
            raise command_not_found(request[0])
    if not command.accepts(len(request)):
        raise wrong_arity(command.name)
    found = user.check(command, request)
    if found is None:
        return OK
    return b"User %b has no permissions to %b" % (
        name,
        _NEEDS[found.reason] % found.word,
    )


def genpass(ctx: Context, args: Args) -> Reply:
    """ACL GENPASS [bits]"""
    if args.remaining() > 1:
        raise bad_subcommand(b"acl", args.words[1])  # noqa: EM101
    bits = args.int() if args else _BITS
    if not 0 < bits <= _BITS_MAX:
        raise CommandError(BAD_PASSWORD_BITS)
    digits = (bits + 3) // 4
    return ctx.server.random_bytes((digits + 1) // 2).hex()[:digits].encode()


def getuser(ctx: Context, args: Args) -> Reply:
    """ACL GETUSER username"""
    user = ctx.server.users.get(args.bytes())
    if user is None:
        return None
    others = [Map(_show(selector)) for selector in user.selectors[1:]]
    return Map(
        (
            (b"flags", Set(user.flags())),
            (b"passwords", list(user.passwords)),
            *_show(user.root),
            (b"selectors", others),
        )
    )


def help_(_ctx: Context, _args: Args) -> Reply:
    """ACL HELP"""
    return [Simple(line) for line in _HELP]


def list_(ctx: Context, _args: Args) -> Reply:
    """ACL LIST"""
    return [bytes(user) for user in ctx.server.users.all()]


def load(ctx: Context, _args: Args) -> Answer:
    """ACL LOAD"""
    file = _users_file(ctx)
    try:
        gone = ctx.server.users.load(ctx.server.users_file.read(), file)
    except OSError as error:
        reason = (error.strerror or str(error)).encode()
        raise unreadable_users_file(file, reason) from None
    except BadUsersFile as error:
        raise CommandError(b"ERR " + error.text) from None
    return Outcome(OK, _ends(ctx, gone))


def log(ctx: Context, args: Args) -> Reply:
    """ACL LOG [count | RESET]"""
    if args.remaining() > 1:
        raise bad_subcommand(b"acl", args.words[1])  # noqa: EM101
    refusals = ctx.server.users.refusals
    if args and args.peek().upper() == b"RESET":
        refusals.clear()
        return OK
    count = args.int() if args else _LOG_COUNT
    return [_logged(ctx, refusal) for refusal in refusals.newest(count)]


def save(ctx: Context, _args: Args) -> Reply:
    """ACL SAVE"""
    _users_file(ctx)
    try:
        ctx.server.users_file.write(ctx.server.users.dump())
    except OSError:
        raise CommandError(USERS_NOT_SAVED) from None
    return OK


def setuser(ctx: Context, args: Args) -> Reply:
    """ACL SETUSER username [rule [rule ...]]"""
    name = args.bytes()
    if not is_user_name(name):
        raise CommandError(BAD_USER_NAME)
    try:
        ctx.server.users.change(name, joined(args.rest()))
    except UnmatchedParenthesis as error:
        raise unmatched_parenthesis(error.start) from None
    except RuleError as error:
        raise bad_rule(error.rule, error.text) from None
    return OK


def users(ctx: Context, _args: Args) -> Reply:
    """ACL USERS"""
    return list(ctx.server.users.names())


def whoami(ctx: Context, _args: Args) -> Reply:
    """ACL WHOAMI"""
    return ctx.user


def _show(selector: Selector) -> list[tuple[Reply, Reply]]:
    """Its part of GETUSER; groups only where they are limited."""
    shown: list[tuple[Reply, Reply]] = [
        (b"commands", selector.show_commands()),
        (b"keys", selector.show_keys()),
        (b"channels", selector.show_channels()),
    ]
    if not selector.all_groups:
        shown.append((b"groups", selector.show_groups()))
    return shown


def _logged(ctx: Context, refusal: LoggedRefusal) -> Reply:
    age_s = (ctx.wall_ms - refusal.updated_ms) / 1000
    return Map(
        (
            (b"count", refusal.count),
            (b"reason", refusal.reason),
            (b"context", refusal.context),
            (b"object", refusal.word),
            (b"username", refusal.user),
            (b"age-seconds", age_s),
            (b"client-info", refusal.client),
            (b"entry-id", refusal.number),
            (b"timestamp-created", refusal.created_ms),
            (b"timestamp-last-updated", refusal.updated_ms),
        )
    )


def _ends(ctx: Context, gone: Sequence[User]) -> list[Close | Kill]:
    """Connections of users that are no more are closed; the one that asks is
    answered before."""
    own = ctx.client
    ids = [c.id for c in ctx.server.clients() if c.user in gone and c.id != own.id]
    effects: list[Close | Kill] = [Kill(ids)] if ids else []
    if own.user in gone:
        effects.append(Close())
    return effects


def _users_file(ctx: Context) -> bytes:
    file = ctx.settings.aclfile
    if not file:
        raise CommandError(NO_USERS_FILE)
    return file.encode("utf-8", "surrogateescape")
