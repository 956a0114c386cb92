"""The group and the member that a request names."""

from __future__ import annotations

from ..engine.group import Group
from ..engine.handouts import Member
from ..engine.members import member_named
from ..engine.stream import Stream
from .context import Context
from .errors import XGROUP_NO_KEY, CommandError, no_group, no_group_for_key


def find_group(ctx: Context, key: bytes, name: bytes) -> Group | None:
    stream = ctx.keyspace.stream(ctx.client.db, key)
    return stream.group(name) if stream else None


def existing_group(ctx: Context, key: bytes, name: bytes) -> Group:
    """Raises NOGROUP as the commands that claim and settle do."""
    group = find_group(ctx, key, name)
    if group is None:
        raise no_group(key, name)
    return group


def managed_stream(ctx: Context, key: bytes) -> Stream:
    """Raises XGROUP's error where the key is not there."""
    stream = ctx.keyspace.stream(ctx.client.db, key)
    if stream is None:
        raise CommandError(XGROUP_NO_KEY)
    return stream


def managed_group(ctx: Context, key: bytes, name: bytes) -> Group:
    """Raises XGROUP's errors."""
    group = managed_stream(ctx, key).group(name)
    if group is None:
        raise no_group_for_key(key, name)
    return group


def member_of(ctx: Context, group: Group, name: bytes) -> Member:
    """The consumer with the client's user; the connection counts for it."""
    client = ctx.client
    return member_named(group, name, ctx.now_ms, client.id, client.user.name)
