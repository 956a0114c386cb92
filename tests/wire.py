"""One connection, spoken to command by command, through redis-py's own socket code.

Sending and reading are apart, so that a test can pipeline, block, or be killed in
between. Nothing is retried: what a test did not send was not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.retry import Retry

from tests.server_process import HOST

REPLY_TIMEOUT_S = 60.0  # a lost reply fails the test instead of hanging it

Lost = (RedisConnectionError, OSError)  # what a killed server raises
Refused = ResponseError  # an error reply


class Wire:
    """RESP2 replies as they come: bytes, int, list, None; errors are raised."""

    def __init__(self, port: int) -> None:
        connection: Any = Connection  # redis-py has no types here
        self._connection = connection(
            host=HOST,
            port=port,
            protocol=2,
            socket_timeout=REPLY_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._connection.connect()

    @property
    def local_port(self) -> int:
        number: int = self._connection._sock.getsockname()[1]
        return number

    def call(self, *words: bytes | str | int) -> Any:
        self.send(*words)
        return self.read()

    def call_many(self, commands: Sequence[Sequence[bytes | str | int]]) -> list[Any]:
        """All of them in one write; then their replies."""
        packed = self._connection.pack_commands(commands)
        self._connection.send_packed_command(packed, check_health=False)
        return [self.read() for _ in commands]

    def send(self, *words: bytes | str | int) -> None:
        self._connection.send_command(*words, check_health=False)

    def read(self) -> Any:
        return self._connection.read_response()

    def close(self) -> None:
        self._connection.disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def entry_ids(reply: Any) -> list[bytes]:
    """The IDs in an XREAD or XREADGROUP reply of one stream, in order."""
    return [entry[0] for _, entries in reply or () for entry in entries]


def named(flat: list[Any]) -> dict[str, Any]:
    """A RESP2 map."""
    return {flat[at].decode(): flat[at + 1] for at in range(0, len(flat), 2)}
