"""The engine against the naive model, step by step, and its journal replayed.

After every step the two must tell the same story and every promise of
promises.py must hold. ``python -m tests.simulation 20000`` runs many more.
"""

from __future__ import annotations

import os

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize

from felixresp.config import Settings
from felixresp.engine import group as group_module
from tests.simulation.admin_rules import OWN_SETTINGS, AdminRules
from tests.simulation.poll_rules import RARELY, PollRules
from tests.simulation.restart_rules import RestartRules
from tests.simulation.settle_rules import SettleRules
from tests.simulation.stream_rules import StreamRules
from tests.simulation.words import GROUPS

RUNS = int(os.environ.get("FELIXRESP_SIMULATION_RUNS", "150"))


SLACK = group_module._SLACK


class GroupMachine(StreamRules, PollRules, SettleRules, AdminRules, RestartRules):
    @initialize(
        attempts=st.sampled_from([0, 1, 2, 3]),
        in_flight=st.sampled_from([3, 6, 1000]),
        poll_entries=st.sampled_from([4, 1000]),
        dead=st.sampled_from([2, 1000]),
        expiry_ms=st.sampled_from([3000, 86_400_000]),
        own=OWN_SETTINGS,
        follow=st.sampled_from(["timer", "connection"]),
        grace_ms=st.sampled_from([-1, -1, 0, 40]),
        switches=RARELY,
    )
    def start(  # noqa: PLR0913, PLR0917 - what a run may differ in
        self,
        attempts: int,
        in_flight: int,
        poll_entries: int,
        dead: int,
        expiry_ms: int,
        own: dict[str, int | str],
        follow: str,
        grace_ms: int,
        switches: bool,
    ) -> None:
        group_module._SLACK = 2  # orders are rebuilt often, not after a thousand
        server: dict[str, int | str] = {
            "visibility-timeout-ms": 100,
            "max-visibility-ms": 2000,
            "max-attempts": attempts,
            "max-in-flight": in_flight,
            "max-poll-entries": poll_entries,
            "max-dead-letters": dead,
            "consumer-expiry-ms": expiry_ms,
            "learn-visibility": "yes",
            "backoff": "none",
            "lapse-backoff": "none",
            "durable-claims": "no",
            "claims-follow": follow,
            "follow-max-ms": 3_600_000,
            "disconnect-grace-ms": grace_ms,
        }
        chosen = {f"group_{n.replace('-', '_')}": v for n, v in server.items()}
        self.setup(Settings(stream_node_max_entries=3, **chosen), server)
        self.switches = switches
        self.configure(GROUPS[0], own)
        self.append(6, 1, 5)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            group_module._SLACK = SLACK


def run_settings(runs: int, steps: int) -> settings:
    return settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


GroupMachine.TestCase.settings = run_settings(RUNS, 50)
TestGroupMachine = GroupMachine.TestCase
