"""Our nodes close where a real redis-server's do: approximate trimming shows it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from felixresp.config import Settings
from felixresp.engine.ids import format_id
from felixresp.engine.keyspace import Keyspace
from tests.server_process import ServerProcess, missing
from tests.wire import Wire, named

pytestmark = pytest.mark.skipif(
    bool(missing("redis-server")), reason=missing("redis-server")
)

Shape = Callable[[random.Random], list[bytes]]


def _one_of(chance: random.Random, *lengths: int) -> bytes:
    return b"x" * chance.choice(lengths)


def _integers(chance: random.Random) -> list[bytes]:
    bits = chance.randint(1, 64)
    return [
        b"n",
        b"%d" % (chance.getrandbits(bits) - chance.choice([0, 1 << bits - 1])),
    ]


def _edges(chance: random.Random) -> list[bytes]:
    bits = chance.choice([7, 12, 13, 15, 16, 23, 24, 31, 32, 63, 64])
    value = (1 << bits) + chance.randint(-2, 2)
    return [b"n", b"%d" % (value * chance.choice([1, -1]))]


def _texts(chance: random.Random) -> list[bytes]:
    return [b"t", _one_of(chance, 0, 1, 20, 21, 62, 63, 64, 65, 126, 127, 128, 129)]


def _long_texts(chance: random.Random) -> list[bytes]:
    return [b"t", _one_of(chance, 10, 500, 4000, 4090, 4095, 4096, 4097, 20_000)]


def _odd_numbers(chance: random.Random) -> list[bytes]:
    texts = [b"01", b"-0", b"+1", b"1.5", b"-", b"", b" 1", b"00", b"1e5", b"-01"]
    return [b"o", chance.choice(texts)]


def _several_fields(chance: random.Random) -> list[bytes]:
    fields = []
    for number in range(chance.choice([1, 2, 2, 2, 40, 130])):
        fields += [b"field%d" % number, _one_of(chance, 1, 3, 8)]
    return fields


def _changing_names(chance: random.Random) -> list[bytes]:
    return [b"name%d" % chance.randint(0, 1), b"7", b"%d" % chance.randint(0, 9), b"v"]


def _large_fields_after_a_small_one(chance: random.Random) -> list[bytes]:
    return [_one_of(chance, 1, 100, 1000), _one_of(chance, 1, 1000, 3000)]


SHAPES = [
    _integers,
    _edges,
    _texts,
    _long_texts,
    _odd_numbers,
    _several_fields,
    _changing_names,
    _large_fields_after_a_small_one,
]


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    directory: Path = tmp_path_factory.mktemp("redis")
    flags = "--appendonly", "no"
    with (
        ServerProcess.start_redis(directory, *flags) as server,
        Wire(server.port) as wire,
    ):
        yield wire


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step_ms", [0, 1, 40, 50_000_000])
def test_nodes_close_where_redis_closes_them(
    redis: Wire, shape: Shape, step_ms: int
) -> None:
    chance = random.Random(f"{shape.__name__} {step_ms}")
    stream = Keyspace(Settings()).create_stream(0, b"s")
    commands: list[list[bytes]] = []
    id_ = 1_700_000_000_000 << 64
    for _ in range(400):
        id_ += (chance.randint(0, step_ms) << 64) + chance.choice([1, 1, 1, 90, 5000])
        fields = shape(chance)
        stream.append(id_, fields)
        commands.append([b"XADD", b"s", format_id(id_), *fields])

    redis.call("DEL", "s")
    redis.call_many(commands)

    info = named(redis.call("XINFO", "STREAM", "s"))
    assert info["radix-tree-keys"] == len(stream.nodes)
    for length in range(400, -1, -3):
        gone = redis.call("XTRIM", "s", "MAXLEN", "~", length, "LIMIT", 0)
        assert gone == stream.trim_to_length(length, whole=True, limit=0)
