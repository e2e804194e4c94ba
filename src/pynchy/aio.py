"""Small tools for asyncio that several parts need: fair turns, a lock for each key, cancelling."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from pynchy.model import GroupName

log = logging.getLogger(__name__)

# Longer than an agent takes to say that it has its answer, if it says so at all.
MAX_HOLD_SECONDS = 60.0


K = TypeVar("K")


def is_being_cancelled() -> bool:
    """True if somebody cancels this task; False where what it awaits cancelled itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class LockMap(Generic[K]):
    """A lock for each key, which is forgotten when nobody holds or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[K, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: K) -> asyncio.Lock:
        """Return the key's lock, to be held at once: a lock that nobody holds is forgotten."""
        return self._locks.setdefault(key, asyncio.Lock())


class FairSemaphore:
    """At most so many at once; groups that wait are served round robin, each in its own order.

    A place is held for a bounded time: a group whose starts never come to an end holds up nobody.
    """

    def __init__(self, most: int, longest_seconds: float = MAX_HOLD_SECONDS) -> None:
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


class _GroupOver(Exception):
    """Ends a task group."""


@asynccontextmanager
async def cancelled_at_end() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose tasks are cancelled when the context ends."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _GroupOver  # noqa: TRY301 - the way to end a task group
    except* _GroupOver:
        log.debug("tasks.ended")
