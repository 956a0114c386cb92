"""The sections of INFO, in Redis's order and under Redis's names.

Clients choose commands by ``redis_version``; felixresp's own is another field.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from .server import Server

REDIS_VERSION = "7.2.4"
_GROUP_COUNTS = (
    "claims_lapsed",
    "lapsed_while_connected",
    "entries_dead",
    "entries_skipped",
    "consumers_expired",
    "groups_evicted",
    "polls_capped",
    "polls_blocked_by_acked_ahead",
    "polls_blocked_by_dead_letters",
)
_STATM = Path("/proc/self/statm")

Section = Mapping[str, object]


def describe_server(server: Server) -> Mapping[str, Section]:
    return {
        "Server": _server(server),
        "Clients": _clients(server),
        "Memory": _memory(server),
        "Persistence": _persistence(server),
        "Stats": _stats(server),
        "Groups": _groups(server),
        "Replication": {
            "role": "master",
            "connected_slaves": 0,
            "master_repl_offset": 0,
        },
        "CPU": _cpu(),
        "Errorstats": {
            f"errorstat_{code}": f"count={count}"
            for code, count in server.errors.items()
        },
        "Cluster": {"cluster_enabled": 0},
        "Keyspace": _keyspace(server),
    }


def _server(server: Server) -> Section:
    uptime_s = (server.clock.now_ms() - server.started_ms) // 1000
    return {
        "redis_version": REDIS_VERSION,
        "redis_mode": "standalone",
        "felixresp_version": __version__,
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": 64 if sys.maxsize > 2**32 else 32,
        "python_version": platform.python_version(),
        "process_id": os.getpid(),
        "tcp_port": server.port,
        "server_time_usec": server.clock.wall_us(),
        "uptime_in_seconds": uptime_s,
        "uptime_in_days": uptime_s // 86400,
        "durability": server.settings.durability,
    }


def _clients(server: Server) -> Section:
    return {
        "connected_clients": len(server.clients()),
        "maxclients": server.settings.maxclients,
        "blocked_clients": server.waiters.count,
        "tracking_clients": 0,
        "total_blocking_keys": server.waiters.key_count,
        "total_blocking_keys_on_nokey": server.waiters.group_key_count,
    }


def _memory(server: Server) -> Section:
    used = _resident_bytes()
    return {
        "used_memory": used,
        "used_memory_human": _human(used),
        "used_memory_rss": used,
        "used_memory_rss_human": _human(used),
        "maxmemory": 0,
        "maxmemory_human": "0B",
        "maxmemory_policy": "noeviction",
        "cached_nodes_bytes": server.keyspace.cache.bytes,
    }


def _persistence(server: Server) -> Section:
    status = "err" if server.full else "ok"
    return {
        "loading": 0,
        "async_loading": 0,
        "rdb_bgsave_in_progress": 0,
        "bgsave_in_progress": 0,
        "rdb_last_bgsave_status": status,
        "aof_enabled": 1,
        "aof_rewrite_in_progress": 0,
        "aof_last_write_status": status,
    }


def _stats(server: Server) -> Section:
    refused = server.users.refusals.counts
    return {
        "total_connections_received": server.connections_received,
        "total_commands_processed": server.commands_processed,
        "rejected_connections": server.connections_rejected,
        "unreadable_entries": server.cold.entries_lost,
        "total_error_replies": sum(server.errors.values()),
        "acl_access_denied_auth": refused[b"auth"],
        "acl_access_denied_cmd": refused[b"command"],
        "acl_access_denied_key": refused[b"key"],
        "acl_access_denied_channel": 0,
        "acl_access_denied_group": refused[b"group"],
    }


def _groups(server: Server) -> Section:
    """What the limits of groups have turned away, and what came to an end."""
    counts = server.keyspace.counts
    return {name: counts[name] for name in _GROUP_COUNTS}


def _cpu() -> Section:
    times = os.times()
    return {
        "used_cpu_sys": f"{times.system:.6f}",
        "used_cpu_user": f"{times.user:.6f}",
    }


def _keyspace(server: Server) -> Section:
    keyspace = server.keyspace
    return {
        f"db{db}": f"keys={size},expires={keyspace.expires(db)},avg_ttl=0"
        for db in range(server.settings.databases)
        if (size := keyspace.size(db))
    }


def _resident_bytes() -> int:
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _human(count: float) -> str:
    for unit in "BKMG":
        if count < 1024:
            return f"{count:.2f}{unit}"
        count /= 1024
    return f"{count:.2f}T"
