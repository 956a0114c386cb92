"""INFO, CONFIG, TIME, DBSIZE, MEMORY, OBJECT, MONITOR, SHUTDOWN; and the empty
answers of CLUSTER, MODULE, LATENCY and SLOWLOG, for what this server has none of.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..config import SETTINGS, InvalidSetting
from ..engine.stream import Stream
from ..engine.values import String
from ..protocol.reply import OK, Map, Reply, Simple, Verbatim
from .args import Args, integer
from .context import Answer, Context, Monitor, Outcome, Shutdown
from .errors import (
    BAD_SLOWLOG_COUNT,
    CLUSTER_DISABLED,
    MONITOR_IN_MULTI,
    NO_SHUTDOWN,
    NOT_LFU,
    SYNTAX,
    CommandError,
    config_failed,
    config_unknown,
)
from .glob import matches

_EMBEDDED_BYTES_MAX = 44
_SAMPLES = 5  # nodes of a stream that are measured
_KEY_BYTES = 96  # what a key costs besides its own bytes

# What clients and tools ask that is no setting here: how it is, and stays.
_FACTS = {
    "appendonly": "yes",
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "replica-read-only": "yes",
    "save": "",
}

_SHUTDOWN_WORDS = frozenset((b"NOSAVE", b"SAVE", b"NOW", b"FORCE"))

_CONFIG_HELP = (
    b"CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"GET <pattern>",
    b"    Return parameters matching the glob-like <pattern> and their values.",
    b"SET <directive> <value>",
    b"    Set the configuration <directive> to <value>.",
    b"RESETSTAT",
    b"    Reset statistics reported by the INFO command.",
    b"HELP",
    b"    Print this help.",
)
_MEMORY_HELP = (
    b"MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"USAGE <key> [SAMPLES <count>]",
    b"    Return memory in bytes used by <key> and its value. Nested values are",
    b"    sampled up to <count> times (default: 5, 0 means sample all).",
    b"HELP",
    b"    Print this help.",
)
_OBJECT_HELP = (
    b"OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"ENCODING <key>",
    b"    Return the kind of internal representation used in order to store the value",
    b"    associated with a <key>.",
    b"FREQ <key>",
    b"    Return the access frequency index of the <key>. The returned integer is",
    b"    proportional to the logarithm of the recent access frequency of the key.",
    b"REFCOUNT <key>",
    b"    Return the number of references of the value associated with the specified",
    b"    <key>.",
    b"HELP",
    b"    Print this help.",
)


def info(ctx: Context, args: Args) -> Reply:
    """INFO [section [section ...]]"""
    wanted = {word.decode("latin-1").lower() for word in args.rest()}
    everything = not wanted or not wanted.isdisjoint(("all", "default", "everything"))
    parts = []
    for section, fields in ctx.server.info().items():
        if everything or section.lower() in wanted:
            lines = "".join(f"{name}:{value}\r\n" for name, value in fields.items())
            parts.append(f"# {section}\r\n{lines}")
    return Verbatim("\r\n".join(parts).encode("utf-8", "surrogateescape"))


def config_get(ctx: Context, args: Args) -> Reply:
    """CONFIG GET parameter [parameter ...]"""
    found: dict[bytes, Reply] = {}
    patterns = args.rest()
    for name in (*SETTINGS, *_FACTS):
        for pattern in patterns:
            if matches(pattern.lower(), name.encode()):
                # a name without a wildcard comes back as the client spelled it
                plain = pattern.lower() == name.encode()
                text = _FACTS[name] if name in _FACTS else ctx.settings.get(name)
                value = text.encode("utf-8", "surrogateescape")
                found[pattern if plain else name.encode()] = value
                break
    return Map(tuple(found.items()))


def config_set(ctx: Context, args: Args) -> Reply:
    """CONFIG SET parameter value [parameter value ...]"""
    if args.remaining() % 2:
        raise CommandError(SYNTAX)
    values: dict[str, str] = {}
    while args:
        word, value = args.bytes(), args.bytes()
        name = word.decode("latin-1").lower()
        setting = SETTINGS.get(name)
        if setting is None and name not in _FACTS:
            raise config_unknown(word)
        if setting is None or setting.fixed:
            raise config_failed(word, b"can't set immutable config")
        if name in values:
            raise config_failed(word, b"duplicate parameter")
        text = value.decode("utf-8", "surrogateescape")
        try:
            setting.parse(text)
        except InvalidSetting as exc:
            reason = str(exc).encode("utf-8", "surrogateescape")
            raise config_failed(word, reason) from None
        values[name] = text
    for name, text in values.items():
        ctx.settings.set(name, text)
    if "requirepass" in values:
        ctx.server.users.require_password()
    return OK


def config_resetstat(ctx: Context, _args: Args) -> Reply:
    """CONFIG RESETSTAT"""
    ctx.server.reset_statistics()
    return OK


def config_help(_ctx: Context, _args: Args) -> Reply:
    """CONFIG HELP"""
    return _lines(_CONFIG_HELP)


def time(ctx: Context, _args: Args) -> Reply:
    """TIME"""
    seconds, us = divmod(ctx.wall_us, 1_000_000)
    return [b"%d" % seconds, b"%d" % us]


def dbsize(ctx: Context, _args: Args) -> Reply:
    """DBSIZE"""
    return ctx.keyspace.size(ctx.client.db)


def memory_usage(ctx: Context, args: Args) -> Reply:
    """MEMORY USAGE key [SAMPLES count]"""
    key, samples = args.bytes(), _SAMPLES
    while args:
        if args.token() != b"SAMPLES" or not args:
            raise CommandError(SYNTAX)
        samples = args.int()
        if samples < 0:
            raise CommandError(SYNTAX)
    value = ctx.keyspace.get(ctx.client.db, key)
    if value is None:
        return None
    own_bytes = _KEY_BYTES + len(key)
    if not isinstance(value, Stream):
        return own_bytes + len(value.data)
    nodes = value.nodes[: samples or None]
    node_bytes = sum(node.listpack_bytes for node in nodes)
    return own_bytes + node_bytes * len(value.nodes) // max(len(nodes), 1)


def memory_help(_ctx: Context, _args: Args) -> Reply:
    """MEMORY HELP"""
    return _lines(_MEMORY_HELP)


def object_encoding(ctx: Context, args: Args) -> Reply:
    """OBJECT ENCODING key"""
    value = ctx.keyspace.get(ctx.client.db, args.bytes())
    if value is None:
        return None
    return b"stream" if isinstance(value, Stream) else _encoding(value)


def object_freq(ctx: Context, args: Args) -> Reply:
    """OBJECT FREQ key"""
    if ctx.keyspace.get(ctx.client.db, args.bytes()) is None:
        return None
    raise CommandError(NOT_LFU)


def object_refcount(ctx: Context, args: Args) -> Reply:
    """OBJECT REFCOUNT key"""
    return None if ctx.keyspace.get(ctx.client.db, args.bytes()) is None else 1


def object_help(_ctx: Context, _args: Args) -> Reply:
    """OBJECT HELP"""
    return _lines(_OBJECT_HELP)


def monitor(ctx: Context, _args: Args) -> Answer:
    """MONITOR"""
    if ctx.in_multi:
        raise CommandError(MONITOR_IN_MULTI)
    return Outcome(OK, (Monitor(),))


def shutdown(_ctx: Context, args: Args) -> Answer:
    """SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]"""
    words = {word.upper() for word in args.rest()}
    if words == {b"ABORT"}:
        raise CommandError(NO_SHUTDOWN)
    if words - _SHUTDOWN_WORDS or words >= {b"NOSAVE", b"SAVE"}:
        raise CommandError(SYNTAX)
    return Outcome(OK, (Shutdown(),))


def cluster(_ctx: Context, _args: Args) -> Reply:
    """CLUSTER"""
    raise CommandError(CLUSTER_DISABLED)


def container(_ctx: Context, _args: Args) -> Reply:
    """A command that only has subcommands; its arity lets no call through."""
    raise CommandError(SYNTAX)


def module_list(_ctx: Context, _args: Args) -> Reply:
    """MODULE LIST"""
    return []


def latency_latest(_ctx: Context, _args: Args) -> Reply:
    """LATENCY LATEST"""
    return []


def latency_history(_ctx: Context, _args: Args) -> Reply:
    """LATENCY HISTORY event"""
    return []


def latency_reset(_ctx: Context, _args: Args) -> Reply:
    """LATENCY RESET [event [event ...]]"""
    return 0


def slowlog_get(_ctx: Context, args: Args) -> Reply:
    """SLOWLOG GET [count]"""
    if args and args.int(error=BAD_SLOWLOG_COUNT) < -1:
        raise CommandError(BAD_SLOWLOG_COUNT)
    return []


def slowlog_len(_ctx: Context, _args: Args) -> Reply:
    """SLOWLOG LEN"""
    return 0


def slowlog_reset(_ctx: Context, _args: Args) -> Reply:
    """SLOWLOG RESET"""
    return OK


def _lines(text: Sequence[bytes]) -> Reply:
    return [Simple(line) for line in text]


def _encoding(string: String) -> bytes:
    data = string.data
    try:
        integer(data)
    except CommandError:
        return b"embstr" if len(data) <= _EMBEDDED_BYTES_MAX else b"raw"
    return b"int"
