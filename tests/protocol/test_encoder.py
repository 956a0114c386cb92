"""Each reply value in both versions of the protocol."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from felixresp.protocol.encoder import encode, encode_parts
from felixresp.protocol.reply import (
    NIL_ARRAY,
    NO_REPLY,
    OK,
    Entries,
    Error,
    Map,
    Push,
    Reply,
    Set,
    Streams,
    Verbatim,
)


class Pair(NamedTuple):
    first: bytes
    second: int


ENTRY = b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"


@pytest.mark.parametrize(
    ("reply", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NIL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (NO_REPLY, b"", b""),
        (7, b":7\r\n", b":7\r\n"),
        (-1, b":-1\r\n", b":-1\r\n"),
        (True, b":1\r\n", b"#t\r\n"),
        (False, b":0\r\n", b"#f\r\n"),
        (b"", b"$0\r\n\r\n", b"$0\r\n\r\n"),
        (b"a\r\nb", b"$4\r\na\r\nb\r\n", b"$4\r\na\r\nb\r\n"),
        (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
        (3.0, b"$1\r\n3\r\n", b",3\r\n"),
        (float("inf"), b"$3\r\ninf\r\n", b",inf\r\n"),
        (1e300, b"$6\r\n1e+300\r\n", b",1e+300\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (Error(b"ERR a\r\nb"), b"-ERR a  b\r\n", b"-ERR a  b\r\n"),
        ([], b"*0\r\n", b"*0\r\n"),
        (
            [1, [b"a", None]],
            b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n",
            b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n",
        ),
        (Pair(b"a", 1), b"*2\r\n$1\r\na\r\n:1\r\n", b"*2\r\n$1\r\na\r\n:1\r\n"),
        (Map([(b"k", 1)]), b"*2\r\n$1\r\nk\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n:1\r\n"),
        (Set([OK]), b"*1\r\n+OK\r\n", b"~1\r\n+OK\r\n"),
        (Push([b"a"]), b"*1\r\n$1\r\na\r\n", b">1\r\n$1\r\na\r\n"),
        (Verbatim(b"hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
        (Entries(1, [ENTRY]), b"*1\r\n" + ENTRY, b"*1\r\n" + ENTRY),
        (
            Streams([(b"s", Entries(1, [ENTRY]))]),
            b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n" + ENTRY,
            b"%1\r\n$1\r\ns\r\n*1\r\n" + ENTRY,
        ),
    ],
)
def test_a_reply_is_written_as_redis_writes_it(
    reply: Reply, resp2: bytes, resp3: bytes
) -> None:
    assert encode(reply, 2) == resp2
    assert encode(reply, 3) == resp3


def test_deferred_parts_are_handed_through_in_their_place() -> None:
    deferred = object()
    parts: list[object] = []

    encode_parts([1, Entries(2, [ENTRY, deferred])], 2, parts)

    assert parts == [b"*2\r\n", b":1\r\n", b"*2\r\n", ENTRY, deferred]


def test_what_is_not_a_reply_is_a_bug() -> None:
    with pytest.raises(TypeError, match="not a reply: str"):
        encode("text", 2)
