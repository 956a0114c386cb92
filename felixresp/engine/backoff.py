"""How long an entry that failed waits before it is handed out again.

    none | fixed MS | linear MS MAX | exponential MS FACTOR MAX [JITTER]

The delay after the n-th attempt is MS, n * MS, or MS * FACTOR ** (n - 1), and
never over MAX. JITTER (0 to 1) is the share of it that chance may take off.
config.py has checked the text.
"""

from __future__ import annotations

from collections.abc import Callable

_DOUBLINGS_MAX = 1024  # a float's exponent ends there


def delay_ms(policy: str, attempts: int, random64: Callable[[], int]) -> int:
    """The delay in ms; 0 for none. ``random64`` gives 64 random bits."""
    kind, *words = policy.split()
    if kind == "none":
        return 0
    first_ms, attempts = int(words[0]), max(attempts, 1)
    if kind == "fixed":
        return first_ms
    if kind == "linear":
        return min(first_ms * attempts, int(words[1]))
    factor, most_ms = float(words[1]), int(words[2])
    try:
        wanted = first_ms * factor ** min(attempts - 1, _DOUBLINGS_MAX)
    except OverflowError:
        wanted = most_ms
    delay = min(wanted, most_ms)
    if len(words) > 3:
        delay -= delay * float(words[3]) * (random64() / 2**64)
    return int(delay)
