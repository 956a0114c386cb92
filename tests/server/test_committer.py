"""Which partition a key belongs to."""

from __future__ import annotations

import pytest

from felixresp.server.committer import hash_slot


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        (b"123456789", 12739),
        (b"foo", 12182),
        (b"", 0),
        (b"{foo}", 12182),
        (b"a{foo}b", 12182),
        (b"{}foo", 9500),
        (b"{foo}{bar}", 12182),
    ],
)
def test_a_key_has_the_slot_it_has_in_redis(key: bytes, slot: int) -> None:
    assert hash_slot(key) == slot
