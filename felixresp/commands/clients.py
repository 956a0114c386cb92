"""CLIENT: names, lists, kills and unblocks connections."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.reply import OK, Reply, Simple, Verbatim
from .args import Args, integer
from .connection import client_name, printable
from .context import Answer, Client, Close, Context, Kill, Outcome
from .errors import (
    BAD_CLIENT_ID,
    BAD_UNBLOCK_REASON,
    KILL_ID_NOT_POSITIVE,
    MAXAGE_NOT_AN_INTEGER,
    MAXAGE_NOT_POSITIVE,
    NO_SUCH_CLIENT,
    SYNTAX,
    CommandError,
    bad_client_info,
    bad_subcommand,
    no_such_user,
    unknown_client_type,
    unrecognized_option,
)

_TYPES = frozenset((b"normal", b"master", b"replica", b"slave", b"pubsub"))
_INFO_BYTES_MAX = 1024

_HELP = (
    b"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"GETNAME",
    b"    Return the name of the current connection.",
    b"ID",
    b"    Return the ID of the current connection.",
    b"INFO",
    b"    Return information about the current client connection.",
    b"KILL <ip:port>",
    b"    Kill connection made from <ip:port>.",
    b"KILL <option> <value> [<option> <value> [...]]",
    b"    Kill connections. Options are:",
    b"    * ADDR (<ip:port>|<unixsocket>:0)",
    b"      Kill connections made from the specified address",
    b"    * LADDR (<ip:port>|<unixsocket>:0)",
    b"      Kill connections made to specified local address",
    b"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    b"      Kill connections by type.",
    b"    * USER <username>",
    b"      Kill connections authenticated by <username>.",
    b"    * SKIPME (YES|NO)",
    b"      Skip killing current connection (default: yes).",
    b"    * ID <client-id>",
    b"      Kill connections by client id.",
    b"    * MAXAGE <maxage>",
    b"      Kill connections older than the specified age.",
    b"LIST [options ...]",
    b"    Return information about client connections. Options:",
    b"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    b"      Return clients of specified type.",
    b"SETNAME <name>",
    b"    Assign the name <name> to the current connection.",
    b"SETINFO <option> <value>",
    b"    Set client meta attr. Options are:",
    b"    * LIB-NAME: the client lib name.",
    b"    * LIB-VER: the client lib version.",
    b"UNBLOCK <clientid> [TIMEOUT|ERROR]",
    b"    Unblock the specified blocked client.",
    b"NO-EVICT (ON|OFF)",
    b"    Protect current client connection from eviction.",
    b"NO-TOUCH (ON|OFF)",
    b"    Will not touch LRU/LFU stats when this mode is on.",
    b"HELP",
    b"    Print this help.",
)


def id_(ctx: Context, _args: Args) -> Reply:
    """CLIENT ID"""
    return ctx.client.id


def getname(ctx: Context, _args: Args) -> Reply:
    """CLIENT GETNAME"""
    return ctx.client.name or None


def setname(ctx: Context, args: Args) -> Reply:
    """CLIENT SETNAME connection-name"""
    ctx.client.name = client_name(args.bytes())
    return OK


def setinfo(ctx: Context, args: Args) -> Reply:
    """CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>"""
    word, value = args.bytes(), args.bytes()
    option = word.upper()
    if option not in (b"LIB-NAME", b"LIB-VER"):
        raise unrecognized_option(word)
    if not printable(value) or len(value) > _INFO_BYTES_MAX:
        raise bad_client_info(option)
    if option == b"LIB-NAME":
        ctx.client.lib_name = value
    else:
        ctx.client.lib_version = value
    return OK


def info(ctx: Context, _args: Args) -> Reply:
    """CLIENT INFO"""
    return Verbatim(ctx.client.describe(ctx.now_ms) + b"\n")


def list_(ctx: Context, args: Args) -> Reply:
    """CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"""  # noqa: E501
    clients = ctx.server.clients()
    if args:
        option = args.token()
        if option == b"TYPE" and args.remaining() == 1:
            clients = clients if _has_type(args.bytes()) else ()
        elif option == b"ID" and args:
            wanted = {integer(word, BAD_CLIENT_ID) for word in args.rest()}
            clients = [client for client in clients if client.id in wanted]
        else:
            raise CommandError(SYNTAX)
    now_ms = ctx.now_ms
    return Verbatim(b"".join(client.describe(now_ms) + b"\n" for client in clients))


def no_evict(ctx: Context, args: Args) -> Reply:
    """CLIENT NO-EVICT <ON | OFF>"""
    ctx.client.no_evict = _is_on(args)
    return OK


def no_touch(ctx: Context, args: Args) -> Reply:
    """CLIENT NO-TOUCH <ON | OFF>"""
    ctx.client.no_touch = _is_on(args)
    return OK


def unblock(ctx: Context, args: Args) -> Reply:
    """CLIENT UNBLOCK client-id [TIMEOUT | ERROR]"""
    if args.remaining() > 2:
        raise bad_subcommand(b"client", args.words[1])  # noqa: EM101
    word = args.bytes()
    reason = args.token() if args else b"TIMEOUT"
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise CommandError(BAD_UNBLOCK_REASON)
    return int(ctx.server.unblock(integer(word), error=reason == b"ERROR"))


def kill(ctx: Context, args: Args) -> Answer:
    """CLIENT KILL <ip:port | [ID client-id] [TYPE type] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE maxage]>"""  # noqa: E501
    if args.remaining() == 1:
        address = args.bytes()
        victims = [c for c in ctx.server.clients() if c.address == address]
        if not victims:
            raise CommandError(NO_SUCH_CLIENT)
        return Outcome(OK, _ends(ctx, victims[:1]))

    tests: list[Callable[[Client], bool]] = []
    skip_me = True
    while args:
        option = args.token()
        if option == b"SKIPME":
            skip_me = _is_yes(args)
        else:
            tests.append(_test(ctx, option, args.bytes()))
    victims = [
        client
        for client in ctx.server.clients()
        if all(test(client) for test in tests)
        and not (skip_me and client.id == ctx.client.id)
    ]
    return Outcome(len(victims), _ends(ctx, victims))


def help_(_ctx: Context, _args: Args) -> Reply:
    """CLIENT HELP"""
    return [Simple(line) for line in _HELP]


def _test(ctx: Context, option: bytes, value: bytes) -> Callable[[Client], bool]:
    match option:
        case b"ID":
            wanted = integer(value, KILL_ID_NOT_POSITIVE)
            if wanted < 1:
                raise CommandError(KILL_ID_NOT_POSITIVE)
            return lambda client: client.id == wanted
        case b"TYPE":
            right = _has_type(value)
            return lambda _client: right
        case b"USER":
            if ctx.server.users.get(value) is None:
                raise no_such_user(value)
            return lambda client: client.user.name == value
        case b"ADDR":
            return lambda client: client.address == value
        case b"LADDR":
            return lambda client: client.local_address == value
        case b"MAXAGE":
            age_s = integer(value, MAXAGE_NOT_AN_INTEGER)
            if age_s < 1:
                raise CommandError(MAXAGE_NOT_POSITIVE)
            return lambda client: ctx.now_ms - client.created_ms >= age_s * 1000
        case _:
            raise CommandError(SYNTAX)


def _ends(ctx: Context, victims: list[Client]) -> list[Close | Kill]:
    """The client that asks is answered before it is closed."""
    others = [client.id for client in victims if client.id != ctx.client.id]
    effects: list[Close | Kill] = [Kill(others)] if others else []
    if len(others) < len(victims):
        effects.append(Close())
    return effects


def _has_type(word: bytes) -> bool:
    """Every connection here is of type normal."""
    if word.lower() not in _TYPES:
        raise unknown_client_type(word)
    return word.lower() == b"normal"


def _is_on(args: Args) -> bool:
    word = args.token()
    if word not in (b"ON", b"OFF"):
        raise CommandError(SYNTAX)
    return word == b"ON"


def _is_yes(args: Args) -> bool:
    word = args.token()
    if word not in (b"YES", b"NO"):
        raise CommandError(SYNTAX)
    return word == b"YES"
