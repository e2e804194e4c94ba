"""The clocks that the screen goes by; a test can stop them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

# What has just appeared takes no keys for so long: they were meant for something else.
DEAF_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is, and how much of it has passed."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
