"""A worker process under SIGKILL, seen by the one that waits."""

from __future__ import annotations

from tests.crash import worker_killed


def test_a_blocked_poll_gets_all_that_a_killed_worker_held_in_order() -> None:
    report = worker_killed.run()

    print(*report.lines(), sep="\n")
    assert report.received == report.added
    assert report.pending == dict.fromkeys(report.added, (b"second", 2))
