"""The load generator compiles and does its work; numbers are not looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.load import Shape, build, run
from tests.server_process import ServerProcess, missing
from tests.wire import Wire, named

pytestmark = pytest.mark.skipif(bool(missing("gcc")), reason=missing("gcc") or "-")


@pytest.mark.parametrize("pipeline", [1, 16])
def test_a_loop_acks_every_message(tmp_path: Path, pipeline: int) -> None:
    shape = Shape(producers=5, consumers=3, pipeline=pipeline, messages=500)
    program = build(tmp_path)
    data = tmp_path / "data"
    with ServerProcess.start(data) as server, Wire(server.port) as wire:
        wire.call("XGROUP", "CREATE", "key", "g", "0", "MKSTREAM")

        measured = run(program, server.port, "key", shape)

        (group,) = wire.call("XINFO", "GROUPS", "key")
        assert measured.messages == wire.call("XLEN", "key") == 500
        assert named(group)["pending"] == 0


def test_xadd_alone_adds_every_message(tmp_path: Path) -> None:
    shape = Shape("xadd", producers=3, pipeline=8, messages=500)
    program = build(tmp_path)
    data = tmp_path / "data"
    with ServerProcess.start(data) as server, Wire(server.port) as wire:
        run(program, server.port, "key", shape)

        assert wire.call("XLEN", "key") == 500
