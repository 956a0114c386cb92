"""What the operator is told: lines on standard error."""

from __future__ import annotations

import os
import sys


def say(line: str) -> None:
    print(f"felixresp: {line}", file=sys.stderr, flush=True)


def end_process(line: str) -> None:
    """Memory and disk may disagree: end before a reply says so."""
    say(line)
    os._exit(1)
