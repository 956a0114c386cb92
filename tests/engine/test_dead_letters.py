"""The list of what a group gave up on."""

from __future__ import annotations

import dataclasses

from felixresp.engine.dead_letters import DeadLetter, DeadLetters

LETTER = DeadLetter(1, 3, b"attempts", b"", b"alice", 10, 20, 0)


def letters(*ids: int) -> DeadLetters:
    found = DeadLetters()
    for id_ in ids:
        found.add(dataclasses.replace(LETTER, id=id_))
    return found


def test_letters_are_listed_in_id_order_whenever_they_came() -> None:
    found = letters(5, 1, 3)

    assert found.ids() == [1, 3, 5]
    assert [letter.id for letter in found.between(2, 5)] == [3, 5]
    assert [letter.id for letter in found.between(2, 4)] == [3]
    assert list(found.between(6, 9)) == []


def test_a_letter_listed_again_is_listed_once() -> None:
    found = letters(1, 1)

    assert found.ids() == [1]
    assert found.remove(1) is not None
    assert found.remove(1) is None
    assert found.ids() == []


def test_a_redriven_letter_is_off_the_list_and_kept() -> None:
    found = letters(1, 2)

    found.redrive(1)
    found.redrive(9)

    assert found.ids() == [2]
    assert found.redriven.keys() == {1}
    found.add(LETTER)
    assert found.redriven == {}
