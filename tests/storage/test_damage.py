"""A flipped bit in the journal, wherever it is: refused by name, or seen as the end."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from felixresp.storage.base import StoreError
from felixresp.storage.frames import BLOCK_BYTES, segment_numbers, segment_path
from tests.storage.house import JournalHouse, copy_directory, small

FRAMES = 5
STEP = 37  # every so many bytes, so that each field of each block is met


def test_a_flipped_bit_anywhere_in_the_journal_is_refused_or_changes_nothing(
    tmp_path: Path,
) -> None:
    settings = small(checkpoint_bytes=2**30, journal_segment_bytes=4096)
    house = JournalHouse(tmp_path / "house", settings)
    house.open()
    states = [house.describe()]
    for _ in range(FRAMES):
        house.append(2)
        house.poll(1)
        house.commit()
        states.append(house.describe())
    crashed, position = tmp_path / "crashed", house.store._writer.position
    copy_directory(house.directory, crashed)
    house.store.close()
    last_path = segment_path(crashed, position.segment)
    last = last_path.read_bytes().rindex(b"\xf5fxJ")
    outcomes = Counter[str]()

    for number in segment_numbers(crashed)[: position.segment]:
        path = segment_path(crashed, number)
        data = path.read_bytes()
        for at in range(0, min(len(data), (FRAMES + 2) * BLOCK_BYTES), STEP):
            copy = JournalHouse(tmp_path / "copy", settings)
            shutil.copytree(crashed, copy.directory)
            flipped = bytes((*data[:at], data[at] ^ 1 << at % 8, *data[at + 1 :]))
            (copy.directory / path.name).write_bytes(flipped)
            outcome = opened(copy, states)
            assert outcome != "cut" or (path == last_path and at >= last)
            assert outcome != "refused" or path != last_path or at < last
            outcomes[outcome] += 1
            shutil.rmtree(tmp_path / "copy")

    assert outcomes.keys() == {"refused", "whole", "cut"}


def opened(copy: JournalHouse, states: Sequence[dict[str, Any]]) -> str:
    """What came of it."""
    try:
        copy.open()
    except StoreError as refusal:
        # the segment, or the one before it, where its first frame was looked for
        named = re.search(r"journal-\d{16}: .* offset \d+ is damaged", str(refusal))
        return "refused" if named else str(refusal)
    found = copy.describe()
    copy.store.close()
    return "whole" if found == states[-1] else "cut" if found == states[-2] else "?"
