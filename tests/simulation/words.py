"""What the model counts with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Caps:
    visibility_ms: int = 100
    attempts: int = 3  # 0: no bound
    in_flight: int = 6
    poll_entries: int = 4
    dead: int = 4


@dataclass
class Ask:
    """Who asks for what, when. Each verb reads the fields that it has."""

    consumer: bytes
    now_ms: int
    client: int = 0
    count: int = 1
    bytes_max: int = 2**63
    no_ack: bool = False
    min_idle_ms: int = 0
    idle_ms: int = 0
    retry_count: int | None = None
    force: bool = False
    just_id: bool = False
    last_id: int = 0


@dataclass
class Pending:
    """One entry that was handed out and not settled, or was put back."""

    holder: bytes | None = None
    owed: bool = True
    handed_ms: int = 0
    deadline_ms: int = 0
    client: int = 0
    charged: bool = False  # a history read on another connection has cost its attempt
    nonce: int = 0  # of the hand-out
    paid: bool = False  # it cost an attempt
    attempts: int = 0
    deliveries: int = 0
    first_ms: int = 0
