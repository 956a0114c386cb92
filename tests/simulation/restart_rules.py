"""Rules: crashes and clean stops. What was written makes a new keyspace.

It must tell what the one before told; then its clocks start again, and the run
goes on with it.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from felixresp.engine.group import Group
from tests.simulation import model as naive
from tests.simulation.invariants import state_of
from tests.simulation.machine import USERS, EngineAndModel
from tests.simulation.promises import Promise, require, same
from tests.simulation.words import CLAIMED, DELAYED
from tests.state import describe


class RestartRules(EngineAndModel):
    @rule(lazy_too=st.booleans())
    def crash(self, lazy_too: bool) -> None:
        """Lazy changes may be lost; every claim that was not durable is over."""
        if lazy_too:
            self.commit()
        else:
            self.model = copy.deepcopy(self.durable)
        self.restart(crashed=True, whole=lazy_too)

    @rule()
    def stop(self) -> None:
        """A clean stop: nothing is lost, and claims go on."""
        self.note()
        self.commit()
        self.restart(crashed=False, whole=True)

    def restart(self, *, crashed: bool, whole: bool) -> None:
        before: dict[str, Any] = {}
        if whole:
            self.load_all()
            before = describe(self.keyspace, self.now)
        self.lazy.clear()
        if crashed:
            self.recover(whole=whole)
        else:
            self.reopen()
        self._found()
        for name, model in self.model.groups.items():
            check_recovered(self.group(name), model)
        if whole:
            self.load_all()
            same(Promise.SAME_JOURNAL, describe(self.keyspace, self.now), before)
        self.keyspace.resume(self.now, crashed=crashed)
        self.model.restart(self.now, crashed=crashed)
        for name, model in self.model.groups.items():
            check_resumed(self.group(name), model)
        self.fire_timer()  # delays that were over are over again

    def reopen(self) -> None:
        """After a clean stop."""
        self.recover(whole=True)

    def _found(self) -> None:
        stream = self.keyspace.stream(0, b"jobs")
        assert stream is not None
        self.stream = stream
        self.payloads.clear()
        self.replies.clear()
        self.waiting = False
        self.clients = [self.next_client() for _ in USERS]

    def teardown(self) -> None:
        if hasattr(self, "model") and sys.exception() is None:  # it is told as it is
            self.note()
            self.crash(lazy_too=True)


def check_recovered(group: Group, model: naive.Group) -> None:
    """What the store must have kept, before the clocks start again."""
    check_kept(group, model)
    over = [i for i in model.pending if model.is_waited_for(i) and i <= group.cursor]
    require(Promise.CURSOR_GAP, not over, over)
    # the head may have moved over some of them with the last that was written
    lost = [i for i in model.ahead - group.ahead if i > group.head]
    require(Promise.AHEAD_KEPT, not lost, lost)
    same(Promise.SAME_CONSUMERS, group.consumers.keys(), model.consumers.keys())


def check_resumed(group: Group, model: naive.Group) -> None:
    """What a restart must not have ended."""
    check_kept(group, model)
    over = [i for i in model.having(CLAIMED) if state_of(group, i) != CLAIMED]
    require(Promise.CLAIMS_KEPT, not over, over)


def check_kept(group: Group, model: naive.Group) -> None:
    """What no crash may cost."""
    letters = group.dead_letters
    for id_ in model.dead:
        there = id_ in letters.listed or id_ in group.pending
        require(Promise.LETTER_KEPT, there, id_)
    for id_ in model.redriven:
        there = id_ in letters.redriven and id_ in group.pending
        require(Promise.REDRIVEN_KEPT, there, id_)
    for id_ in model.having(DELAYED):
        until_ms = group.delayed.get(id_)
        same(Promise.DELAY_KEPT, (id_, until_ms), (id_, model.pending[id_].until_ms))
