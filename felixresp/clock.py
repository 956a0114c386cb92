"""The one place where time is read.

``wall_ms`` is the system's clock: IDs, key expiry, TIME. ``now_ms`` is a clock
that starts at the wall time and then only moves forward at its own pace:
claims, deadlines and waits use it, so a jump of the system's clock neither
ends a claim early nor keeps it for ever.
"""

from __future__ import annotations

import time


class SystemClock:
    """Both clocks, in unix milliseconds."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wall_us(self) -> int:
        return time.time_ns() // 1000
