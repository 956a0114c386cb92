"""Rules: time, seek and SETID, settings, pause, consumers and groups."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from felixresp.engine import admin, claims, members
from tests.simulation import invariants, model_settles
from tests.simulation.machine import WAITED, EngineAndModel
from tests.simulation.poll_rules import GROUP_NAMES, NAMES, SLOTS
from tests.simulation.promises import Promise, require, same
from tests.simulation.stream_rules import IDS
from tests.simulation.words import GROUPS, LEASE, REDIS

SWEEP_MS = 1000  # an unused consumer may stay that much longer
_VALUES: dict[str, list[int | str]] = {
    "max-attempts": [0, 1, 2, 3],
    "max-in-flight": [2, 4, 1000],
    "visibility-timeout-ms": [50, 100, 300],
    "backoff": ["none", "fixed 40", "linear 30 70", "exponential 20 2 100"],
    "lapse-backoff": ["none", "none", "fixed 50", "linear 20 60"],
    "claims-follow": ["timer", "connection"],
    "disconnect-grace-ms": [-1, 0, 40],
    "follow-max-ms": [250, 100_000],
    "durable-claims": ["no", "yes"],
    "max-dead-letters": [1, 2, 1000],
}
OWN_SETTINGS = st.lists(
    st.sampled_from(sorted(_VALUES)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(_VALUES[name]))
    ),
    min_size=1,
    max_size=5,
).map(dict)


class AdminRules(EngineAndModel):
    switches: bool  # some runs never meet mode redis

    # --- time

    @rule(
        ms=st.sampled_from([1, 30, 70, 99, 100, 101, 500, 4000]),
        timer=st.booleans(),
    )
    def pass_time(self, ms: int, timer: bool) -> None:
        """With or without the server's timer; every verb looks by itself too."""
        self.now += ms
        if timer:
            self.fire_timer()
            for name in GROUPS:
                self._drop_unused(name)

    def _drop_unused(self, name: bytes) -> None:
        """The engine looks now and then; the model takes over what it dropped."""
        model, there = self.model.groups[name], self.group(name).consumers
        used = {item.consumer for item in model.pending.values()}
        used |= {member[0] for member, open_ in model.connections.items() if open_}
        for consumer, seen_ms in list(model.consumers.items()):
            unused_ms = self.now - seen_ms - model.number("consumer-expiry-ms")
            in_use = consumer in used or unused_ms < 0
            if in_use:
                model.unused.pop(consumer, None)
            if consumer not in there:
                require(Promise.IN_USE, not in_use, consumer)
                model_settles.forget_consumer(model, consumer)
                model.unused.pop(consumer, None)
            else:
                since_ms = (
                    self.now if in_use else model.unused.setdefault(consumer, self.now)
                )
                late = self.now - since_ms > self.swept_ms()
                require(Promise.UNUSED, not late, consumer)

    def swept_ms(self) -> int:
        """The most that an unused consumer may stay longer."""
        return SWEEP_MS

    # --- where a group stands

    @rule(name=GROUP_NAMES, number=st.integers(0, 30), seek=st.booleans())
    def move(self, name: bytes, number: int, seek: bool) -> None:
        if seek and self.model.groups[name].leases:
            self._seek(name, number << 64)
        else:
            self.run(lambda: claims.move(self.group(name), number << 64, None))
            model_settles.set_id(self.model.groups[name], number << 64)

    def _seek(self, name: bytes, position: int) -> None:
        model, entries = self.model.groups[name], self.model.entries
        oldest = min(entries) - 1 if entries else self.model.last_id
        same(Promise.SAME_STREAM, self.run(lambda: admin.oldest(self.stream)), oldest)
        head = min(max(position, oldest), self.model.last_id)

        self.run(lambda: admin.seek(self.group(name), head, self.now))

        model_settles.seek(model, head, self.now)
        group = self.group(name)
        void = [i for i in group.pending if group.is_claimed(i)]
        require(Promise.SEEK_VOIDS, not void and not group.delayed, void)
        same(Promise.SEEK_VOIDS, group.pending.keys(), model.redriven.keys())

    # --- settings

    @rule(name=GROUP_NAMES, settings=OWN_SETTINGS)
    def configure(self, name: bytes, settings: dict[str, int | str]) -> None:
        own = {setting: str(value) for setting, value in settings.items()}

        admin.configure(self.group(name), own, self.now)

        model_settles.configure(self.model.groups[name], settings, self.now)

    @precondition(lambda self: self.switches)
    @rule(name=GROUP_NAMES, mode=st.sampled_from([LEASE, REDIS]))
    def switch_mode(self, name: bytes, mode: str) -> None:
        self.configure(name, {"mode": mode})

    @rule(name=GROUP_NAMES, paused=st.sampled_from([False, False, True]))
    def pause(self, name: bytes, paused: bool) -> None:
        admin.pause(self.group(name), self.now, paused=paused)

        self.model.groups[name].paused = paused

    @rule(name=GROUP_NAMES, id_=IDS)
    def explain(self, name: bytes, id_: int) -> None:
        group, model = self.group(name), self.model.groups[name]
        self.run(lambda: invariants.check_explained(group, model, id_))

    # --- consumers and groups

    @rule(name=GROUP_NAMES, consumer=NAMES, slot=SLOTS, everybody=st.booleans())
    def delete_consumer(
        self, name: bytes, consumer: bytes, slot: int, everybody: bool
    ) -> None:
        group, model = self.group(name), self.model.groups[name]
        if consumer not in model.consumers:
            return
        user = None if everybody else self.user(slot)

        named = group.consumers[consumer]
        held = members.remove_consumer(group, named, user, self.now)

        wanted = model_settles.delete_consumer(model, consumer, user, self.now)
        same(Promise.SAME_REPLY, held, wanted)

    @rule(name=GROUP_NAMES, head=st.one_of(st.just(0), IDS), odds=st.integers(0, 5))
    def recreate(self, name: bytes, head: int, odds: int) -> None:
        """A group, the stream, or neither."""
        if odds == 0:
            self.keyspace.drop(self.stream)
            self.waiting = False
            self.create_stream()
        elif odds == 1:
            self.keyspace.destroy_group(self.group(name))
            self.waiting = self.waiting and name != WAITED
            self.create_group(name, head)
