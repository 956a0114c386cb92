"""Every verb at random, while the server is killed and stopped."""

from __future__ import annotations

from tests.crash import verbs

RULES_THAT_COUNT = 10


def test_no_promise_is_broken_by_any_verb_while_the_server_is_killed() -> None:
    report = verbs.run(seconds=15)

    print(*report.lines(), sep="\n")
    assert report.verdict.broken == []
    assert report.kills
    assert report.stops
    assert report.history.reconnects
    assert len(report.verdict.checked) == RULES_THAT_COUNT  # each met something
