"""The demo is a test of its own: it ends with 0 only when all of it happened."""

from __future__ import annotations

import subprocess
import sys


def test_the_demo_shows_the_main_job() -> None:
    command = [sys.executable, "-m", "felixresp", "--demo"]

    shown = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "SIGKILL to alice" in shown.stdout
    assert "XDLQ REDRIVE" in shown.stdout
    assert shown.stderr == ""
