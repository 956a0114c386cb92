"""Rules: acks, nacks and extensions, by id and by receipt; dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from felixresp.engine import claims, dead_letters, settle
from felixresp.engine.handouts import Member
from tests.simulation import model_settles
from tests.simulation.model_settles import Mark
from tests.simulation.poll_rules import GROUP_NAMES, NAMES, SLOTS
from tests.simulation.promises import Promise, require, same
from tests.simulation.restart_rules import RestartRules
from tests.simulation.stream_rules import ID_LISTS
from tests.simulation.words import GROUPS, Nacked

MODES = st.sampled_from([b"SILENT", b"FAIL", b"FAIL", b"FATAL"])
DELAYS = st.sampled_from([None, None, None, 0, 40, 150, 10_000])
RETRY_COUNTS = st.sampled_from([None, None, None, 0, 2, 9])
NACKS = st.builds(
    Nacked, MODES, DELAYS, st.sampled_from([b"", b"", b"why"]), RETRY_COUNTS
)
HOW = st.sampled_from(["id", "id", "receipt", "receipt", "forged"])


class SettleRules(RestartRules):
    @rule(name=GROUP_NAMES, ids=ID_LISTS)
    def ack(self, name: bytes, ids: list[int]) -> None:
        self._ack(name, [(id_, 0) for id_ in ids])

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(data=st.data(), how=HOW)
    def ack_pending(self, data: st.DataObject, how: str) -> None:
        self._ack(*self._pending_marks(data, how))

    @precondition(lambda self: self.receipts)
    @rule(data=st.data(), elsewhere=st.booleans())
    def ack_by_any_receipt(self, data: st.DataObject, elsewhere: bool) -> None:
        """One that was good once, or of another group."""
        name, mark = self._any_receipt(data, elsewhere)
        self._ack(name, [mark])

    @rule(name=GROUP_NAMES, ids=ID_LISTS, wish=NACKS, force=st.booleans())
    def xnack(self, name: bytes, ids: list[int], wish: Nacked, force: bool) -> None:
        self._nack(name, [(id_, 0) for id_ in ids], replace(wish, force=force))

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(data=st.data(), how=HOW, wish=NACKS)
    def nack_pending(self, data: st.DataObject, how: str, wish: Nacked) -> None:
        self._nack(*self._pending_marks(data, how), wish)

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(data=st.data(), slot=SLOTS, consumer=NAMES, wish=NACKS)
    def nack_as_consumer(
        self, data: st.DataObject, slot: int, consumer: bytes, wish: Nacked
    ) -> None:
        wish = replace(wish, member=(consumer, self.user(slot)))
        self._nack(*self._pending_marks(data, "id"), wish)

    @precondition(lambda self: self.receipts)
    @rule(data=st.data(), wish=NACKS, elsewhere=st.booleans())
    def nack_by_any_receipt(
        self, data: st.DataObject, wish: Nacked, elsewhere: bool
    ) -> None:
        name, mark = self._any_receipt(data, elsewhere)
        self._nack(name, [mark], wish)

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(
        data=st.data(),
        ms=st.sampled_from([1, 50, 100, 400, 10_000]),
        slot=SLOTS,
        consumer=NAMES,
        how=st.sampled_from(["id", "receipt", "forged"]),
    )
    def xextend(
        self, data: st.DataObject, ms: int, slot: int, consumer: bytes, how: str
    ) -> None:
        name, marks = self._pending_marks(data, how)
        member = (consumer, self.user(slot)) if how == "id" else None
        self._extend(name, marks, ms, member)

    @precondition(lambda self: self.receipts)
    @rule(data=st.data(), elsewhere=st.booleans())
    def extend_by_any_receipt(self, data: st.DataObject, elsewhere: bool) -> None:
        name, mark = self._any_receipt(data, elsewhere)
        self._extend(name, [mark], 50, None)

    @precondition(lambda self: any(g.dead for g in self.model.groups.values()))
    @rule(data=st.data(), how=st.sampled_from(["redrive", "redrive", "discard", "ack"]))
    def settle_dead(self, data: st.DataObject, how: str) -> None:
        names = [n for n in GROUPS if self.model.groups[n].dead]
        name = data.draw(st.sampled_from(names))
        dead = st.sampled_from(sorted(self.model.groups[name].dead))
        ids = data.draw(st.lists(dead, min_size=1, max_size=3))
        {"redrive": self.redrive, "discard": self.discard, "ack": self.ack}[how](
            name, ids
        )

    @precondition(lambda self: any(g.pending for g in self.model.groups.values()))
    @rule(data=st.data(), how=st.sampled_from(["redrive", "redrive", "crash", ""]))
    def give_up(self, data: st.DataObject, how: str) -> None:
        """A worker gives up. The operator may redrive that at once, or all dies."""
        name, marks = self._pending_marks(data, "id")
        self._nack(name, marks, Nacked(b"FATAL", reason=b"gave up"))
        self.note()  # what comes now is another command
        if how == "redrive":
            self.redrive(name, [id_ for id_, _ in marks])
        elif how == "crash":
            self.crash(lazy_too=False)

    @rule(name=GROUP_NAMES, ids=ID_LISTS)
    def settle_any(self, name: bytes, ids: list[int]) -> None:
        self.redrive(name, ids[::2])
        self.discard(name, ids[1::2])

    def redrive(self, name: bytes, ids: list[int]) -> None:
        done = self.run(lambda: dead_letters.redrive(self.group(name), ids))

        wanted = model_settles.redrive(self.model.groups[name], ids)
        same(Promise.SAME_REPLY, done, wanted)

    def discard(self, name: bytes, ids: list[int]) -> None:
        done = self.run(lambda: dead_letters.discard(self.group(name), ids))

        wanted = model_settles.discard(self.model.groups[name], ids)
        same(Promise.SAME_REPLY, done, wanted)

    # --- as the commands do it

    def _ack(self, name: bytes, marks: Sequence[Mark]) -> None:
        def verb() -> int:
            return settle.ack(self.group(name), self._standing(name, marks))

        done = self.run(verb)

        wanted = model_settles.ack(self.model.groups[name], marks, self.now)
        self._settled(name, marks, done, wanted)

    def _nack(self, name: bytes, marks: Sequence[Mark], wish: Nacked) -> None:
        group = self.group(name)
        if not group.mode.leases:  # these options are refused
            wish = replace(wish, member=None, delay_ms=None, reason=b"")
        meant = settle.Nack(
            wish.mode,
            wish.retry_count,
            wish.force,
            wish.delay_ms,
            wish.reason,
            self._holder(name, wish.member),
            wish.member is not None,
        )

        def verb() -> int:
            ids = self._standing(name, marks)
            return settle.nack(self.group(name), ids, meant, self.now)

        done = self.run(verb)

        wanted = model_settles.nack(self.model.groups[name], marks, wish, self.now)
        self._settled(name, marks, done, wanted)

    def _extend(
        self,
        name: bytes,
        marks: Sequence[Mark],
        ms: int,
        member: tuple[bytes, bytes] | None,
    ) -> None:
        group = self.group(name)
        if not group.mode.leases:
            return

        def verb() -> list[int]:
            claims.expire(group, self.now)
            holder = self._holder(name, member)
            granted = []
            for mark in marks:
                ids = self._standing(name, [mark])
                if not ids or (
                    member and not settle.holds(group, holder, ids[0], self.now)
                ):
                    granted.append(0)
                else:
                    granted.append(settle.extend(group, ids[0], ms, self.now))
            return granted

        granted = self.run(verb)

        model = self.model.groups[name]
        wanted = model_settles.extend(model, marks, ms, member, self.now)
        self._settled(name, marks, granted, wanted)

    def _settled(
        self, name: bytes, marks: Sequence[Mark], done: object, wanted: object
    ) -> None:
        if any(nonce for _, nonce in marks):
            told = f"{name!r} {marks}: engine {done}, model {wanted}"
            require(Promise.RECEIPT_STALE, done == wanted, told)
        same(Promise.SAME_REPLY, done, wanted)

    def _standing(self, name: bytes, marks: Sequence[Mark]) -> list[int]:
        receipts = [mark for mark in marks if mark[1]]
        good: set[int] = set()
        if receipts:
            good = set(settle.by_receipt(self.group(name), receipts, self.now))
        return [id_ for id_, nonce in marks if not nonce or id_ in good]

    def _holder(self, name: bytes, member: tuple[bytes, bytes] | None) -> Member | None:
        consumer = self.group(name).consumers.get(member[0]) if member else None
        return consumer.members.get(member[1]) if consumer and member else None

    def _pending_marks(self, data: st.DataObject, how: str) -> tuple[bytes, list[Mark]]:
        """Of some pending entries: their ids, good receipts, or forged ones."""
        names = [n for n in GROUPS if self.model.groups[n].pending]
        name = data.draw(st.sampled_from(names))
        pending = self.model.groups[name].pending
        some = st.lists(st.sampled_from(sorted(pending)), min_size=1, max_size=4)
        ids = data.draw(some)
        if how == "id":
            return name, [(id_, 0) for id_ in ids]
        if how == "forged":
            return name, [(id_, 2**63 + pending[id_].nonce) for id_ in ids]
        return name, [(id_, pending[id_].nonce or -1) for id_ in ids]

    def _any_receipt(self, data: st.DataObject, elsewhere: bool) -> tuple[bytes, Mark]:
        name, id_, nonce = data.draw(st.sampled_from(self.receipts))
        if elsewhere:
            name = GROUPS[1 - GROUPS.index(name)]
        return name, (id_, nonce)
