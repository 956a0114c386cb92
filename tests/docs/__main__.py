"""``python -m tests.docs``: run every session and write down what it prints now.

Lines that still hold stay as they are, with their times and receipts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.docs.sessions import DOCUMENTS, Stage, Step, sessions


def reprint(document: Path) -> bool:
    """True when something changed."""
    text = document.read_text()
    lines = text.splitlines()
    printed: list[tuple[Step, list[str]]] = []
    for session in sessions(text):
        with (
            tempfile.TemporaryDirectory() as directory,
            Stage(Path(directory)) as stage,
        ):
            printed += [(step, stage.run(step)) for step in session.steps]
    for step, said in reversed(printed):
        lines[step.first : step.first + len(step.shown)] = said
    new = "\n".join(lines) + "\n"
    if new != text:
        document.write_text(new)
    return new != text


if __name__ == "__main__":
    for path in DOCUMENTS:
        if reprint(path):
            print(f"{path} is new")
