"""A server to tell the scenarios on the wire to, and a connection with a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.servers import SITES, Running, Site
from tests.scenarios.world import VISIBILITY_MS
from tests.wire import Wire


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return SITES[request.param](tmp_path)


@pytest.fixture
def server(site: Site) -> Iterator[Running]:
    with site.start(group_visibility_timeout_ms=VISIBILITY_MS) as running:
        yield running


@pytest.fixture
def wire(server: Running) -> Iterator[Wire]:
    with Wire(server.port) as connection:
        connection.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
        yield connection
