"""A server in this process, on every kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from felixresp.storage.base import Store
from tests.server.running import STORES, RunningServer


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


@pytest.fixture
def running(store: Store) -> Iterator[RunningServer]:
    with RunningServer(store) as server:
        yield server
