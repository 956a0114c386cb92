"""What a handler may touch, and what it may answer besides a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..config import Settings
from ..engine.errors import NotResident
from ..engine.ids import EntryID
from ..engine.keyspace import Keyspace
from ..protocol.reply import NIL_ARRAY, Reply

if TYPE_CHECKING:
    from .args import Args
    from .rights import User
    from .users import Users

_T = TypeVar("_T")
_BATCH_IDS = 100


class Client(Protocol):
    """The connection as handlers see and change it (server.connection has it)."""

    id: int
    db: int
    resp: int  # 2 or 3
    user: User  # users.guest until it signs in, where that is asked for
    name: bytes
    lib_name: bytes
    lib_version: bytes
    no_evict: bool
    no_touch: bool
    address: bytes  # ip:port
    local_address: bytes
    created_ms: int
    active_ms: int
    queued: list[list[bytes]] | None  # the commands of an open MULTI
    queued_bytes: int
    queue_failed: bool
    watched: dict[tuple[int, bytes], int]  # (db, key) -> version seen
    blocked: bool

    def describe(self, now_ms: int) -> bytes:
        """The CLIENT LIST line, without newline."""
        ...


class UsersFile(Protocol):
    """The file that ``aclfile`` names. Both raise OSError."""

    def read(self) -> bytes: ...

    def write(self, data: bytes) -> None:
        """In one piece, and durable."""
        ...


class Server(Protocol):
    """What INFO, CLIENT, CONFIG and COMMAND ask of the running server."""

    settings: Settings
    users: Users
    full: bool  # space runs out: what needs memory is refused

    def info(self) -> Mapping[str, Mapping[str, object]]:
        """INFO's sections, in order: section -> field -> value."""
        ...

    def clients(self) -> Sequence[Client]: ...

    def unblock(self, client_id: int, *, error: bool) -> bool:
        """End another client's blocked wait; False where it was not blocked."""
        ...

    def reset_statistics(self) -> None: ...

    @property
    def users_file(self) -> UsersFile: ...

    def random_bytes(self, count: int, /) -> bytes:
        """Unpredictable ones."""
        ...

    def load(self, missing: NotResident) -> None:
        """Read the missing nodes now: inside EXEC nothing waits."""
        ...


@dataclass(slots=True)
class Context:
    """One command's surroundings. Both clocks are read once per command.

    ``now_ms`` only moves forward: claims, deadlines, idle times. ``wall_ms``
    is the system clock: entry IDs, key expiry, TIME. Both are unix ms.
    """

    keyspace: Keyspace
    settings: Settings
    server: Server
    client: Client
    now_ms: int = 0
    wall_ms: int = 0
    wall_us: int = 0
    in_multi: bool = False  # nothing may block
    deadline_ms: int | None = None  # set when a blocked request runs again
    again: bool = False  # a blocked request runs again
    frozen_ids: Sequence[int] | None = None  # what XREAD's $ meant when it blocked
    waiters_left: int = 1  # clients still waiting on this key and group, this one too

    @property
    def user(self) -> bytes:
        """The name of the user that the connection is."""
        return self.client.user.name

    def may_manage(self, key: bytes, group: bytes) -> bool:
        """Whether all of @manage is the user's on this group: then other users'
        claims are its business too."""
        user = self.server.users.in_force(self.client)
        return user is not None and user.may_manage(key, group)

    def at_once(self, step: Callable[[], _T]) -> _T:
        """A step after the first change: the request cannot be run again, so
        missing nodes are read here."""
        while True:
            try:
                return step()
            except NotResident as missing:
                self.server.load(missing)

    def in_batches(
        self, verb: Callable[[Sequence[EntryID]], int], ids: Sequence[EntryID]
    ) -> int:
        """Count over many ids, some at a time: however many nodes hold them, those
        of one batch fit in memory together."""
        if len(ids) <= _BATCH_IDS:
            return verb(ids)
        batches = range(0, len(ids), _BATCH_IDS)
        return sum(
            self.at_once(partial(verb, ids[at : at + _BATCH_IDS])) for at in batches
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Park the client; dispatch the same request again when a key is touched.

    ``deadline_ms`` on the ``now_ms`` clock, None for ever. At the deadline the
    server answers ``timeout``. ``group`` is the fair-waking queue in lease mode.
    """

    keys: Sequence[bytes]  # of the client's database
    deadline_ms: int | None
    frozen_ids: Sequence[int] | None = None
    group: bytes | None = None
    no_ack: bool = False  # what it gets takes no room under a cap
    timeout: Reply = NIL_ARRAY


class Close:
    """Close the connection after the reply (QUIT)."""


class HangUp:
    """Close the connection now; there is no reply (an HTTP request)."""


class Monitor:
    """From now on the connection is fed every command."""


class Reset:
    """RESET: drop MULTI, WATCH, MONITOR, name; back to RESP2 and database 0."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Close these other connections."""

    client_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop the server; there is no reply."""


Effect = Close | HangUp | Monitor | Reset | Kill | Shutdown


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply, and effects applied after the command or EXEC."""

    reply: Reply
    effects: Sequence[Effect] = field(default=())


class Uncommon:
    """The request has not the shape that a hot handler knows."""


UNCOMMON = Uncommon()

Answer = Reply | Block | Outcome
HotHandler = Callable[[Context, Sequence[bytes]], Answer | Uncommon]
Handler = Callable[[Context, "Args"], Answer]
