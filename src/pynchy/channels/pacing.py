"""Send one message after another: services refuse, or ban, those who are too fast."""

from __future__ import annotations

import asyncio
import time


class Turns:
    """One after another, and never faster than the pace."""

    def __init__(self, pace_seconds: float) -> None:
        self._pace_seconds = pace_seconds
        self._lock = asyncio.Lock()
        self._next = 0.0

    async def free(self) -> None:
        """Return when nobody has the turn."""
        async with self._lock:
            pass

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            await asyncio.sleep(max(0.0, self._next - time.monotonic()))
        except asyncio.CancelledError:
            self._lock.release()
            raise

    async def __aexit__(self, *exc_info: object) -> None:
        self._next = time.monotonic() + self._pace_seconds
        self._lock.release()
