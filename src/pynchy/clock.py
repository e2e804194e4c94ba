"""The host's time: the wall clock at start, then a steady clock from there.

A wall clock that jumps while the host runs neither expires a question nor revives one. The jump
is reported, and taken over at the next start.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

JUMP_SECONDS = 30.0


class SteadyClock:
    """Wall time at the start plus what has passed since, sleep of the machine included."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._zero = _elapsed_seconds()

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return self._started + timedelta(seconds=_elapsed_seconds() - self._zero)

    def jump_seconds(self) -> float:
        """Return how far the wall clock has moved away from ours."""
        return (datetime.now(UTC) - self.now()).total_seconds()

    def problem(self) -> str | None:
        """Say so if the wall clock has jumped, in words for a person."""
        jump = self.jump_seconds()
        if abs(jump) < JUMP_SECONDS:
            return None
        return (
            f"the machine's clock has jumped by {jump:+.0f} s since the start; "
            "deadlines go by the time before the jump until a restart"
        )


def _elapsed_seconds() -> float:
    # CLOCK_MONOTONIC stands still on Linux while the machine sleeps; deadlines do not.
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)
