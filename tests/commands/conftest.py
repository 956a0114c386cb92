"""A fresh driver for each test."""

from __future__ import annotations

import pytest

from .driver import Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()
