"""docs/compatibility.md says what the server and the declared differences say."""

from __future__ import annotations

from pathlib import Path

from conformance import compatibility, divergences, servers

DOCUMENT = Path(__file__).parents[1] / "docs" / "compatibility.md"


def test_the_document_is_what_the_command_makes() -> None:
    with servers.felixresp() as target:
        made = compatibility.text(target, divergences.load())

    assert DOCUMENT.read_text() == made, (
        "stale: python -m conformance.compatibility > docs/compatibility.md"
    )
