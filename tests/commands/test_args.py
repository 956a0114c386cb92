"""The argument cursor and its strict numbers."""

from __future__ import annotations

import pytest

from felixresp.commands.args import Args, entry_id, integer
from felixresp.commands.errors import INVALID_ID, NOT_AN_INTEGER, SYNTAX, CommandError


def cursor(*words: bytes) -> Args:
    return Args((b"name", *words), 1)


def test_words_are_read_left_to_right() -> None:
    args = cursor(b"key", b"7", b"5-1", b"count", b"x", b"y")

    assert (args.bytes(), args.int(), args.id()) == (b"key", 7, 5 << 64 | 1)
    assert args.peek() == b"count"
    assert args.token() == b"COUNT"
    assert args.remaining() == 2
    assert list(args.rest()) == [b"x", b"y"]
    assert not args


def test_a_word_that_is_missing_is_a_syntax_error() -> None:
    with pytest.raises(CommandError) as caught:
        cursor().bytes()

    assert caught.value.text == SYNTAX


@pytest.mark.parametrize(
    "word",
    [
        *(
            b"",
            b" 1",
            b"1 ",
            b"+1",
            b"-",
            b"-0",
            b"01",
            b"1_0",
            b"1.0",
            b"0x1",
            b"\xb2",
        ),
        *(b"9223372036854775808", b"-9223372036854775809", b"1" * 5000),
    ],
)
def test_an_integer_has_one_spelling_and_64_bits(word: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        integer(word)

    assert caught.value.text == NOT_AN_INTEGER


@pytest.mark.parametrize("value", [0, -1, 10, 2**63 - 1, -(2**63)])
def test_every_64_bit_integer_is_read(value: int) -> None:
    assert integer(b"%d" % value) == value


def test_the_command_chooses_the_text_for_a_bad_integer() -> None:
    with pytest.raises(CommandError) as caught:
        cursor(b"x").int(error=b"ERR other")

    assert caught.value.text == b"ERR other"


def test_an_id_without_sequence_takes_the_given_one() -> None:
    assert entry_id(b"5") == 5 << 64
    assert entry_id(b"5", 9) == 5 << 64 | 9
    assert entry_id(b"5-1", 9) == 5 << 64 | 1


@pytest.mark.parametrize("word", [b"", b"-", b"x", b"1-", b"1-2-3", b"-5", b"*"])
def test_a_bad_id_has_one_text(word: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        entry_id(word)

    assert caught.value.text == INVALID_ID
