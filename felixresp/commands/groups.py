"""XGROUP: create, move and destroy groups and consumers."""

from __future__ import annotations

from ..engine.claims import move
from ..engine.ids import MIN_ID
from ..engine.members import consumer_named, remove_consumer
from ..engine.stream import Stream
from ..protocol.reply import OK, Reply, Simple
from .args import Args, entry_id
from .context import Context
from .errors import (
    BAD_ENTRIES_READ,
    BUSY_GROUP,
    XGROUP_NO_KEY,
    CommandError,
    bad_subcommand,
)
from .lookup import managed_group, managed_stream
from .ranges import loose_id

_COMMAND = b"xgroup"
_CREATE_WORDS_MAX = 8
_SETID_WORDS_MAX = 7

_HELP = (
    b"XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    b"CREATE <key> <groupname> <id|$> [option]",
    b"    Create a new consumer group. Options are:",
    b"    * MKSTREAM",
    b"      Create the empty stream if it does not exist.",
    b"    * ENTRIESREAD entries_read",
    b"      Set the group's entries_read counter (internal use).",
    b"CONFIG GET <key> <groupname> [<pattern> ...]",
    b"    Show the group's settings.",
    b"CONFIG SET <key> <groupname> <name> <value> [<name> <value> ...]",
    b"    Give the group settings of its own.",
    b"CREATECONSUMER <key> <groupname> <consumer>",
    b"    Create a new consumer in the specified group.",
    b"DELCONSUMER <key> <groupname> <consumer>",
    b"    Remove the specified consumer.",
    b"DESCRIBE <key> <groupname>",
    b"    Show what the group holds, what holds it up, and its settings.",
    b"DESTROY <key> <groupname>",
    b"    Remove the specified group.",
    b"PAUSE <key> <groupname>",
    b"    Hand out nothing until RESUME; settling goes on.",
    b"RESUME <key> <groupname>",
    b"    Hand out again.",
    b"SEEK <key> <groupname> <EARLIEST|LATEST|id|TIME unix-time-milliseconds>",
    b"    Start again from there: every claim is void.",
    b"SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    b"    Set the current group ID and entries_read counter.",
    b"HELP",
    b"    Print this help.",
)


def create(ctx: Context, args: Args) -> Reply:
    """XGROUP CREATE key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]"""
    words = args.words
    key, name, position = args.bytes(), args.bytes(), args.bytes()
    if len(words) > _CREATE_WORDS_MAX:
        raise bad_subcommand(_COMMAND, words[1])
    make_stream, entries_read = False, None
    while args:
        option = args.token()
        if option == b"MKSTREAM":
            make_stream = True
        elif option == b"ENTRIESREAD" and args:
            entries_read = _entries_read(args)
        else:
            raise bad_subcommand(_COMMAND, words[1])

    keyspace, db = ctx.keyspace, ctx.client.db
    stream = keyspace.stream(db, key)
    if stream is None and not make_stream:
        raise CommandError(XGROUP_NO_KEY)
    last_id = stream.last_id if stream else MIN_ID
    head = last_id if position == b"$" else entry_id(position)
    if stream is None:
        stream = keyspace.create_stream(db, key)
    if name in stream.groups:
        raise CommandError(BUSY_GROUP)
    keyspace.create_group(stream, name, head, _bounded(stream, entries_read))
    return OK


def setid(ctx: Context, args: Args) -> Reply:
    """XGROUP SETID key group <id | $> [ENTRIESREAD entries-read]"""
    words = args.words
    key, name, position = args.bytes(), args.bytes(), args.bytes()
    if len(words) > _SETID_WORDS_MAX:
        raise bad_subcommand(_COMMAND, words[1])
    entries_read = None
    while args:
        if args.token() != b"ENTRIESREAD" or not args:
            raise bad_subcommand(_COMMAND, words[1])
        entries_read = _entries_read(args)

    group = managed_group(ctx, key, name)
    stream = group.stream
    head = stream.last_id if position == b"$" else loose_id(position)
    move(group, head, _bounded(stream, entries_read))
    return OK


def destroy(ctx: Context, args: Args) -> Reply:
    """XGROUP DESTROY key group"""
    stream = managed_stream(ctx, args.bytes())
    group = stream.group(args.bytes())
    if group is None:
        return 0
    ctx.keyspace.destroy_group(group)
    return 1


def createconsumer(ctx: Context, args: Args) -> Reply:
    """XGROUP CREATECONSUMER key group consumer"""
    group = managed_group(ctx, args.bytes(), args.bytes())
    name = args.bytes()
    if name in group.consumers:
        return 0
    consumer_named(group, name, ctx.now_ms)
    return 1


def delconsumer(ctx: Context, args: Args) -> Reply:
    """XGROUP DELCONSUMER key group consumer"""
    key, name = args.bytes(), args.bytes()
    group = managed_group(ctx, key, name)
    consumer = group.consumers.get(args.bytes())
    if consumer is None:
        return 0
    user = None if ctx.may_manage(key, name) else ctx.user
    return remove_consumer(group, consumer, user, ctx.now_ms)


def help_(_ctx: Context, _args: Args) -> Reply:
    """XGROUP HELP"""
    return [Simple(line) for line in _HELP]


def _entries_read(args: Args) -> int | None:
    """-1 means that it is not known."""
    entries_read = args.int()
    if entries_read < -1:
        raise CommandError(BAD_ENTRIES_READ)
    return None if entries_read == -1 else entries_read


def _bounded(stream: Stream, entries_read: int | None) -> int | None:
    return None if entries_read is None else min(entries_read, stream.entries_added)
