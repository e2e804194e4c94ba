"""What can go wrong with a call of the Web API, on demand."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, `times` calls long.

    `drop` cuts the connection after the work is done; `before` cuts it before. `status` answers
    in text/plain, as Slack's front does; 429 carries Retry-After. `error` is Slack's own refusal.
    `slow_seconds` pass before the work, `late_seconds` between the work and the reply.
    """

    drop: bool = False
    before: bool = False
    status: int | None = None
    retry_after_seconds: int = 1
    error: str | None = None
    slow_seconds: float = 0.0
    late_seconds: float = 0.0


class Faults:
    """Which calls fail next, method by method; `*` is every method."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Fault]] = {}

    def add(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let the next calls of the method fail."""
        self._queues.setdefault(method, deque()).extend([fault] * times)

    def take(self, method: str) -> Fault | None:
        """Return what goes wrong with this call."""
        for name in (method, "*"):
            if queue := self._queues.get(name):
                return queue.popleft()
        return None

    def clear(self, method: str | None = None) -> None:
        """Let everything, or one method, go well again."""
        if method is None:
            self._queues.clear()
        else:
            self._queues.pop(method, None)


class RateLimit:
    """So many calls of a method a second in each channel, with a small burst."""

    def __init__(self, per_second: float | None = None, burst: int = 1) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._levels: dict[str, tuple[float, float]] = {}

    def allows(self, what: str) -> bool:
        """Count a call, if there is room for it."""
        if self._per_second is None:
            return True
        now = time.monotonic()
        level, at = self._levels.get(what, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_second)
        allowed = level >= 1
        self._levels[what] = (level - 1 if allowed else level, now)
        return allowed
