# ruff: noqa: E501 (a row is one line)
"""Every command the server knows, one row each.

A test compares name, arity, flags, key positions and ACL categories with what
COMMAND INFO says on real Redis servers. The categories that follow from the
flags (@read, @write, @fast, @slow, @blocking, @admin, @dangerous) are not
repeated in the rows. ``consume`` and ``manage`` are felixresp's own: a command that
names a group is in one of them, and no other command is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from . import (
    acl,
    claims,
    clients,
    connection,
    dead_letters,
    groups,
    oversight,
    polling,
    reading,
    server,
    settling,
    streams,
    strings,
    transactions,
    xinfo,
)
from . import keys as key
from .command import Command, Flags, Keys, keys, keys_after
from .context import Handler, HotHandler
from .introspection import Introspection

Row = tuple[str, int, Flags, Keys | None, str, Handler]

# fmt: off
_CATEGORIES = (  # in the order in which COMMAND INFO has them
    "keyspace", "read", "write", "string", "stream", "admin", "fast", "slow", "blocking",
    "dangerous", "connection", "transaction", "consume", "manage",
)
# fmt: on

COMMANDS: dict[bytes, Command] = {}
_about = Introspection(COMMANDS)  # the handlers of COMMAND read the table itself
_exec = partial(transactions.exec_, COMMANDS)

NONE, R, W = Flags.NONE, Flags.READONLY, Flags.WRITE
OOM, FAST, BLOCK, MOVABLE = Flags.DENYOOM, Flags.FAST, Flags.BLOCKING, Flags.MOVABLEKEYS
STALE, NO_SCRIPT, ADMIN = Flags.STALE, Flags.NOSCRIPT, Flags.ADMIN
BUSY, NO_SLOWLOG = Flags.ALLOW_BUSY, Flags.SKIP_SLOWLOG
NOW, NOT_IN_MULTI = Flags.IMMEDIATE, Flags.NO_MULTI
ANY = Flags.LOADING | STALE  # at any time
CLIENT = ANY | NO_SCRIPT
MULTI = CLIENT | FAST | BUSY
SIGN_IN = MULTI | Flags.NO_AUTH

# fmt: off
_ROWS: Sequence[Row] = (
    # name                  arity flags                      keys                          categories              handler
    ("AUTH",                   -2, SIGN_IN,                   None,                         "connection",           connection.auth),
    ("CLIENT",                 -2, NONE,                      None,                         "",                     server.container),
    ("CLIENT|GETNAME",          2, CLIENT,                    None,                         "connection",           clients.getname),
    ("CLIENT|HELP",             2, ANY,                       None,                         "connection",           clients.help_),
    ("CLIENT|ID",               2, CLIENT,                    None,                         "connection",           clients.id_),
    ("CLIENT|INFO",             2, CLIENT,                    None,                         "connection",           clients.info),
    ("CLIENT|KILL",            -3, CLIENT | ADMIN,            None,                         "connection",           clients.kill),
    ("CLIENT|LIST",            -2, CLIENT | ADMIN,            None,                         "connection",           clients.list_),
    ("CLIENT|NO-EVICT",         3, CLIENT | ADMIN,            None,                         "connection",           clients.no_evict),
    ("CLIENT|NO-TOUCH",         3, CLIENT,                    None,                         "connection",           clients.no_touch),
    ("CLIENT|SETINFO",          4, CLIENT,                    None,                         "connection",           clients.setinfo),
    ("CLIENT|SETNAME",          3, CLIENT,                    None,                         "connection",           clients.setname),
    ("CLIENT|UNBLOCK",         -3, CLIENT | ADMIN,            None,                         "connection",           clients.unblock),
    ("ECHO",                    2, ANY | FAST,                None,                         "connection",           connection.echo),
    ("HELLO",                  -1, SIGN_IN,                   None,                         "connection",           connection.hello),
    ("PING",                   -1, FAST,                      None,                         "connection",           connection.ping),
    ("QUIT",                   -1, SIGN_IN | NOW,             None,                         "connection",           connection.quit_),
    ("RESET",                   1, SIGN_IN | NOW,             None,                         "connection",           connection.reset),
    ("SELECT",                  2, ANY | FAST,                None,                         "connection",           connection.select),

    ("DEL",                    -2, W,                         keys(1, -1, 1, "RM delete"),  "keyspace",             key.delete),
    ("EXISTS",                 -2, R | FAST,                  keys(1, -1, 1, "RO"),         "keyspace",             key.exists),
    ("EXPIRE",                 -3, W | FAST,                  keys(1, 1, 1, "RW update"),   "keyspace",             key.expire),
    ("EXPIREAT",               -3, W | FAST,                  keys(1, 1, 1, "RW update"),   "keyspace",             key.expireat),
    ("EXPIRETIME",              2, R | FAST,                  keys(1, 1, 1, "RO access"),   "keyspace",             key.expiretime),
    ("FLUSHALL",               -1, W,                         None,                         "keyspace dangerous",   key.flushall),
    ("FLUSHDB",                -1, W,                         None,                         "keyspace dangerous",   key.flushdb),
    ("KEYS",                    2, R,                         None,                         "keyspace dangerous",   key.keys),
    ("PERSIST",                 2, W | FAST,                  keys(1, 1, 1, "RW update"),   "keyspace",             key.persist),
    ("PEXPIRE",                -3, W | FAST,                  keys(1, 1, 1, "RW update"),   "keyspace",             key.pexpire),
    ("PEXPIREAT",              -3, W | FAST,                  keys(1, 1, 1, "RW update"),   "keyspace",             key.pexpireat),
    ("PEXPIRETIME",             2, R | FAST,                  keys(1, 1, 1, "RO access"),   "keyspace",             key.pexpiretime),
    ("PTTL",                    2, R | FAST,                  keys(1, 1, 1, "RO access"),   "keyspace",             key.pttl),
    ("RENAME",                  3, W,                         keys(1, 2, 1, "RW access delete", "OW update"), "keyspace",             key.rename),
    ("RENAMENX",                3, W | FAST,                  keys(1, 2, 1, "RW access delete", "OW insert"), "keyspace",             key.renamenx),
    ("SCAN",                   -2, R,                         None,                         "keyspace",             key.scan),
    ("TTL",                     2, R | FAST,                  keys(1, 1, 1, "RO access"),   "keyspace",             key.ttl),
    ("TYPE",                    2, R | FAST,                  keys(1, 1, 1, "RO"),          "keyspace",             key.type_),
    ("UNLINK",                 -2, W | FAST,                  keys(1, -1, 1, "RM delete"),  "keyspace",             key.unlink),

    ("GET",                     2, R | FAST,                  keys(1, 1, 1, "RO access"),   "string",               strings.get),
    ("SET",                    -3, W | OOM,                   keys(1, 1, 1, "RW access update variable_flags"), "string",               strings.set_),
    ("STRLEN",                  2, R | FAST,                  keys(1, 1, 1, "RO"),          "string",               strings.strlen),

    ("XADD",                   -5, W | OOM | FAST,            keys(1, 1, 1, "RW update"),   "stream",               streams.xadd),
    ("XDEL",                   -3, W | FAST,                  keys(1, 1, 1, "RW delete"),   "stream",               streams.xdel),
    ("XLEN",                    2, R | FAST,                  keys(1, 1, 1, "RO"),          "stream",               streams.xlen),
    ("XRANGE",                 -4, R,                         keys(1, 1, 1, "RO access"),   "stream",               streams.xrange),
    ("XREAD",                  -4, R | BLOCK | MOVABLE,       keys_after(b"STREAMS", 1, "RO access"), "stream",               reading.xread),
    ("XREVRANGE",              -4, R,                         keys(1, 1, 1, "RO access"),   "stream",               streams.xrevrange),
    ("XSETID",                 -3, W | OOM | FAST,            keys(1, 1, 1, "RW update"),   "stream",               streams.xsetid),
    ("XTRIM",                  -4, W,                         keys(1, 1, 1, "RW delete"),   "stream",               streams.xtrim),
    ("XACK",                    -4, W | FAST,                   keys(1, 1, 1, "RW update"),   "stream consume",       claims.xack),
    ("XAUTOCLAIM",              -6, W | FAST,                   keys(1, 1, 1, "RW delete"),   "stream consume",       claims.xautoclaim),
    ("XCLAIM",                  -6, W | FAST,                   keys(1, 1, 1, "RW update"),   "stream consume",       claims.xclaim),
    ("XPENDING",                -3, R,                          keys(1, 1, 1, "RO access"),   "stream consume",       claims.xpending),
    ("XREADGROUP",             -7, W | BLOCK | MOVABLE,       keys_after(b"STREAMS", 4, "RO access"), "stream consume",       reading.xreadgroup),
    ("XPOLL",                  -4, W | BLOCK,                 keys(1, 1, 1, "RO access"),   "stream consume",       polling.xpoll),
    ("XNACK",                  -7, W | FAST,                  keys(1, 1, 1, "RW update"),   "stream consume",       settling.xnack),
    ("XEXTEND",                -7, W | FAST,                  keys(1, 1, 1, "RW update"),   "stream consume",       settling.xextend),
    ("XEXPLAIN",               -3, R,                         keys(1, 1, 1, "RO access"),   "stream consume",       oversight.xexplain),
    ("XGROUP",                 -2, NONE,                      None,                         "",                     server.container),
    ("XGROUP|CONFIG",          -5, W,                         keys(3, 3, 1, "RW update"),   "stream manage",        oversight.config),
    ("XGROUP|CREATE",          -5, W | OOM,                   keys(2, 2, 1, "RW insert"),   "stream manage",        groups.create),
    ("XGROUP|CREATECONSUMER",   5, W | OOM,                   keys(2, 2, 1, "RW insert"),   "stream consume",       groups.createconsumer),
    ("XGROUP|DELCONSUMER",      5, W,                         keys(2, 2, 1, "RW delete"),   "stream consume",       groups.delconsumer),
    ("XGROUP|DESCRIBE",         4, R,                         keys(2, 2, 1, "RO access"),   "stream consume",       oversight.describe),
    ("XGROUP|DESTROY",          4, W,                         keys(2, 2, 1, "RW delete"),   "stream manage",        groups.destroy),
    ("XGROUP|HELP",             2, ANY,                       None,                         "stream",               groups.help_),
    ("XGROUP|PAUSE",            4, W,                         keys(2, 2, 1, "RW update"),   "stream manage",        oversight.pause),
    ("XGROUP|RESUME",           4, W,                         keys(2, 2, 1, "RW update"),   "stream manage",        oversight.resume),
    ("XGROUP|SEEK",            -5, W,                         keys(2, 2, 1, "RW update"),   "stream manage",        oversight.seek),
    ("XGROUP|SETID",           -5, W,                         keys(2, 2, 1, "RW update"),   "stream manage",        groups.setid),
    ("XINFO",                   -2, NONE,                       None,                         "",                     server.container),
    ("XINFO|CONSUMERS",          4, R,                          keys(2, 2, 1, "RO access"),   "stream consume",       xinfo.consumers),
    ("XINFO|GROUPS",             3, R,                          keys(2, 2, 1, "RO access"),   "stream",               xinfo.groups),
    ("XINFO|HELP",               2, ANY,                        None,                         "stream",               xinfo.help_),
    ("XINFO|STREAM",            -3, R,                          keys(2, 2, 1, "RO access"),   "stream",               xinfo.stream),
    ("XDLQ",                    -2, NONE,                       None,                         "",                     server.container),
    ("XDLQ|DISCARD",            -5, W,                          keys(2, 2, 1, "RW delete"),   "stream manage",        dead_letters.discard),
    ("XDLQ|HELP",                2, ANY,                        None,                         "stream",               dead_letters.help_),
    ("XDLQ|LEN",                 4, R,                          keys(2, 2, 1, "RO"),          "stream consume",       dead_letters.len_),
    ("XDLQ|LIST",               -4, R,                          keys(2, 2, 1, "RO access"),   "stream consume",       dead_letters.list_),
    ("XDLQ|REDRIVE",            -5, W,                          keys(2, 2, 1, "RW update"),   "stream manage",        dead_letters.redrive),

    ("DISCARD",                 1, MULTI | NOW,               None,                         "transaction",          transactions.discard),
    ("EXEC",                    1, CLIENT | NOW | NO_SLOWLOG, None,                         "transaction",          _exec),
    ("MULTI",                   1, MULTI | NOW,               None,                         "transaction",          transactions.multi),
    ("UNWATCH",                 1, MULTI,                     None,                         "transaction",          transactions.unwatch),
    ("WATCH",                  -2, MULTI | NOW,               keys(1, -1, 1, "RO"),         "transaction",          transactions.watch),

    ("ACL",                    -2, NONE,                      None,                         "",                     server.container),
    ("ACL|CAT",                -2, CLIENT,                    None,                         "",                     acl.cat),
    ("ACL|DELUSER",            -3, CLIENT | ADMIN,            None,                         "",                     acl.deluser),
    ("ACL|DRYRUN",             -4, CLIENT | ADMIN,            None,                         "",                     acl.dryrun),
    ("ACL|GENPASS",            -2, CLIENT,                    None,                         "",                     acl.genpass),
    ("ACL|GETUSER",             3, CLIENT | ADMIN,            None,                         "",                     acl.getuser),
    ("ACL|HELP",                2, ANY,                       None,                         "",                     acl.help_),
    ("ACL|LIST",                2, CLIENT | ADMIN,            None,                         "",                     acl.list_),
    ("ACL|LOAD",                2, CLIENT | ADMIN,            None,                         "",                     acl.load),
    ("ACL|LOG",                -2, CLIENT | ADMIN,            None,                         "",                     acl.log),
    ("ACL|SAVE",                2, CLIENT | ADMIN,            None,                         "",                     acl.save),
    ("ACL|SETUSER",            -3, CLIENT | ADMIN,            None,                         "",                     acl.setuser),
    ("ACL|USERS",               2, CLIENT | ADMIN,            None,                         "",                     acl.users),
    ("ACL|WHOAMI",              2, CLIENT,                    None,                         "",                     acl.whoami),
    ("CLUSTER",                -2, NONE,                      None,                         "",                     server.container),
    ("CLUSTER|INFO",            2, STALE,                     None,                         "",                     server.cluster),
    ("CLUSTER|MYID",            2, STALE,                     None,                         "",                     server.cluster),
    ("CLUSTER|NODES",           2, STALE,                     None,                         "",                     server.cluster),
    ("CLUSTER|SHARDS",          2, ANY,                       None,                         "",                     server.cluster),
    ("CLUSTER|SLOTS",           2, ANY,                       None,                         "",                     server.cluster),
    ("COMMAND",                -1, ANY,                       None,                         "connection",           _about.command),
    ("COMMAND|COUNT",           2, ANY,                       None,                         "connection",           _about.count),
    ("COMMAND|DOCS",           -2, ANY,                       None,                         "connection",           _about.docs),
    ("COMMAND|GETKEYS",        -3, ANY,                       None,                         "connection",           _about.getkeys),
    ("COMMAND|HELP",            2, ANY,                       None,                         "connection",           _about.help_),
    ("COMMAND|INFO",           -2, ANY,                       None,                         "connection",           _about.info),
    ("COMMAND|LIST",           -2, ANY,                       None,                         "connection",           _about.list_),
    ("CONFIG",                 -2, NONE,                      None,                         "",                     server.container),
    ("CONFIG|GET",             -3, CLIENT | ADMIN,            None,                         "",                     server.config_get),
    ("CONFIG|HELP",             2, ANY,                       None,                         "",                     server.config_help),
    ("CONFIG|RESETSTAT",        2, CLIENT | ADMIN,            None,                         "",                     server.config_resetstat),
    ("CONFIG|SET",             -4, CLIENT | ADMIN,            None,                         "",                     server.config_set),
    ("DBSIZE",                  1, R | FAST,                  None,                         "keyspace",             server.dbsize),
    ("INFO",                   -1, ANY,                       None,                         "dangerous",            server.info),
    ("LATENCY",                -2, NONE,                      None,                         "",                     server.container),
    ("LATENCY|HISTORY",         3, CLIENT | ADMIN,            None,                         "",                     server.latency_history),
    ("LATENCY|LATEST",          2, CLIENT | ADMIN,            None,                         "",                     server.latency_latest),
    ("LATENCY|RESET",          -2, CLIENT | ADMIN,            None,                         "",                     server.latency_reset),
    ("MEMORY",                 -2, NONE,                      None,                         "",                     server.container),
    ("MEMORY|HELP",             2, ANY,                       None,                         "",                     server.memory_help),
    ("MEMORY|USAGE",           -3, R,                         keys(2, 2, 1, "RO"),          "",                     server.memory_usage),
    ("MODULE",                 -2, NONE,                      None,                         "",                     server.container),
    ("MODULE|LIST",             2, ADMIN | NO_SCRIPT,         None,                         "",                     server.module_list),
    ("MONITOR",                 1, CLIENT | ADMIN,            None,                         "",                     server.monitor),
    ("OBJECT",                 -2, NONE,                      None,                         "",                     server.container),
    ("OBJECT|ENCODING",         3, R,                         keys(2, 2, 1, "RO"),          "keyspace",             server.object_encoding),
    ("OBJECT|FREQ",             3, R,                         keys(2, 2, 1, "RO"),          "keyspace",             server.object_freq),
    ("OBJECT|HELP",             2, ANY,                       None,                         "keyspace",             server.object_help),
    ("OBJECT|REFCOUNT",         3, R,                         keys(2, 2, 1, "RO"),          "keyspace",             server.object_refcount),
    ("SHUTDOWN",               -1, CLIENT | ADMIN | BUSY | NOT_IN_MULTI, None,                         "",                     server.shutdown),
    ("SLOWLOG",                -2, NONE,                      None,                         "",                     server.container),
    ("SLOWLOG|GET",            -2, ANY | ADMIN,               None,                         "",                     server.slowlog_get),
    ("SLOWLOG|LEN",             2, ANY | ADMIN,               None,                         "",                     server.slowlog_len),
    ("SLOWLOG|RESET",           2, ANY | ADMIN,               None,                         "",                     server.slowlog_reset),
    ("TIME",                    1, ANY | FAST,                None,                         "",                     server.time),
)
# fmt: on


def _categories(flags: Flags, given: str) -> tuple[str, ...]:
    found = set(given.split())
    found.add("fast" if Flags.FAST in flags else "slow")
    for flag, names in (
        (Flags.READONLY, ("read",)),
        (Flags.WRITE, ("write",)),
        (Flags.BLOCKING, ("blocking",)),
        (Flags.ADMIN, ("admin", "dangerous")),
    ):
        if flag in flags:
            found.update(names)
    return tuple(name for name in _CATEGORIES if name in found)


def _build(rows: Sequence[Row]) -> Mapping[bytes, Command]:
    """A container comes before its subcommands."""
    commands: dict[bytes, Command] = {}
    subcommands: dict[bytes, dict[bytes, Command]] = {}
    for name, arity, flags, where, given, handler in rows:
        word = name.lower().encode()
        container, bar, last = word.partition(b"|")
        inner = subcommands.setdefault(container, {})
        categories = _categories(flags, given)
        command = Command(
            word, arity, flags, where, categories, handler, {} if bar else inner
        )
        if bar:
            inner[last] = command
        else:
            commands[word] = command
    return commands


COMMANDS.update(_build(_ROWS))

# The busiest shapes of the busiest commands, tried before the general way.
HOT: Mapping[bytes, HotHandler] = {
    spelling: handler
    for name, handler in (
        (b"XADD", streams.xadd_plain),
        (b"XREADGROUP", reading.xreadgroup_plain),
        (b"XACK", claims.xack_plain),
    )
    for spelling in (name, name.lower())
}
