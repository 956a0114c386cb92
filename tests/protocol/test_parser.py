"""Requests and errors do not depend on how the bytes were cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from felixresp.config import MiB, Settings
from felixresp.protocol.parser import (
    INLINE_BYTES_MAX,
    LINE_BYTES_MAX,
    Parser,
    split_inline,
)

Request = list[bytes]
PING = b"*1\r\n$4\r\nPING\r\n"


def encode(args: Sequence[bytes]) -> bytes:
    bulks = [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in args]
    return b"*%d\r\n" % len(args) + b"".join(bulks)


def parse(
    chunks: Iterable[bytes], *, trusted: bool = True
) -> tuple[list[Request], bytes]:
    """All requests and the error's text, empty for none."""
    parser = Parser(Settings(), trusted=trusted)
    requests = []
    for chunk in chunks:
        requests += parser.feed(chunk)
        while parser.more:
            requests += parser.feed(b"")
    return requests, parser.error.text if parser.error else b""


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


# words that look like protocol
words = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"\r\n", b"\r\n$", b"*1\r\n$1\r\na\r\n", b"$3", b"x" * 5000, b"*"]
    ),
)
requests_strategy = st.lists(st.lists(words, min_size=1, max_size=5), max_size=6)
pieces = st.one_of(
    st.lists(words, min_size=1, max_size=4).map(encode),
    st.sampled_from(
        [
            b"PING a\r\n",
            b"\r\n",
            b"SET \"a b\" 'c'\n",
            b"*0\r\n",
            b"*-3\r\n",
            b"*1\rx$4\rxPINGxx",
            b"*x\r\n",
            b"*1\r\n:4\r\n",
            b"$4\r\n",
            b'PING "a\r\n',
            b"~1\r\n$4\r\nPING\r\n",
        ]
    ),
    # what replies are made of, and requests are not
    st.sampled_from(
        [
            *(b"*1\r\n", b"%1\r\n", b"%2\r\n", b"~2\r\n", b">1\r\n", b"|1\r\n"),
            *(b":1\r\n", b",1.5\r\n", b",x\r\n", b"(12\r\n", b"#t\r\n", b"_\r\n"),
            *(b"+OK\r\n", b"-ERR\r\n", b"=8\r\ntxt:abcd\r\n", b"$-1\r\n", b"*-1\r\n"),
        ]
    ),
    # an argument that makes up for one that is no bulk
    st.sampled_from([b"$4\r\n\r\n$3\r\n", b"$1\r\n$\r\n", b"*3\r\n", b"*2\r\n"]),
    st.binary(max_size=8),
)
places = st.lists(st.integers(0, 10_000), max_size=8)


@given(requests_strategy, places)
def test_every_request_comes_out_as_it_was_sent(
    requests: list[Request], at: list[int]
) -> None:
    data = b"".join(map(encode, requests))

    assert parse(cut(data, at)) == (requests, b"")


@given(st.lists(pieces, max_size=8).map(b"".join), places, st.booleans())
@example(PING + b"%1\r\n" + PING + PING, [], True)
@example(b"*1\r\n%1\r\n" + PING + PING, [], True)
@example(b"*2\r\n$1\r\na\r\n%1\r\n%1\r\n" + 3 * PING, [], True)
@example(b"*2\r\n$4\r\n\r\n$3\r\n+OK\r\n", [], True)
@example(b"*2\r\n+OK\r\n$1\r\n$\r\n", [], True)
@example(PING + b"*3\r\n(12\r\n=8\r\ntxt:abcd\r\n$7\r\n\r\n$\r\n$a\r\n", [], True)
@example(b"PING a\r\n*1\r\n$4\r\nPING\r\n", [], True)
@example(b"*1\r\n$4\r\nPING\r\nPING a\r\n" + PING, [], True)
def test_any_cut_of_the_bytes_gives_the_same_requests(
    data: bytes, at: list[int], trusted: bool
) -> None:
    one_by_one = [data[i : i + 1] for i in range(len(data))]

    whole = parse([data], trusted=trusted)

    assert parse(cut(data, at), trusted=trusted) == whole
    assert parse(one_by_one, trusted=trusted) == whole


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*abc\r\n", b"invalid multibulk length"),
        (b"*2147483648\r\n", b"invalid multibulk length"),
        (b"*\r\n", b"invalid multibulk length"),
        (b"*+1\r\n", b"invalid multibulk length"),
        (b"*01\r\n", b"invalid multibulk length"),
        (b"*1_0\r\n", b"invalid multibulk length"),
        (b"*1\r\nxabc\r\n", b"expected '$', got 'x'"),
        (b"*1\r\n\r\n", b"expected '$', got ' '"),
        (b"*1\r\n*1\r\n", b"expected '$', got '*'"),
        (b"*1\r\n$\r\n", b"invalid bulk length"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$04\r\n", b"invalid bulk length"),
        (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
        (b"*" + b"1" * LINE_BYTES_MAX, b"too big mbulk count string"),
        (b"*1\r\n$" + b"1" * LINE_BYTES_MAX, b"too big bulk count string"),
        (b"x" * (INLINE_BYTES_MAX + 1), b"too big inline request"),
        (b'PING "abc\r\n', b"unbalanced quotes in request"),
        (b'PING "abc"d\r\n', b"unbalanced quotes in request"),
        (b"PING 'abc\\'\r\n", b"unbalanced quotes in request"),
        (b'PING a"b"c\r\n', b"unbalanced quotes in request"),
    ],
)
def test_a_broken_request_is_refused_after_those_before_it(
    data: bytes, text: bytes
) -> None:
    refusal = b"ERR Protocol error: " + text

    assert parse([data]) == ([], refusal)
    assert parse([PING + data + PING]) == ([[b"PING"]], refusal)


@pytest.mark.parametrize(
    "data", [b"*2147483647\r\n", b"*1\r\n$536870912\r\n", b"x" * INLINE_BYTES_MAX]
)
def test_the_largest_allowed_is_waited_for(data: bytes) -> None:
    assert parse([data]) == ([], b"")


def test_empty_requests_are_passed_over() -> None:
    data = b"\r\n\n   \r\n*0\r\n*-5\r\n" + PING

    assert parse([data]) == ([[b"PING"]], b"")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*11\r\n", b"unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", b"unauthenticated bulk length"),
        (b"*1\r\n$999999999999\r\n", b"invalid bulk length"),
        (b"*10\r\n$16384\r\n", b""),
    ],
)
def test_limits_are_tight_before_authentication(data: bytes, text: bytes) -> None:
    error = b"ERR Protocol error: " + text if text else b""

    assert parse([data], trusted=False) == ([], error)


def test_before_authentication_requests_are_given_one_by_one() -> None:
    parser = Parser(Settings(), trusted=False)
    big = encode([b"x"] * 11)

    first = parser.feed(encode([b"AUTH", b"pw"]) + big)
    parser.trusted = True
    second = parser.feed(b"")

    assert first == [[b"AUTH", b"pw"]]
    assert second == [[b"x"] * 11]
    assert parser.error is None


def test_a_client_that_sends_more_than_its_limit_is_cut_off_without_a_reply() -> None:
    parser = Parser(Settings(client_query_buffer_limit=MiB))

    parser.feed(b"*2\r\n$2000000\r\n")
    for _ in range(17):
        parser.feed(b"x" * 65536)

    assert parser.error is not None
    assert parser.error.text == b""


def test_small_arguments_count_for_what_they_cost() -> None:
    parser = Parser(Settings(client_query_buffer_limit=MiB))

    parser.feed(b"*1000000\r\n" + b"$1\r\na\r\n" * 30_000)

    assert parser.error is not None


def test_nothing_is_read_after_an_error() -> None:
    parser = Parser(Settings())

    parser.feed(b"*x\r\n")

    assert parser.feed(PING) == []


@pytest.mark.parametrize(
    ("line", "args"),
    [
        (b"PING", [b"PING"]),
        (b" \tSET  a\tb ", [b"SET", b"a", b"b"]),
        (b'"a\\x41\\n\\r\\t\\b\\a\\q\\"" x', [b'aA\n\r\t\b\aq"', b"x"]),
        (b"'a\\'b\\n' x", [b"a'b\\n", b"x"]),
        (b'""', [b""]),
        (b"a\x0bb", [b"a\x0bb"]),
        (b'a"b c"', [b"ab c"]),
        (b"\xff\x00", [b"\xff\x00"]),
        (b"", []),
        (b'"a', None),
        (b"'a", None),
        (b'"a"b', None),
        (b'"a\\"', None),
    ],
)
def test_inline_quoting_is_that_of_redis(line: bytes, args: list[bytes] | None) -> None:
    assert split_inline(line) == args


def test_what_is_left_for_later_is_not_copied_for_each_request() -> None:
    count = 200_000
    parser = Parser(Settings(), trusted=False)
    found = len(parser.feed(b"PING\r\n" * count))
    data = parser._data

    while parser.more:
        found += len(parser.feed(b""))
        assert not parser.more or parser._data is data

    assert found == count
