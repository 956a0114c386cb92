"""Glob patterns, as Redis matches them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felixresp.commands.glob import matcher, matches


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (b"*", b"", True),
        (b"*", b"anything", True),
        (b"", b"", True),
        (b"", b"a", False),
        (b"**", b"", False),  # so does Redis
        (b"a**", b"a", True),
        (b"h?llo", b"hello", True),
        (b"h?llo", b"hllo", False),
        (b"h*llo", b"heeeello", True),
        (b"*a*b*c", b"xxaxxbxxc", True),
        (b"*a*b*c", b"xxaxxbxx", False),
        (b"h[ae]llo", b"hallo", True),
        (b"h[ae]llo", b"hillo", False),
        (b"h[^e]llo", b"hallo", True),
        (b"h[^e]llo", b"hello", False),
        (b"h[a-b]llo", b"hbllo", True),
        (b"h[b-a]llo", b"hbllo", True),
        (b"[a-]", b"-", False),  # a range up to ]
        (b"[a-]", b"^", True),
        (b"[\\]]", b"]", True),
        (b"[a", b"a", True),
        (b"[abc", b"c", True),
        (b"[", b"[", False),
        (b"[^", b"x", True),
        (b"[]", b"]", False),
        (b"\\*", b"*", True),
        (b"\\*", b"x", False),
        (b"a\\", b"a\\", True),
        (b"s:\xff?", b"s:\xff\x00", True),
    ],
)
def test_a_pattern_matches_as_in_redis(
    pattern: bytes, text: bytes, expected: bool
) -> None:
    assert matches(pattern, text) is expected
    assert bool(matcher(pattern)(text)) is expected


def recursive(pattern: bytes, text: bytes) -> bool:
    """Stars and question marks the plain way, for texts that are not empty."""
    if not pattern:
        return not text
    if pattern[:1] == b"*":
        return recursive(pattern[1:], text) or (
            bool(text) and recursive(pattern, text[1:])
        )
    return bool(text) and (
        pattern[:1] in (b"?", text[:1]) and recursive(pattern[1:], text[1:])
    )


ALPHABET = st.sampled_from(list(b"ab"))
PATTERNS = st.lists(st.sampled_from(list(b"ab*?")), max_size=8).map(bytes)


@given(PATTERNS, st.lists(ALPHABET, min_size=1, max_size=8).map(bytes))
def test_stars_match_as_a_plain_search_does(pattern: bytes, text: bytes) -> None:
    assert matches(pattern, text) == recursive(pattern, text)


def test_a_hostile_pattern_takes_no_exponential_time() -> None:
    assert not matches(b"*a" * 200 + b"b", b"a" * 2000)


@given(
    st.lists(st.sampled_from(b"ab*?[]^-\\\n\xff."), max_size=70).map(bytes),
    st.lists(st.sampled_from(b"ab[]^-\\\n\xff."), max_size=12).map(bytes),
)
def test_a_matcher_says_what_matches_says(pattern: bytes, text: bytes) -> None:
    assert bool(matcher(pattern)(text)) is matches(pattern, text)


def test_a_matcher_does_not_try_every_way_to_place_its_stars() -> None:
    match = matcher(b"*a" * 30 + b"b")

    assert not match(b"a" * 100_000)
