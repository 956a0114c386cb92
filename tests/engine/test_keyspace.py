"""Databases, expiry, WATCH, and cuts."""

from __future__ import annotations

import pytest

from felixresp.config import Settings
from felixresp.engine import members, poll, settle
from felixresp.engine.errors import WrongType
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.snapshots import StreamSnapshot
from felixresp.engine.values import String


def new_keyspace() -> Keyspace:
    return Keyspace(Settings(stream_node_max_entries=2))


def snapshots(keyspace: Keyspace) -> list[StreamSnapshot | String]:
    found = []
    while (snapshot := keyspace.next_snapshot()) is not None:
        found.append(snapshot)
    return found


def test_a_key_holds_one_type() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    string = keyspace.set_string(0, b"t", b"x")

    assert keyspace.stream(0, b"s") is stream
    assert keyspace.string(0, b"t") is string
    assert keyspace.stream(1, b"s") is None
    assert keyspace.string(0, b"nothing") is None
    with pytest.raises(WrongType):
        keyspace.stream(0, b"t")
    with pytest.raises(WrongType):
        keyspace.string(0, b"s")


def test_setting_a_string_again_drops_its_expiry_and_keeps_its_number() -> None:
    keyspace = new_keyspace()
    string = keyspace.set_string(0, b"t", b"x")
    keyspace.set_expiry(string, 100)
    assert keyspace.expires(0) == 1

    assert keyspace.set_string(0, b"t", b"y") is string

    assert (string.data, string.expire_ms, keyspace.expires(0)) == (b"y", None, 0)
    keyspace.set_string(0, b"t", b"z")
    keyspace.expire_due(100)
    assert keyspace.get(0, b"t") is string


def test_a_string_over_a_stream_drops_it() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")

    string = keyspace.set_string(0, b"s", b"x")

    assert keyspace.get(0, b"s") is string
    assert string.number > stream.number


def test_a_rename_drops_what_was_there_and_onto_itself_does_nothing() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    keyspace.set_string(2, b"t", b"x")
    keyspace.take()

    keyspace.rename(stream, 0, b"s")
    assert keyspace.take() == []
    keyspace.rename(stream, 2, b"t")

    assert keyspace.get(2, b"t") is stream
    assert (stream.db, stream.key) == (2, b"t")
    assert keyspace.size(0) == 0
    assert list(keyspace.keys(2)) == [b"t"]
    assert keyspace.scan(2, 0, 10) == (0, [b"t"])


def test_a_key_expires_at_its_time_by_its_last_expiry() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    keyspace.set_expiry(stream, 100)
    keyspace.set_expiry(stream, 200)
    assert keyspace.next_expiry() == 200

    keyspace.expire_due(199)
    assert keyspace.get(0, b"s") is stream
    assert keyspace.next_expiry() == 200
    keyspace.expire_due(200)

    assert keyspace.get(0, b"s") is None
    assert keyspace.next_expiry() is None


def test_keys_that_expire_together_are_gone_together() -> None:
    keyspace = new_keyspace()
    names = [b"k%d" % number for number in range(2500)]
    for name in names:
        keyspace.set_expiry(keyspace.set_string(0, name, b""), 100)
    keyspace.set_string(0, b"stays", b"")
    keyspace.take()

    keyspace.expire_due(100)

    gone = {change.target.number for change in keyspace.take()}
    assert len(gone) == 1000  # the others go in later turns
    assert list(keyspace.keys(0)) == [b"stays"]
    assert keyspace.scan(0, 0, 10_000)[1] == [b"stays"]
    assert keyspace.get(0, names[-3]) is None
    assert keyspace.string(0, names[-1]) is None
    assert keyspace.stream(0, names[-2]) is None
    keyspace.expire_due(100)
    keyspace.expire_due(100)
    assert keyspace.size(0) == 1
    assert keyspace.next_expiry() is None


def test_how_many_keys_expire_is_counted_through_every_change() -> None:
    keyspace = new_keyspace()
    for name in (b"a", b"b", b"c"):
        keyspace.set_expiry(keyspace.set_string(0, name, b""), 100)
    a, b = keyspace.get(0, b"a"), keyspace.get(0, b"b")
    assert a is not None and b is not None  # noqa: PT018

    keyspace.set_expiry(a, 200)
    keyspace.rename(a, 2, b"a")
    keyspace.set_expiry(b, None)
    keyspace.set_string(0, b"c", b"")

    assert [keyspace.expires(db) for db in range(3)] == [0, 0, 1]
    keyspace.drop(a)
    assert keyspace.expires(2) == 0


def test_an_expiry_that_is_moved_again_and_again_takes_no_more_room() -> None:
    keyspace = new_keyspace()
    string = keyspace.set_string(0, b"s", b"")

    for expire_ms in range(10_000, 11_000):
        keyspace.set_expiry(string, expire_ms)
        keyspace.set_expiry(keyspace.set_string(0, b"t", b""), expire_ms)

    assert len(keyspace._expiries) <= 70
    assert keyspace.next_expiry() == 10_999


def test_groups_that_were_destroyed_wait_for_no_deadline() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")

    for _ in range(1000):
        group = keyspace.create_group(stream, b"g", 0, None)
        keyspace.arm(group, 10_000)
        keyspace.destroy_group(group)

    assert len(keyspace._deadlines) <= 70
    assert keyspace.next_deadline() is None


def test_an_expiry_goes_with_a_rename_and_not_to_the_next_of_the_name() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    keyspace.set_expiry(stream, 100)
    keyspace.rename(stream, 0, b"t")
    other = keyspace.create_stream(0, b"s")

    keyspace.expire_due(100)

    assert keyspace.get(0, b"t") is None
    assert keyspace.get(0, b"s") is other


def test_a_thousand_keys_expire_in_one_call() -> None:
    keyspace = new_keyspace()
    for number in range(1500):
        keyspace.set_expiry(keyspace.set_string(0, b"%d" % number, b""), 5)

    keyspace.expire_due(5)
    assert keyspace.size(0) == 500
    keyspace.expire_due(5)

    assert keyspace.size(0) == 0


def test_flush_empties_one_database_or_all() -> None:
    keyspace = new_keyspace()
    for db in (0, 1, 15):
        keyspace.create_stream(db, b"s")

    keyspace.flush(1)
    assert [keyspace.size(db) for db in (0, 1, 15)] == [1, 0, 1]
    keyspace.flush(None)

    assert [keyspace.size(db) for db in (0, 1, 15)] == [0, 0, 0]


def test_a_watched_key_differs_once_it_was_touched() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    group = keyspace.create_group(stream, b"g", 0, None)
    keyspace.take()
    seen = keyspace.watches.watch(0, b"s")

    keyspace.create_stream(0, b"other")
    keyspace.take()
    assert keyspace.watches.version(0, b"s") == seen
    members.member_named(group, b"alice", 0)
    stream.set_id(5, 0, 0)
    keyspace.take()
    assert keyspace.watches.version(0, b"s") == seen
    stream.append(6, [b"f", b"v"])
    keyspace.take()
    assert keyspace.watches.version(0, b"s") != seen
    seen = keyspace.watches.watch(0, b"s")
    keyspace.watches.unwatch(0, b"s")
    keyspace.rename(stream, 0, b"t")
    keyspace.take()
    assert keyspace.watches.version(0, b"s") != seen
    keyspace.watches.unwatch(0, b"s")
    assert keyspace.watches.version(0, b"s") == 0


def test_numbers_are_never_given_twice() -> None:
    keyspace = new_keyspace()
    numbers = []
    for _ in range(3):
        stream = keyspace.create_stream(0, b"s")
        group = keyspace.create_group(stream, b"g", 0, None)
        numbers += [stream.number, group.number]
        keyspace.drop(stream)

    assert numbers == sorted(set(numbers))


def test_a_cut_holds_what_changed_since_the_one_before() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    string = keyspace.set_string(0, b"t", b"x")
    assert keyspace.cut() == []
    assert {found.number for found in snapshots(keyspace)} == {
        stream.number,
        string.number,
    }

    stream.append(1, [b"f", b"v"])
    keyspace.cut()
    (found,) = snapshots(keyspace)

    assert found.number == stream.number
    keyspace.cut()
    assert snapshots(keyspace) == []


def test_a_value_changed_during_a_cut_is_stored_as_it_was_at_the_cut() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    string = keyspace.set_string(0, b"t", b"before")
    stream.append(1, [b"f", b"v"])
    keyspace.cut()

    stream.append(2, [b"f", b"v"])
    keyspace.set_string(0, b"t", b"after")
    found = {snapshot.number: snapshot for snapshot in snapshots(keyspace)}

    kept = found[stream.number]
    assert isinstance(kept, StreamSnapshot)
    assert [node.count for node in kept.nodes] == [1]
    text = found[string.number]
    assert isinstance(text, String)
    assert text.data == b"before"
    keyspace.cut()
    assert len(snapshots(keyspace)) == 2


def test_a_value_dropped_during_a_cut_is_in_it_and_gone_from_the_next() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    keyspace.cut()

    keyspace.drop(stream)

    assert [found.number for found in snapshots(keyspace)] == [stream.number]
    assert keyspace.cut() == [stream]
    assert snapshots(keyspace) == []


def test_a_cut_holds_only_the_nodes_that_changed() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    for number in range(1, 8):
        stream.append(number, [b"f", b"v"])
    keyspace.cut()
    (found,) = snapshots(keyspace)
    assert isinstance(found, StreamSnapshot)
    assert [node.first for node in found.nodes] == [1, 3, 5, 7]
    sealed = [snapshot.node for snapshot in found.nodes[:3]]
    keyspace.cache.stored(sealed)

    stream.delete([1, 3, 4])
    keyspace.cut()
    (found,) = snapshots(keyspace)

    assert isinstance(found, StreamSnapshot)
    assert [(node.first, node.dead) for node in found.nodes] == [(1, 1), (7, 0)]
    assert found.nodes[0].payload is None
    assert list(found.dropped_nodes) == [sealed[1]]


def test_a_restored_value_takes_its_place_and_its_number() -> None:
    keyspace = new_keyspace()
    string = String(41, 3, b"t")
    string.expire_ms = 7

    keyspace.restore(string)

    assert keyspace.get(3, b"t") is string
    assert keyspace.next_expiry() == 7
    assert keyspace.create_stream(0, b"s").number == 42


def test_after_a_clean_stop_no_ack_of_an_undelivered_entry_is_taken() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    stream.append(1, [b"f", b"v"])
    group = keyspace.create_group(stream, b"g", 0, None)
    keyspace.set_string(0, b"t", b"x")

    keyspace.resume(0, crashed=False)

    assert settle.ack(group, [1]) == 0


def test_lost_replies_of_a_group_that_is_gone_change_nothing() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    stream.append(1, [b"f", b"v"])
    group = keyspace.create_group(stream, b"g", 0, None)
    poll.poll(group, members.member_named(group, b"a", 0), 0, count=1)
    keyspace.destroy_group(group)
    keyspace.take()

    keyspace.return_claims(keyspace.handed, 0)

    assert keyspace.take() == []


def test_due_claims_end_one_group_a_call() -> None:
    keyspace = new_keyspace()
    stream = keyspace.create_stream(0, b"s")
    stream.append(1, [b"f", b"v"])
    groups = [keyspace.create_group(stream, name, 0, None) for name in (b"g", b"h")]
    for group in groups:
        poll.poll(group, members.member_named(group, b"a", 0), 0, count=1)
    keyspace.take()

    keyspace.expire_claims(30_000)
    assert {change.target for change in keyspace.take()} == {groups[0]}
    keyspace.expire_claims(30_000)
    assert {change.target for change in keyspace.take()} == {groups[1]}

    assert keyspace.next_deadline() == 86_400_000  # when unused consumers go
