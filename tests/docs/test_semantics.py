"""What docs/semantics.md says outside its sessions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from felixresp.config import SETTINGS
from tests.docs.sessions import DOCUMENTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "semantics.md").read_text()
LIMITS = TEXT[TEXT.index("## Limits") : TEXT.index("Not settings:")]


def test_the_table_of_limits_has_every_setting_of_groups_with_its_default() -> None:
    rows = re.findall(r"^\| `(group-[a-z-]+)` \| (\S+) \|", LIMITS, re.MULTILINE)

    assert dict(rows) == {
        name: str(setting.default)
        for name, setting in SETTINGS.items()
        if name.startswith("group-")
    }


def test_the_table_of_limits_names_counters_that_info_has() -> None:
    shown = set(re.findall(r"^([a-z_]+):\d+$", LIMITS, re.MULTILINE))
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", LIMITS))

    assert named
    assert named <= shown


@pytest.mark.parametrize(
    "document",
    [*DOCUMENTS, ROOT / "README.md", ROOT / "CHANGELOG.md"],
    ids=lambda path: path.name,
)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text())

    assert [link for link in links if not (document.parent / link).is_file()] == []
