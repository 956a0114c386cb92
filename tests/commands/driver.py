"""Requests against a keyspace, as the server would dispatch them, without one.

``Driver.run("SET a 1")`` returns the handler's answer; time stands still unless
a test moves ``now_ms`` and ``wall_ms``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from felixresp.commands.context import Answer, Context
from felixresp.commands.dispatch import dispatch
from felixresp.commands.rights import User
from felixresp.commands.table import COMMANDS
from felixresp.commands.users import Users
from felixresp.config import Settings
from felixresp.engine.changes import Change
from felixresp.engine.errors import NotResident
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Node
from felixresp.protocol.reply import Error

from .decode import plain

WALL_MS = 1_700_000_000_000
NOW_MS = 1_600_000_000_000


@dataclass(slots=True)
class FakeClient:
    """One connection's state."""

    user: User
    id: int = 1
    db: int = 0
    resp: int = 2
    name: bytes = b""
    lib_name: bytes = b""
    lib_version: bytes = b""
    no_evict: bool = False
    no_touch: bool = False
    address: bytes = b"127.0.0.1:50001"
    local_address: bytes = b"127.0.0.1:6379"
    created_ms: int = NOW_MS
    active_ms: int = NOW_MS
    queued: list[list[bytes]] | None = None
    queued_bytes: int = 0
    queue_failed: bool = False
    watched: dict[tuple[int, bytes], int] = field(default_factory=dict)
    blocked: bool = False

    def describe(self, now_ms: int) -> bytes:
        return b"id=%d age=%d" % (self.id, (now_ms - self.created_ms) // 1000)


@dataclass(slots=True)
class FakeFile:
    """The ACL file; None while there is none."""

    data: bytes | None = None

    def read(self) -> bytes:
        if self.data is None:
            raise OSError(2, "No such file or directory")
        return self.data

    def write(self, data: bytes) -> None:
        if self.data is None:
            raise OSError(13, "Permission denied")
        self.data = data


@dataclass(slots=True)
class FakeServer:
    """What handlers ask of the server, and what they asked it to do."""

    settings: Settings
    users: Users
    connected: list[FakeClient] = field(default_factory=list)
    unblocked: list[tuple[int, bool]] = field(default_factory=list)
    loaded: list[NotResident] = field(default_factory=list)
    resets: int = 0
    full: bool = False
    shelf: dict[Node, tuple[bytes, bytes]] = field(default_factory=dict)
    users_file: FakeFile = field(default_factory=FakeFile)

    def info(self) -> Mapping[str, Mapping[str, object]]:
        return {
            "Server": {"redis_version": "7.2.4", "tcp_port": 6379},
            "Clients": {"connected_clients": len(self.connected)},
        }

    def clients(self) -> Sequence[FakeClient]:
        return self.connected

    def unblock(self, client_id: int, *, error: bool) -> bool:
        self.unblocked.append((client_id, error))
        return any(c.id == client_id and c.blocked for c in self.connected)

    def reset_statistics(self) -> None:
        self.resets += 1

    def random_bytes(self, count: int, /) -> bytes:
        return bytes(at % 256 for at in range(count))

    def load(self, missing: NotResident) -> None:
        self.loaded.append(missing)
        for node in missing.nodes:
            if node in self.shelf:
                node.payload, node.index = self.shelf.pop(node)
        for group in missing.groups:
            group.resident = True


class Driver:
    """A keyspace, a server and one client at hand; ``connect`` makes more."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.keyspace = Keyspace(self.settings)
        self.server = FakeServer(self.settings, Users(COMMANDS, self.settings))
        self.now_ms = NOW_MS
        self.wall_ms = WALL_MS
        self.changes: list[Change] = []  # of the last command
        self.client = self.connect()

    def connect(self) -> FakeClient:
        number = len(self.server.connected) + 1
        client = FakeClient(
            self.server.users.newcomer(),
            id=number,
            address=b"127.0.0.1:%d" % (50000 + number),
        )
        self.server.connected.append(client)
        return client

    def require_password(self, password: str) -> None:
        """From the start, so that the client has not signed in."""
        self.settings.requirepass = password
        self.server.users.require_password()
        self.client.user = self.server.users.newcomer()

    def context(self, client: FakeClient | None = None) -> Context:
        return Context(
            self.keyspace,
            self.settings,
            self.server,
            client or self.client,
            self.now_ms,
            self.wall_ms,
            self.wall_ms * 1000,
        )

    def run(
        self,
        request: str | Sequence[bytes],
        client: FakeClient | None = None,
        context: Context | None = None,
    ) -> Answer:
        """A line is split as a shell would; bytes go as they are."""
        if isinstance(request, str):
            request = [word.encode() for word in shlex.split(request)]
        self.keyspace.expire_due(self.wall_ms)
        self.keyspace.take()
        answer = self._dispatch(context or self.context(client), request)
        self.changes = self.keyspace.take()
        return answer

    def _dispatch(self, context: Context, request: Sequence[bytes]) -> Answer:
        """Run it again where nodes are missing, as the server does."""
        while True:
            try:
                return dispatch(context, request)
            except NotResident as missing:
                self.server.load(missing)

    def chill(self, key: bytes) -> None:
        """Take the stream's sealed nodes out of memory."""
        stream = self.keyspace.stream(0, key)
        assert stream is not None
        for node in stream.nodes:
            if node.payload is not None and node.index is not None:
                self.server.shelf[node] = node.payload, node.index
                node.evict()

    def error(self, request: str | Sequence[bytes]) -> str:
        """The text of the error that the request must answer."""
        answer = self.run(request)
        assert isinstance(answer, Error), answer
        return answer.text.decode("latin-1")

    def show(self, request: str | Sequence[bytes], **given: Any) -> Any:
        """The answer in plain Python, see decode."""
        return plain(self.run(request, **given))

    def script(self, lines: str) -> None:
        """Requests of which none may answer an error, one a line."""
        for line in lines.strip().splitlines():
            answer = self.run(line.strip())
            assert not isinstance(answer, Error), (line, answer)

    def script_as(self, client: FakeClient, lines: str) -> None:
        own, self.client = self.client, client
        self.script(lines)
        self.client = own
