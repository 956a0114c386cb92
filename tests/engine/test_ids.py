"""Entry IDs, in and out."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from felixresp.engine.ids import (
    MAX_ID,
    SEQ_MAX,
    InvalidID,
    format_id,
    make_id,
    parse_id,
)


@given(st.integers(0, SEQ_MAX), st.integers(0, SEQ_MAX))
def test_an_id_comes_back_as_it_was_written(ms: int, seq: int) -> None:
    assert parse_id(format_id(make_id(ms, seq))) == make_id(ms, seq)


@given(st.tuples(*[st.integers(0, 3)] * 2), st.tuples(*[st.integers(0, 3)] * 2))
def test_ids_compare_by_time_then_sequence(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (make_id(*one) < make_id(*other)) == (one < other)


def test_a_missing_sequence_is_the_default() -> None:
    assert parse_id(b"5") == make_id(5, 0)
    assert parse_id(b"5", SEQ_MAX) == make_id(5, SEQ_MAX)
    assert parse_id(b"%d-%d" % (SEQ_MAX, SEQ_MAX)) == MAX_ID


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-",
        b"+",
        b"1-",
        b"-1",
        b"1-2-3",
        b"1_0",
        b" 1",
        b"1 ",
        b"+1",
        b"1.0",
        b"\xd9\xa1",
        b"18446744073709551616",
        b"0-18446744073709551616",
        b"1" * 128,
        b"0" * 128,
        b"1" * 100_000,
    ],
)
def test_what_is_no_id_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidID):
        parse_id(text)
