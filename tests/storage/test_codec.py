"""What a change is written as is what it was; every durable change has a form."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felixresp.config import Settings
from felixresp.engine import changes
from felixresp.engine.changes import Change, Tally
from felixresp.engine.dead_letters import DeadLetter
from felixresp.engine.group import Group
from felixresp.engine.handouts import Consumer, Member
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.stream import Stream
from felixresp.engine.values import String
from felixresp.storage.codec import Decoder, Undecodable, encode_changes
from felixresp.storage.layouts import KINDS

EVERY = typing.get_args(Change)
DURABLE = [kind for kind in EVERY if kind.DURABLE]

ids = st.integers(0, 2**128 - 1)
id_tuples = st.lists(ids, min_size=1, max_size=5).map(tuple)
id_lists = st.lists(ids, min_size=1, max_size=5)
counts = st.integers(0, 2**63)
reads = st.none() | counts
times = st.integers(-(2**63), 2**63 - 1)
texts = st.binary(max_size=40)
words = texts.map(lambda text: text.decode(errors="surrogateescape"))
dbs = st.integers(0, 15)
nonces = st.integers(0, 2**64 - 1)
tallies = st.builds(Tally, counts, counts, times)
tallied = st.dictionaries(ids, tallies, max_size=5)
letters = st.builds(DeadLetter, ids, counts, texts, texts, texts, times, times, counts)

FIELDS: dict[type[Change], dict[str, st.SearchStrategy[Any]]] = {
    changes.Created: {"db": dbs, "key": texts},
    changes.Dropped: {},
    changes.Renamed: {"old_db": dbs, "old_key": texts, "db": dbs, "key": texts},
    changes.ExpirySet: {"expire_ms": st.none() | times},
    changes.StringSet: {"data": texts},
    changes.Appended: {
        "id": ids,
        "entry": texts,
        "size": counts,
        "opens": st.booleans(),
    },
    changes.Deleted: {"ids": id_tuples},
    changes.Trimmed: {"before": ids},
    changes.Lost: {"first": ids},
    changes.StreamSet: {
        "last_id": ids,
        "entries_added": counts,
        "max_deleted_id": ids,
    },
    changes.GroupCreated: {"head": ids, "entries_read": reads, "passed": counts},
    changes.GroupDestroyed: {},
    changes.GroupMoved: {"head": ids, "entries_read": reads, "passed": counts},
    changes.ConsumerCreated: {},
    changes.ConsumerDeleted: {},
    changes.Delivered: {
        "ids": id_lists,
        "head": ids,
        "entries_read": reads,
        "passed": counts,
        "now_ms": times,
        "deadline_ms": times,
        "nonce": nonces,
    },
    changes.Claimed: {
        "tallies": tallied,
        "handed_ms": times,
        "began_ms": times,
        "deadline_ms": times,
        "nonce": nonces,
        "how": texts,
    },
    changes.Extended: {"ids": id_tuples, "handed_ms": times, "deadline_ms": times},
    changes.Forced: {"ids": id_tuples},
    changes.Passed: {"head": ids, "entries_read": reads, "passed": counts},
    changes.Finished: {"ids": id_lists},
    changes.Died: {
        "letters": st.lists(letters, min_size=1, max_size=3).map(tuple),
        "how": texts,
    },
    changes.Redriven: {"ids": id_tuples},
    changes.Discarded: {"ids": id_tuples},
    changes.Lapsed: {"ids": id_tuples, "now_ms": times, "how": texts},
    changes.HandedBack: {
        "untils": st.dictionaries(ids, times, max_size=5),
        "tallies": tallied,
        "now_ms": times,
        "how": texts,
        "reason": texts,
    },
    changes.Sought: {
        "head": ids,
        "entries_read": reads,
        "passed": counts,
        "now_ms": times,
    },
    changes.Configured: {
        "own": st.dictionaries(words, words, max_size=5),
        "paused": st.booleans(),
        "learned_visibility_ms": times,
        "deadline_ms": times,
    },
}


class Targets:
    """A keyspace with one of everything that a change can name."""

    def __init__(self) -> None:
        self.keyspace = Keyspace(Settings())
        self.string = self.keyspace.set_string(0, b"string", b"")
        self.stream = self.keyspace.create_stream(0, b"stream")
        self.group = self.keyspace.create_group(self.stream, b"group", 0, None)
        self.consumer = Consumer(1, b"alice")
        self.group.record(changes.ConsumerCreated(self.group, self.consumer))

    def change(self, kind: type[Change], fields: dict[str, Any]) -> Change:
        hints = str(kind.__annotations__["target"])
        target = {"Group": self.group, "String": self.string}.get(hints, self.stream)
        build: Callable[..., Change] = kind
        if "consumer" in kind.__annotations__:
            fields = {"consumer": self.consumer, **fields}
        if "member" in kind.__annotations__:
            fields = {"member": self.consumer.member(b"ann"), **fields}
        return build(target=target, **fields)


def looks(change: Change) -> list[object]:
    """A change as plain data: new objects of the same number look the same."""
    names = [name for name in type(change).__annotations__ if name.islower()]
    return [type(change), *(_plain(getattr(change, name)) for name in names)]


def _plain(value: object) -> object:
    if isinstance(value, Stream | String):
        return type(value), value.number
    if isinstance(value, Group):
        return value.number, value.name, value.stream.number
    if isinstance(value, Consumer):
        return value.number, value.name, value.seen_ms, value.active_ms
    if isinstance(value, Member):
        return _plain(value.consumer), value.user
    return value


@pytest.mark.parametrize("kind", DURABLE, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_change_reads_back_as_it_was_written(
    kind: type[Change], data: st.DataObject
) -> None:
    targets = Targets()
    fields = data.draw(st.fixed_dictionaries(FIELDS[kind]))
    change = targets.change(kind, fields)

    written = encode_changes([change])

    (read,) = Decoder(targets.keyspace).changes(written)
    assert looks(read) == looks(change)


@pytest.mark.parametrize("kind", DURABLE, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_change_that_is_cut_short_is_refused(
    kind: type[Change], data: st.DataObject
) -> None:
    targets = Targets()
    fields = data.draw(st.fixed_dictionaries(FIELDS[kind]))
    written = encode_changes([targets.change(kind, fields)])
    length = data.draw(st.integers(1, len(written) - 1))

    with pytest.raises(Undecodable):
        list(Decoder(targets.keyspace).changes(written[:length]))


def test_every_durable_change_has_a_form_and_a_kind_of_its_own() -> None:
    assert set(FIELDS) == set(DURABLE) == set(KINDS)
    assert len(set(KINDS.values())) == len(KINDS)


def test_changes_that_are_not_durable_are_left_out() -> None:
    targets = Targets()
    volatile = [kind for kind in EVERY if not kind.DURABLE]
    fields = {changes.Due: {"ids": (1,)}, changes.Ready: {}}

    written = encode_changes([targets.change(kind, fields[kind]) for kind in volatile])

    assert written == b""


def test_a_string_is_created_as_a_string() -> None:
    targets = Targets()

    written = encode_changes([changes.Created(targets.string, 3, b"key")])

    (read,) = Decoder(targets.keyspace).changes(written)
    assert isinstance(read.target, String)


def test_a_number_that_nothing_has_is_refused() -> None:
    targets = Targets()
    other = Stream(targets.keyspace, 99, 0, b"other")
    written = encode_changes([changes.Trimmed(other, 1)])

    with pytest.raises(Undecodable):
        list(Decoder(targets.keyspace).changes(written))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Undecodable):
        list(Decoder(Targets().keyspace).changes(b"\xff" + bytes(40)))
