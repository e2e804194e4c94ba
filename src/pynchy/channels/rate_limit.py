"""Send one message after another: services refuse, or ban, those who are too fast.

Where a service does not answer at all, those who wait their turn are not kept waiting for that.
"""

from __future__ import annotations

import asyncio
import time

from pynchy.errors import NotShown

_HOPELESS = 3


class RateLimiter:
    """One after another, and never faster than the pace.

    `lost` is what a call to the service without a reply raises. Raise NotShown for those who
    have waited through several of them.
    """

    def __init__(self, service: str, pace_seconds: float, lost: type[Exception]) -> None:
        self._service = service
        self._pace_seconds = pace_seconds
        self._lost = lost
        self._losses = 0
        self._lock = asyncio.Lock()
        # Not 0: on a machine that was just switched on, that is a moment ago.
        self._ended = float("-inf")

    async def free(self) -> None:
        """Return when nobody has the turn."""
        async with self._lock:
            pass

    async def __aenter__(self) -> None:
        came = time.monotonic()
        await self._lock.acquire()
        try:
            self._check_hope(came)
            await asyncio.sleep(max(0.0, self._ended + self._pace_seconds - time.monotonic()))
        except BaseException:
            self._lock.release()
            raise

    def _check_hope(self, came: float) -> None:
        if self._losses >= _HOPELESS and came < self._ended:
            raise NotShown(f"{self._service} does not answer")

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        self._losses = self._losses + 1 if isinstance(error, self._lost) else 0
        self._ended = time.monotonic()
        self._lock.release()
