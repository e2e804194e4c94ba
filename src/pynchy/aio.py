"""At most so many at once, and groups take turns: one group's queue never holds up another's.

A place is held for a bounded time: a group whose starts never come to an end holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pynchy.model import GroupName

# Longer than an agent takes to say that it has its answer, if it says so at all.
MAX_SECONDS_LENGTH = 60.0


class FairSemaphore:
    """A semaphore that serves the groups that wait round robin, each in its own order."""

    def __init__(self, most: int, longest_seconds: float = MAX_SECONDS_LENGTH) -> None:
        self._free = most
        self._longest_seconds = longest_seconds
        # Who is served next stands first; a group that was served goes to the end.
        self._waiting: dict[GroupName, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, group: GroupName) -> AsyncIterator[None]:
        """Hold one of the places while the context lasts, but no longer than a place is held."""
        await self._take(group)
        is_held = True

        def give_back() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._give_back()

        due = asyncio.get_running_loop().call_later(self._longest_seconds, give_back)
        try:
            yield
        finally:
            due.cancel()
            give_back()

    async def _take(self, group: GroupName) -> None:
        if self._free:
            self._free -= 1
            return
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(served)
        try:
            await served
        except asyncio.CancelledError:
            if served.done() and not served.cancelled():
                self._give_back()  # it was ours already
            raise

    def _give_back(self) -> None:
        """Hand the place to the next group, or keep it free."""
        while self._waiting:
            group, queue = next(iter(self._waiting.items()))
            del self._waiting[group]
            served = queue.popleft()
            if queue:
                self._waiting[group] = queue
            if not served.done():
                served.set_result(None)
                return
        self._free += 1
