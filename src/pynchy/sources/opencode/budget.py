"""How much of what servers tell is listened to: so much a second, of each and of all together.

What a server says too much is a debt. It is carried over, also to its next stream, until the time
that it is worth has passed. A server that stays in debt floods; what it asks is still found by
looking.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# What is spent: a line that is skipped costs one, and an event that is looked at so much.
EVENT_COST = 20
_PER_SERVER = 4_000.0
_OF_ALL = 10_000.0
# So many seconds' worth may come at once.
_BURST_SECONDS = 2.0
# Whoever has had to wait for so long without having paid its debt floods.
_FLOOD_SECONDS = 5.0


class EventBudget:
    """What one server may spend; `count` says how many servers share what there is."""

    def __init__(
        self, count: Callable[[], int] = lambda: 1, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._now = now
        self._debt = 0.0
        self._as_of = now()
        self._waited_seconds = 0.0

    @property
    def is_flooded(self) -> bool:
        """True if the server tells more than it may, and goes on."""
        return self._waited_seconds > _FLOOD_SECONDS

    def spend(self, cost: float) -> float:
        """Note what was read, and return for how many seconds nothing more is to be."""
        now, rate = self._now(), min(_PER_SERVER, _OF_ALL / max(1, self._count()))
        self._debt = max(0.0, self._debt - (now - self._as_of) * rate) + cost
        self._as_of = now
        pause = max(0.0, self._debt / rate - _BURST_SECONDS)
        if self._debt <= cost:
            self._waited_seconds = 0.0
        self._waited_seconds += pause
        return pause

    def begin_anew(self) -> None:
        """Forget that the server has flooded, though not what it owes."""
        self._waited_seconds = 0.0
