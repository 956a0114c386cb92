"""What a record is written as is what it was, whatever clients set."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from felixresp.engine.changes import Claimed, HandedBack, Tally
from felixresp.engine.dead_letters import DeadLetter
from felixresp.engine.handouts import Attempt
from felixresp.engine.snapshots import Claim, PendingRecord
from felixresp.storage import records
from felixresp.storage.codec import Decoder, encode_changes
from tests.storage.test_codec import (
    Targets,
    counts,
    ids,
    letters,
    nonces,
    tallies,
    texts,
    times,
)

attempts = st.builds(Attempt, texts, times, times, texts, texts)
stories = st.just(()) | st.lists(attempts, min_size=1, max_size=16)
claims = st.builds(Claim, counts, texts, times, times, times, nonces)
pendings = st.builds(PendingRecord, claims, st.integers(0, 2), times, tallies, stories)
integers = st.integers(-(2**70), 2**70)


@given(ids, pendings)
def test_a_pending_entry_reads_back_as_it_was_written(
    id_: int, record: PendingRecord
) -> None:
    written = records.encode_pending(record)

    key = records.entry_key(1, 2, id_)
    assert records.decode_pending(key[16:], written) == (id_, record)


@given(letters, stories, st.booleans())
def test_a_dead_letter_reads_back_as_it_was_written(
    letter: DeadLetter, story: Sequence[Attempt], listed: bool
) -> None:
    written = records.encode_dead(letter, story, listed=listed)

    assert records.decode_dead(written) == (letter, story, listed)


def test_a_story_of_very_long_names_keeps_its_newest_attempts() -> None:
    name = b"n" * 400_000
    story = [Attempt(name, at, at + 1, b"lapse", b"") for at in range(16)]
    claim = Claim(1, b"default", 5, 5, 6, 7)
    record = PendingRecord(claim, 0, 0, Tally(1, 1, 5), story)

    written = records.encode_pending(record)

    _, read = records.decode_pending(bytes(16), written)
    assert read == record._replace(story=story[-2:])


@given(integers, integers, integers)
def test_what_is_out_of_64_bits_is_written_as_the_nearest_number(
    count: int, at_ms: int, until_ms: int
) -> None:
    targets = Targets()
    member = targets.consumer.member(b"ann")
    tally = Tally(count, count, at_ms)
    claimed = Claimed(targets.group, member, {1: tally}, at_ms, at_ms, until_ms)
    back = HandedBack(targets.group, {1: until_ms}, {1: tally}, 5, b"fail", b"")
    claim = Claim(1, b"ann", at_ms, at_ms, until_ms, 0)
    record = PendingRecord(claim, 2, until_ms, tally, ())

    written = encode_changes([claimed, back])
    stored = records.encode_pending(record)

    near_ms, near_until_ms = nearest(at_ms), nearest(until_ms)
    near_count = min(max(count, 0), 2**64 - 1)
    near = Tally(near_count, near_count, near_ms)
    read, given_back = Decoder(targets.keyspace).changes(written)
    assert isinstance(read, Claimed)
    assert isinstance(given_back, HandedBack)
    assert (read.tallies, read.handed_ms) == ({1: near}, near_ms)
    assert (given_back.untils, given_back.tallies) == ({1: near_until_ms}, {1: near})
    _, found = records.decode_pending(bytes(16), stored)
    assert found.claim == Claim(1, b"ann", near_ms, near_ms, near_until_ms, 0)
    assert (found.until_ms, found.tally) == (near_until_ms, near)


def nearest(unix_ms: int) -> int:
    return min(max(unix_ms, -(2**63)), 2**63 - 1)
