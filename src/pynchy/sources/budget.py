"""How much of what servers tell is listened to: so much a second, of each and of all together.

A server of the settings has a rate that nobody else changes; those that were only found share the
rest, since any agent can start more of them.

What a server says too much is a debt of time. It is carried over, also to its next stream, until
that time has passed. A server that tells more than its rate for half a minute floods; what it asks
is still found by looking.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# What is spent: a line that is skipped costs one, and an event that is looked at so much.
EVENT_COST = 20
_PER_SERVER = 4_000.0
_OF_ALL = 10_000.0
# However many servers the settings name: something is left for those that are found.
_OF_SETTINGS = 8_000.0
# So many seconds' worth may come at once.
_BURST_SECONDS = 2.0
# Whoever had to wait again and again for so long has told more than its rate on average.
_FLOOD_SECONDS = 30.0
# Whoever did not have to wait for so long keeps to its rate. More than a busy loop oversleeps.
_CALM_SECONDS = 1.0


def configured_rate(configured: int) -> float:
    """Return what each of so many servers of the settings may spend in a second."""
    return min(_PER_SERVER, _OF_SETTINGS / max(1, configured))


def found_rate(configured: int, found: int) -> float:
    """Return what each of so many found servers may spend in a second, beside those configured."""
    rest = _OF_ALL - configured * configured_rate(configured)
    return min(_PER_SERVER, rest / max(1, found))


class EventBudget:
    """What one server may spend; `rate` says how much that is in a second just now."""

    def __init__(
        self,
        rate: Callable[[], float] = lambda: _PER_SERVER,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._now = now
        self._debt_seconds = 0.0
        self._as_of = now()
        self._late_since = self._late_until = self._as_of

    @property
    def is_flooded(self) -> bool:
        """True if the server tells more than it may, and goes on."""
        return self._late_until - self._late_since > _FLOOD_SECONDS

    def spend(self, cost: float) -> float:
        """Note what was read, and return for how many seconds nothing more is to be."""
        now, owed = self._now(), cost / self._rate()
        # In seconds: what was spent at one rate is not priced anew when the rate changes.
        self._debt_seconds = max(0.0, self._debt_seconds - (now - self._as_of)) + owed
        self._as_of = now
        pause = max(0.0, self._debt_seconds - _BURST_SECONDS)
        if now - self._late_until > _CALM_SECONDS:
            self._late_since = now
        if pause:
            self._late_until = now + pause
        return pause

    def begin_anew(self) -> None:
        """Forget that the server has flooded, though not what it owes."""
        self._late_since = self._late_until
