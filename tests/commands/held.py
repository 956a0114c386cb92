"""Entries 1 to 4 of s: a holds 1 and 2, b holds 3; 4 is new."""

from __future__ import annotations

from typing import Any

from .driver import Driver


def read_some(driver: Driver) -> None:
    """Handed out by XREADGROUP; str is a string."""
    _append(driver)
    driver.script("XREADGROUP GROUP g a COUNT 2 STREAMS s >")
    driver.script("XREADGROUP GROUP g b COUNT 1 STREAMS s >")


def poll_some(driver: Driver) -> dict[str, str]:
    """Handed out by XPOLL: the receipts by ID."""
    _append(driver)
    return polled(driver, "a", 2) | polled(driver, "b", 1)


def polled(driver: Driver, name: str, count: int) -> dict[str, str]:
    answer = driver.show(f"XPOLL s g {name} COUNT {count}")
    return {id_: meta[3] for id_, _, meta in answer}


def rows(driver: Driver) -> dict[str, Any]:
    """XPENDING: holder, idle and deliveries by ID."""
    return {row[0]: row[1:] for row in driver.show("XPENDING s g - + 10")}


def explained(driver: Driver, words: str = "1-1") -> dict[str, Any]:
    return pairs(driver.show(f"XEXPLAIN s g {words}"))


def pairs(flat: Any) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def readable(driver: Driver) -> list[str]:
    answer: Any = driver.show("XREADGROUP GROUP g c STREAMS s >")
    return [id_ for id_, _ in answer[0][1]] if isinstance(answer, list) else []


def _append(driver: Driver) -> None:
    for number in (1, 2, 3, 4):
        driver.script(f"XADD s {number}-1 f {number}")
    driver.script("XGROUP CREATE s g 0\n SET str x")
