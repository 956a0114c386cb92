"""Redis's entries-read, known or estimated."""

from __future__ import annotations

from felixresp.config import Settings
from felixresp.engine.group import Group
from felixresp.engine.keyspace import Keyspace
from felixresp.engine.lag import entries_read_after, estimate, redis_lag


def group_of(entries: int, read: int | None = 0) -> Group:
    keyspace = Keyspace(Settings())
    stream = keyspace.create_stream(0, b"s")
    for number in range(1, entries + 1):
        stream.append(number, [b"f", b"v"])
    return keyspace.create_group(stream, b"g", 0, read)


def test_a_stream_that_never_had_entries_has_been_read_to_the_end() -> None:
    assert estimate(group_of(0).stream, 0) == 0


def test_at_the_last_id_all_have_been_read() -> None:
    assert estimate(group_of(5).stream, 5) == 5


def test_an_emptied_stream_has_been_read() -> None:
    stream = group_of(5).stream
    stream.delete(range(1, 6))

    assert estimate(stream, 3) == 5


def test_before_or_at_the_first_entry_the_count_is_certain() -> None:
    stream = group_of(5).stream
    stream.trim_to_id(3, whole=False, limit=0)

    assert estimate(stream, 2) == 2
    assert estimate(stream, 3) == 3


def test_in_the_middle_beyond_the_tail_or_below_a_hole_nothing_is_known() -> None:
    stream = group_of(5).stream

    assert estimate(stream, 2) is None
    assert estimate(stream, 6) is None
    stream.delete([3])
    assert estimate(stream, 2) is None
    assert estimate(stream, 0) is None


def test_a_known_count_goes_on_while_no_hole_lies_ahead() -> None:
    group = group_of(5, read=None)
    group.entries_read, group.head = 2, 2

    assert entries_read_after(group, [3, 4]) == 4
    group.stream.delete([4])
    assert entries_read_after(group, [3]) is None
    assert entries_read_after(group, [3, 5]) == 5
    group.head = 5
    assert entries_read_after(group, [6]) == 3


def test_before_the_first_entry_the_lag_is_the_length_unless_a_hole_lies_ahead() -> (
    None
):
    group = group_of(5, read=None)
    group.head = 0
    stream = group.stream

    assert redis_lag(group) == 5
    stream.delete([1])
    assert redis_lag(group) == 4
    stream.delete([3])
    assert redis_lag(group) is None
    stream.delete([2, 4, 5])
    assert redis_lag(group) == 0


def test_redis_counts_the_lag_from_what_was_read_or_estimates_it() -> None:
    group = group_of(5, read=None)
    group.head, group.entries_read = 2, 2

    assert redis_lag(group) == 3
    group.entries_read = None
    assert redis_lag(group) is None
    group.head = 5
    assert redis_lag(group) == 0
