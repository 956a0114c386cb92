"""One stream and one group as semantics.md tells it, in the plainest Python.

Every call scans everything it needs, nothing is indexed, nothing is shared. What
the engine does cleverly must come out the same as what is done here stupidly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.words import Ask, Caps, Pending


@dataclass
class Model:
    """The stream (id -> raw entry) and its group."""

    caps: Caps
    entries: dict[int, bytes] = field(default_factory=dict)
    head: int = 0
    cursor: int = 0
    settled_cursor: int = 0  # it never moves back from here
    pending: dict[int, Pending] = field(default_factory=dict)
    ahead: set[int] = field(default_factory=set)  # finished above the head
    dead: dict[int, Pending] = field(default_factory=dict)  # as they were at the end
    redriven: set[int] = field(default_factory=set)
    consumers: set[bytes] = field(default_factory=set)
    recovered_tail: int = 0
    learned_ms: int = 0
    capped: int = 0
    skipped: int = 0
    handouts: int = 0

    # --- what holds at any time

    @property
    def visibility_ms(self) -> int:
        return max(self.caps.visibility_ms, self.learned_ms)

    def owed(self) -> list[int]:
        return sorted(i for i, item in self.pending.items() if item.owed)

    def claimed(self) -> list[int]:
        return sorted(i for i, item in self.pending.items() if not item.owed)

    def new(self) -> list[int]:
        taken = {*self.pending, *self.ahead, *self.dead}
        return sorted(i for i in self.entries if i > self.head and i not in taken)

    def spent(self, id_: int) -> bool:
        return 0 < self.caps.attempts <= self.pending[id_].attempts

    def next_deadline(self) -> int | None:
        return min((self.pending[i].deadline_ms for i in self.claimed()), default=None)

    # --- what happens to one entry

    def advance(self) -> None:
        """The cursor goes up to the head, or to just below the first gap."""
        self.ahead = {i for i in self.ahead if i > self.head}
        gaps = [i - 1 for i in self.pending if i > self.cursor]
        self.cursor = max(self.cursor, min([self.head, *gaps]))

    def finish(self, id_: int) -> None:
        self.pending.pop(id_, None)
        self.redriven.discard(id_)
        self.ahead.add(id_)  # advance() forgets it where the head is past it
        self.advance()

    def skip(self, id_: int) -> None:
        self.skipped += 1
        self.finish(id_)

    def bury(self, id_: int) -> None:
        self.dead[id_] = self.pending[id_]
        self.finish(id_)

    def put_back(self, id_: int) -> None:
        if self.dead.pop(id_, None) is not None:
            self.redriven.add(id_)
        self.ahead.discard(id_)
        self.pending[id_] = Pending()

    def hand_out(self, id_: int, ask: Ask, *, cost: int = 1, shown: int = 1) -> None:
        self.handouts += 1
        item = self.pending.setdefault(id_, Pending())
        item.holder, item.owed, item.nonce = ask.consumer, False, self.handouts
        item.client, item.charged, item.paid = ask.client, False, cost > 0
        item.handed_ms = ask.now_ms - ask.idle_ms
        item.deadline_ms = ask.now_ms + self.visibility_ms
        item.first_ms = item.first_ms or ask.now_ms
        item.attempts += cost
        item.deliveries += shown

    def adopt_head(self, head: int) -> None:
        """It may also stand on entries above ours that are not new."""
        assert head >= self.head
        assert not any(id_ <= head for id_ in self.new())
        self.head = head
        self.advance()

    def adopt_cursor(self, cursor: int) -> None:
        """It may also stand lower, where the next settle moves it on."""
        assert self.settled_cursor <= cursor <= self.cursor
        assert not any(cursor < id_ <= self.cursor for id_ in self.pending)
        self.cursor = self.settled_cursor = cursor

    # --- polls and claims

    def expire(self, now_ms: int) -> None:
        for id_ in self.claimed():
            if self.pending[id_].deadline_ms > now_ms:
                continue
            if id_ not in self.entries:
                self.skip(id_)
            elif self.spent(id_):
                self.bury(id_)
            else:
                self.pending[id_].owed = True

    def poll(self, ask: Ask) -> list[int]:
        self.expire(ask.now_ms)
        if len(self.dead) >= self.caps.dead:
            return []
        room = min(ask.count, self.caps.poll_entries)
        if not ask.no_ack:
            room = min(room, self.caps.in_flight - len(self.claimed()))
            self.capped += room <= 0
        given: list[int] = []
        for id_ in [*self.owed(), *self.new()]:
            read_bytes = sum(len(self.entries[i]) for i in given)
            if len(given) >= room or read_bytes >= ask.bytes_max:
                break
            if id_ not in self.entries:
                self.skip(id_)
            elif id_ in self.pending and self.spent(id_):
                self.bury(id_)
            else:
                given.append(id_)
        self.head = max([self.head, *(id_ for id_ in given if id_ not in self.pending)])
        for id_ in given:
            self.hand_out(id_, ask)
        self.advance()
        for id_ in given if ask.no_ack else ():
            self.finish(id_)
        return given

    def history(self, ask: Ask, after: int) -> list[tuple[int, bytes | None]]:
        self.expire(ask.now_ms)
        read: list[tuple[int, bytes | None]] = []
        for id_ in self.claimed():
            item = self.pending[id_]
            if id_ <= after or item.holder != ask.consumer:
                continue
            if len(read) >= min(ask.count, self.caps.poll_entries):
                break
            entry = self.entries.get(id_)
            if entry is not None:
                holder, charged = item.client, item.charged
                elsewhere = holder != ask.client and not charged
                if elsewhere and self.spent(id_):
                    self.bury(id_)
                    continue
                self.hand_out(id_, ask, cost=int(elsewhere))
                item.client, item.charged = holder, charged or elsewhere
            read.append((id_, entry))
        return read

    def claim(self, ask: Ask, ids: list[int]) -> list[int]:
        self.expire(ask.now_ms)
        if ask.last_id > self.head:
            self.set_id(ask.last_id)
        taken = []
        for id_ in dict.fromkeys(ids):
            item = self.pending.get(id_)
            if id_ not in self.entries:
                if item is not None:
                    self.skip(id_)
                continue
            if item is None:
                if not ask.force:
                    continue
                self.put_back(id_)
                item = self.pending[id_]
                item.deliveries = 1  # Redis counts being forced as one
            elif not item.owed and ask.now_ms - item.handed_ms < ask.min_idle_ms:
                continue
            own = item.holder == ask.consumer and not item.owed
            free = ask.just_id or own
            if not free and ask.retry_count is None and self.spent(id_):
                self.bury(id_)
                continue
            before = item.client, item.charged
            self.hand_out(id_, ask, cost=int(not free), shown=int(not ask.just_id))
            if own:
                item.client, item.charged = before
            if ask.retry_count is not None:
                item.attempts = item.deliveries = ask.retry_count
            taken.append(id_)
        self.advance()
        return taken

    def autoclaim(self, ask: Ask, start: int) -> tuple[int, list[int], list[int]]:
        self.expire(ask.now_ms)
        taken: list[int] = []
        deleted: list[int] = []
        candidates = sorted(i for i in self.pending if i >= start)
        for at, id_ in enumerate(candidates):
            if at == 10 * ask.count or len(taken) + len(deleted) == ask.count:
                return id_, taken, deleted
            item = self.pending[id_]
            if not item.owed and ask.now_ms - item.handed_ms < ask.min_idle_ms:
                continue
            if id_ not in self.entries:
                self.skip(id_)
                deleted.append(id_)
            elif not ask.just_id and self.spent(id_):
                self.bury(id_)
            else:
                paid = int(not ask.just_id)
                self.hand_out(id_, ask, cost=paid, shown=paid)
                taken.append(id_)
        return 0, taken, deleted

    # --- settling and admin

    def ack(self, ids: list[int]) -> int:
        done = 0
        for id_ in ids:
            lost = id_ in self.new() and id_ <= self.recovered_tail
            if lost or id_ in self.pending or self.dead.pop(id_, None) is not None:
                self.finish(id_)
                done += 1
        return done

    def give_back(self, nonces: dict[int, int]) -> None:
        for id_, nonce in nonces.items():
            item = self.pending.get(id_)
            if item is not None and item.nonce == nonce and not item.owed:
                item.owed = True
                item.attempts = max(item.attempts - 1, 0)
                item.deliveries = max(item.deliveries - 1, 0)

    def redrive(self, ids: list[int]) -> int:
        wanted = {i for i in ids if i in self.dead and i in self.entries}
        for id_ in wanted:
            self.put_back(id_)
        return len(wanted)

    def discard(self, ids: list[int]) -> int:
        wanted = {i for i in ids if i in self.dead}
        for id_ in wanted:
            del self.dead[id_]
            self.finish(id_)
        return len(wanted)

    def learn(self, min_idle_ms: int, now_ms: int) -> None:
        more = min_idle_ms - self.visibility_ms
        if more > 0:
            self.expire(now_ms)
            self.learned_ms = min_idle_ms
            for id_ in self.claimed():
                self.pending[id_].deadline_ms += more

    def set_id(self, head: int) -> None:
        self.head = head
        self.cursor = self.settled_cursor = min(self.cursor, head)
        self.advance()

    def delete_consumer(self, name: bytes) -> int:
        self.consumers.remove(name)
        held = [item for item in self.pending.values() if item.holder == name]
        for item in held:
            item.holder, item.owed, item.handed_ms = None, True, 0
        return len(held)

    def crash(self, last_id: int) -> None:
        self.recovered_tail, self.learned_ms = last_id, 0
        self.capped = self.skipped = 0
        for item in self.pending.values():
            item.owed = True
