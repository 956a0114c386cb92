"""HELLO, AUTH, PING, ECHO, QUIT, RESET, SELECT.

Without a password of the default user every connection is that user from the
start; the setting ``requirepass`` gives it one.
"""

from __future__ import annotations

from ..protocol.reply import OK, PONG, Map, Reply, Simple
from .args import Args
from .context import Answer, Close, Context, Outcome, Reset
from .errors import (
    BAD_CLIENT_NAME,
    DB_NOT_A_C_INT,
    DB_OUT_OF_RANGE,
    HELLO_NO_AUTH,
    NO_PASSWORD_SET,
    NO_PROTOCOL,
    PROTOCOL_NOT_AN_INTEGER,
    SYNTAX,
    WRONG_PASSWORD,
    CommandError,
    bad_hello_option,
    wrong_arity,
)
from .permission import log_refusal
from .rights import DEFAULT_USER
from .transactions import end_multi

REDIS_VERSION = b"7.2.4"  # an API: clients choose commands by it
NAME_BYTES_MAX = 64 * 1024


def hello(ctx: Context, args: Args) -> Reply:
    """HELLO [protover [AUTH username password] [SETNAME clientname]]"""
    client = ctx.client
    protocol = client.resp
    if args:
        protocol = args.int(error=PROTOCOL_NOT_AN_INTEGER)
        if protocol not in (2, 3):
            raise CommandError(NO_PROTOCOL)

    credentials: tuple[bytes, bytes] | None = None
    name: bytes | None = None
    while args:
        word = args.bytes()
        option = word.upper()
        if option == b"AUTH" and args.remaining() >= 2:
            credentials = args.bytes(), args.bytes()
        elif option == b"SETNAME" and args:
            name = client_name(args.bytes())
        else:
            raise bad_hello_option(word)

    if credentials:
        _authenticate(ctx, args, *credentials)
    if ctx.server.users.in_force(client) is None:
        raise CommandError(HELLO_NO_AUTH)
    if name is not None:
        client.name = name
    client.resp = protocol
    return Map(
        (
            (b"server", b"redis"),
            (b"version", REDIS_VERSION),
            (b"proto", protocol),
            (b"id", client.id),
            (b"mode", b"standalone"),
            (b"role", b"master"),
            (b"modules", ()),
        )
    )


def auth(ctx: Context, args: Args) -> Reply:
    """AUTH [username] password"""
    if args.remaining() > 2:
        raise CommandError(SYNTAX)
    if args.remaining() == 2:
        _authenticate(ctx, args, args.bytes(), args.bytes())
        return OK
    if ctx.server.users.default.no_password:
        raise CommandError(NO_PASSWORD_SET)
    _authenticate(ctx, args, DEFAULT_USER, args.bytes())
    return OK


def ping(_ctx: Context, args: Args) -> Reply:
    """PING [message]"""
    if args.remaining() > 1:
        raise wrong_arity(b"ping")  # noqa: EM101
    return args.bytes() if args else PONG


def echo(_ctx: Context, args: Args) -> Reply:
    """ECHO message"""
    return args.bytes()


def quit_(_ctx: Context, _args: Args) -> Answer:
    """QUIT"""
    return Outcome(OK, (Close(),))


def reset(ctx: Context, _args: Args) -> Answer:
    """RESET"""
    client = ctx.client
    end_multi(ctx)
    client.db = 0
    client.resp = 2
    client.name = b""
    ctx.keyspace.detach(client.id, ctx.now_ms)
    client.user = ctx.server.users.newcomer()
    client.no_evict = client.no_touch = False
    return Outcome(Simple(b"RESET"), (Reset(),))


def select(ctx: Context, args: Args) -> Reply:
    """SELECT index"""
    db = args.int()
    if not -(2**31) <= db < 2**31:
        raise CommandError(DB_NOT_A_C_INT)
    if not 0 <= db < ctx.settings.databases:
        raise CommandError(DB_OUT_OF_RANGE)
    ctx.client.db = db
    return OK


def client_name(name: bytes) -> bytes:
    """A name that fits into a line of CLIENT LIST."""
    if not printable(name) or len(name) > NAME_BYTES_MAX:
        raise CommandError(BAD_CLIENT_NAME)
    return name


def printable(word: bytes) -> bool:
    return all(0x21 <= byte <= 0x7E for byte in word)


def _authenticate(ctx: Context, args: Args, name: bytes, password: bytes) -> None:
    user = ctx.server.users.sign_in(name, password)
    if user is None:
        log_refusal(ctx, b"auth", args.words[0], name)
        raise CommandError(WRONG_PASSWORD)
    ctx.keyspace.detach(ctx.client.id, ctx.now_ms)  # its claims are another's now
    ctx.client.user = user
