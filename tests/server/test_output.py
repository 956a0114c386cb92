"""One connection's queue, on a transport that takes everything at once."""

from __future__ import annotations

import asyncio

from felixresp.config import MiB, Settings
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.nodes import Slice
from felixresp.server.committer import Committer
from felixresp.server.output import Output
from felixresp.server.turn import Turn
from felixresp.storage.memory import MemoryStore

REPLY_BYTES = 8 * MiB


class Pit(asyncio.Transport):
    """Never full."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def long_reply() -> list[bytes | Slice]:
    keyspace = Keyspace(Settings())
    stream = keyspace.create_stream(0, b"s")
    for number in range(1, REPLY_BYTES // 1024 + 1):
        stream.append(number << 64, [b"f", b"v" * 1024])
    _, parts = stream.range(0, 2**128 - 1, None, reverse=False)
    return parts


def test_a_reply_that_a_fast_client_drains_lets_others_have_their_turns() -> None:
    async def scenario() -> tuple[list[int], bytes]:
        loop = asyncio.get_running_loop()
        store = MemoryStore(Settings())
        committer = Committer(store, Settings(), loop, Turn(loop), print)
        pit = Pit()
        output = Output(pit, committer, Slice.bytes, lambda: None)
        output.put_parts(long_reply(), ())
        output.put(b"+PONG\r\n")
        output.close()

        sizes = [len(pit.data)]
        while not pit.closed:
            await asyncio.sleep(0)  # the others' turn
            sizes.append(len(pit.data))
        return sizes, bytes(pit.data)

    sizes, data = asyncio.run(scenario())

    steps = [after - before for before, after in zip([0, *sizes], sizes, strict=False)]
    assert max(steps) < 2 * MiB
    assert len(steps) > REPLY_BYTES // (2 * MiB)
    expected = [
        part if isinstance(part, bytes) else part.bytes() for part in long_reply()
    ]
    assert data == b"".join(expected) + b"+PONG\r\n"
