"""The house stays as docs/architecture.md draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "felixresp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINES_MAX = 500  # about 400, with room for one more thing
FUNCTION_LINES_MAX = 70
ONE_HOME = {"hiredis": "protocol", "lmdb": "storage"}
ASYNC_ROOMS = ("server", "app.py")
BANNED_NAMES = ("manager", "helper", "utils", "common")

pytestmark = pytest.mark.skipif(
    not PACKAGE.is_dir(), reason="the sources are not beside the tests"
)


def imported(path: Path) -> Iterator[str]:
    """Top-level names of absolute imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize(("library", "room"), ONE_HOME.items())
def test_a_foreign_library_is_imported_in_one_file(library: str, room: str) -> None:
    homes = [path for path in SOURCES if library in imported(path)]

    assert [home.parent.name for home in homes] == [room]


def test_the_clock_is_read_in_one_file() -> None:
    readers = [path.name for path in SOURCES if "time" in imported(path)]

    assert [name for name in readers if name not in ("clock.py", "demo.py")] == []


def test_only_the_server_is_asynchronous() -> None:
    for path in SOURCES:
        room = path.relative_to(PACKAGE).parts[0]
        tree = ast.walk(ast.parse(path.read_text()))

        found = any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in tree)

        assert not found or room in ASYNC_ROOMS, path


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()

    assert text.count("\n") <= LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{path}: {node.name}"


def test_files_are_named_after_what_they_hold() -> None:
    for path in SOURCES:
        assert not any(name in path.stem for name in BANNED_NAMES), path


def test_every_module_says_what_it_is_for() -> None:
    for path in SOURCES:
        text = path.read_text()
        if text.strip() and path.name != "__init__.py":
            assert ast.get_docstring(ast.parse(text)), path
