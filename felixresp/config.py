"""Every setting: its name, kind, default and limits, in one table.

A setting has one name in three places: ``CONFIG GET/SET name``, the flag
``--name`` and the environment variable ``FELIX_NAME`` (upper case, ``-`` as
``_``). A flag wins over the environment. Code reads ``settings.name`` with
``-`` as ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MiB = 1024 * 1024
_HUGE = 2**63 - 1
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MEMORY = re.compile(r"(\d{1,19})([kmg]?b?)")
_BACKOFF = re.compile(
    r"none|fixed MS|linear MS MS|exponential MS FACTOR MS( JITTER)?".replace(
        "MS", r"[0-9]{1,12}"
    )
    .replace("FACTOR", r"[0-9]{1,3}([.][0-9]{1,6})?")
    .replace("JITTER", r"(0|1|0?[.][0-9]{1,6})")
)
_UNITS = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1024,
    "m": 1000**2,
    "mb": MiB,
    "g": 1000**3,
    "gb": 1024 * MiB,
}

Value = int | str


class InvalidSetting(ValueError):
    """A value that the setting does not take; the text says what it takes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table; ``kind`` is int, bytes, enum, text or bool."""

    name: str
    kind: str
    default: Value
    low: int = 0
    high: int = _HUGE
    choices: tuple[str, ...] = ()
    fixed: bool = False  # only at start: CONFIG SET refuses it
    environment: str = ""  # another environment name that is also read

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")

    def parse(self, text: str) -> Value:
        """The value that ``text`` means. Raises InvalidSetting."""
        match self.kind:
            case "int":
                return self._within(_integer(text))
            case "bytes":
                return self._within(_memory(text))
            case "bool":
                return _choice(text, ("yes", "no"), "argument must be 'yes' or 'no'")
            case "enum":
                names = ", ".join(self.choices)
                msg = f"argument(s) must be one of the following: {names}"
                return _choice(text, self.choices, msg)
            case _:
                return _TEXTS[self.kind](text)

    def _within(self, value: int) -> int:
        if not self.low <= value <= self.high:
            msg = f"argument must be between {self.low} and {self.high} inclusive"
            raise InvalidSetting(msg)
        return value


# fmt: off
_ROWS = (
    Setting("bind", "text", "127.0.0.1", fixed=True),
    Setting("port", "int", 6379, 0, 65535, fixed=True),
    Setting("dir", "text", "./felixresp-data", fixed=True,
            environment="FELIX_DURABLE_STORAGE_DIR"),
    Setting("databases", "int", 16, 16, 16, fixed=True),
    Setting("requirepass", "text", ""),
    Setting("aclfile", "text", "", fixed=True),
    Setting("acllog-max-len", "int", 128, 0, 10_000),
    Setting("acl-pubsub-default", "enum", "resetchannels",
            choices=("allchannels", "resetchannels")),
    Setting("maxclients", "int", 10000, 1, 1_000_000),
    Setting("timeout", "int", 0, 0, 2**31 - 1),
    Setting("tcp-keepalive", "int", 60, 0, 2**31 - 1),
    Setting("proto-max-bulk-len", "bytes", 512 * MiB, MiB),
    Setting("client-query-buffer-limit", "bytes", 1024 * MiB, MiB),
    Setting("client-output-buffer-bytes", "bytes", 16 * MiB, 64 * 1024),
    Setting("durability", "durability", "always", fixed=True),
    Setting("journal-segment-bytes", "bytes", 64 * MiB, MiB, 1024 * MiB, fixed=True),
    Setting("journal-max-bytes", "bytes", 1024 * MiB, 2 * MiB),
    Setting("checkpoint-bytes", "bytes", 32 * MiB, 64 * 1024),
    Setting("checkpoint-seconds", "int", 30, 1, 86400),
    Setting("cache-max-bytes", "bytes", 256 * MiB, MiB),
    Setting("stream-node-max-bytes", "bytes", 4096, 0, MiB),
    Setting("stream-node-max-entries", "int", 100, 0, 65535),
    Setting("stream-idmp-duration", "int", 100, 1, 86400),
    Setting("stream-idmp-maxsize", "int", 100, 1, 10000),
    Setting("group-mode", "enum", "lease", choices=("lease", "redis")),
    Setting("group-auto-create", "bool", "no"),
    Setting("group-visibility-timeout-ms", "int", 30_000, 1, 10**12),
    Setting("group-max-visibility-ms", "int", 43_200_000, 1, 10**12),
    Setting("group-max-attempts", "int", 5, 0, 2**31 - 1),
    Setting("group-max-wait-ms", "int", 30_000, 1, 10**12),
    Setting("group-max-in-flight", "int", 10_000, 1, 2**31 - 1),
    Setting("group-max-poll-entries", "int", 1000, 1, 1_000_000),
    Setting("group-max-poll-bytes", "bytes", 4 * MiB, 1),
    Setting("group-max-dead-letters", "int", 100_000, 1, 2**31 - 1),
    Setting("group-max-acked-ahead-ranges", "int", 65_536, 1, 2**31 - 1),
    Setting("group-learn-visibility", "bool", "yes"),
    Setting("group-backoff", "backoff", "none"),
    Setting("group-lapse-backoff", "backoff", "none"),
    Setting("group-durable-claims", "bool", "no"),
    Setting("group-claims-follow", "enum", "timer", choices=("timer", "connection")),
    Setting("group-follow-max-ms", "int", 3_600_000, 1, 10**12),
    Setting("group-disconnect-grace-ms", "int", -1, -1, 10**12),
    Setting("group-consumer-expiry-ms", "int", 86_400_000, 1, 10**12),
)
# fmt: on

SETTINGS: Mapping[str, Setting] = {row.name: row for row in _ROWS}


class Settings:
    """The values in force. Reading an unknown name is an AttributeError."""

    bind: str
    port: int
    dir: str
    databases: int
    requirepass: str
    aclfile: str
    acllog_max_len: int
    acl_pubsub_default: str
    maxclients: int
    timeout: int
    tcp_keepalive: int
    proto_max_bulk_len: int
    client_query_buffer_limit: int
    client_output_buffer_bytes: int
    durability: str  # "always", "interval MS" or "none"
    journal_segment_bytes: int
    journal_max_bytes: int
    checkpoint_bytes: int
    checkpoint_seconds: int
    cache_max_bytes: int
    stream_node_max_bytes: int
    stream_node_max_entries: int
    stream_idmp_duration: int
    stream_idmp_maxsize: int
    group_mode: str
    group_visibility_timeout_ms: int
    group_max_visibility_ms: int
    group_max_attempts: int
    group_max_wait_ms: int
    group_max_in_flight: int
    group_max_poll_entries: int
    group_max_poll_bytes: int
    group_max_dead_letters: int
    group_max_acked_ahead_ranges: int
    group_auto_create: str
    group_learn_visibility: str
    group_backoff: str
    group_lapse_backoff: str
    group_durable_claims: str
    group_claims_follow: str
    group_follow_max_ms: int
    group_disconnect_grace_ms: int
    group_consumer_expiry_ms: int

    def __init__(self, **values: Value) -> None:
        for row in SETTINGS.values():
            setattr(self, row.attribute, values.pop(row.attribute, row.default))
        if values:
            msg = f"no such setting: {', '.join(values)}"
            raise InvalidSetting(msg)

    def get(self, name: str) -> str:
        """The value as CONFIG GET shows it."""
        return str(getattr(self, SETTINGS[name].attribute))

    def set(self, name: str, text: str) -> None:
        """Raises InvalidSetting for a bad value, KeyError for a bad name."""
        row = SETTINGS[name]
        setattr(self, row.attribute, row.parse(text))

    def read_environment(self, environment: Mapping[str, str]) -> None:
        """Take FELIX_* values. Raises InvalidSetting, naming the variable."""
        for name, variable in _variables():
            if variable in environment:
                try:
                    self.set(name, environment[variable])
                except InvalidSetting as exc:
                    msg = f"{variable}: {exc}"
                    raise InvalidSetting(msg) from None

    @property
    def interval_ms(self) -> int:
        """The most a reply may be ahead of its commit; 0 where it waits."""
        word, _, ms = self.durability.partition(" ")
        return int(ms) if word == "interval" else 0


def _variables() -> Iterator[tuple[str, str]]:
    for row in SETTINGS.values():
        if row.environment:
            yield row.name, row.environment
        yield row.name, "FELIX_" + row.attribute.upper()


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        msg = "argument couldn't be parsed into an integer"
        raise InvalidSetting(msg)
    return int(text)


def _memory(text: str) -> int:
    found = _MEMORY.fullmatch(text.lower())
    if not found:
        msg = "argument must be a memory value"
        raise InvalidSetting(msg)
    return int(found[1]) * _UNITS[found[2]]


def _choice(text: str, choices: tuple[str, ...], otherwise: str) -> str:
    if text.lower() not in choices:
        raise InvalidSetting(otherwise)
    return text.lower()


def _durability(text: str) -> str:
    word, _, rest = text.lower().partition(" ")
    if word in ("always", "none") and not rest:
        return word
    if word == "interval" and _INTEGER.fullmatch(rest) and 1 <= int(rest) <= 60_000:
        return f"interval {int(rest)}"
    msg = "argument must be 'always', 'interval MS' (1 to 60000) or 'none'"
    raise InvalidSetting(msg)


def _backoff(text: str) -> str:
    policy = " ".join(text.lower().split())
    if _BACKOFF.fullmatch(policy):
        return policy
    msg = (
        "argument must be 'none', 'fixed MS', 'linear MS MAX' or"
        " 'exponential MS FACTOR MAX [JITTER 0 to 1]'"
    )
    raise InvalidSetting(msg)


_TEXTS: Mapping[str, Callable[[str], str]] = {
    "durability": _durability,
    "backoff": _backoff,
    "text": str,
}
