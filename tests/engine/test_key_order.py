"""What a scan meets."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from felixresp.engine.key_order import KeyOrder


def test_a_scan_meets_every_key_once_when_nothing_changes() -> None:
    keys = {b"k%d" % number: None for number in range(50)}
    order = KeyOrder(keys)
    for key in keys:
        order.add(key)
    met, cursor = [], 0

    while True:
        cursor, found = order.scan(cursor, 7)
        met += found
        if not cursor:
            break

    assert sorted(met) == sorted(keys)


def test_a_scan_passes_over_keys_that_are_gone() -> None:
    keys: dict[bytes, None] = {b"a": None, b"b": None}
    order = KeyOrder(keys)
    order.add(b"a")
    order.add(b"b")
    del keys[b"b"]

    assert order.scan(0, 10) == (0, [b"a"])


def test_a_scan_of_nothing_ends_at_once() -> None:
    assert KeyOrder({}).scan(0, 10) == (0, [])


def test_a_scan_ends_at_once_when_every_key_is_gone() -> None:
    keys: dict[bytes, None] = {}
    order = KeyOrder(keys)
    for number in range(50):
        order.add(b"k%d" % number)

    assert order.scan(0, 1) == (0, [])


def test_keys_that_come_and_go_leave_nothing_behind() -> None:
    keys: dict[bytes, None] = {b"constant": None}
    order = KeyOrder(keys)
    order.add(b"constant")
    for _ in range(1000):
        keys[b"k"] = None
        order.add(b"k")
        del keys[b"k"]
    keys[b"k"] = None
    order.add(b"k")

    cursor, met = order.scan(0, 100)

    assert cursor == 0
    assert sorted(met) == [b"constant", b"k"]
    assert len(order._keys) < 100


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=400))
def test_a_key_that_is_there_all_the_time_is_met(
    deeds: list[tuple[bool, int]],
) -> None:
    keys: dict[bytes, None] = {b"constant": None}
    order = KeyOrder(keys)
    order.add(b"constant")
    met, cursor, rounds = set(), 0, 0

    for create, number in deeds:
        key = b"%d" % number
        if create and key not in keys:
            keys[key] = None
            order.add(key)
        elif not create:
            keys.pop(key, None)
        if rounds == 0:
            cursor, found = order.scan(cursor, 1)
            met.update(found)
            rounds += not cursor
    while rounds == 0:
        cursor, found = order.scan(cursor, 1)
        met.update(found)
        rounds += not cursor

    assert b"constant" in met
