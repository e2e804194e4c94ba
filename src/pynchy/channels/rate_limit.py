"""Send one message after another: services refuse, or ban, those who are too fast.

Groups take turns, so that what one of them sends keeps no other from being seen. Where a service
does not answer at all, those who wait their turn are not kept waiting for that.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pynchy.errors import NotShown
from pynchy.model import GroupName, Urgency

_HOPELESS = 3
# From then on a person should know why a card is not there yet.
_LONG_SECONDS = 60.0
_RANKS = {Urgency.HIGH: 0, Urgency.NORMAL: 1, Urgency.LOW: 2}


@dataclass(order=True, slots=True)
class _QueuedMessage:
    """A message that waits for its turn; the urgent go first, then those that came first."""

    rank: int
    number: int
    since: float = field(compare=False)
    served: asyncio.Future[None] = field(compare=False)


class RateLimiter:
    """One after another, never faster than the pace, and the groups round robin.

    `lost` is what a call to the service without a reply raises. Raise NotShown for those who
    have waited through several of them.
    """

    def __init__(self, service: str, pace_seconds: float, lost: type[Exception]) -> None:
        self._service = service
        self._pace_seconds = pace_seconds
        self._lost = lost
        self._losses = 0
        self._is_taken = False
        self._numbers = itertools.count()
        # Who is served next stands first; a group that was served goes to the end.
        self._waiting: dict[GroupName, list[_QueuedMessage]] = {}
        self._watching: list[asyncio.Future[None]] = []
        # Not 0: on a machine that was just switched on, that is a moment ago.
        self._ended = float("-inf")

    async def free(self) -> None:
        """Return when the turn that somebody has now is over."""
        if self._is_taken:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watching.append(over)
            await over

    @asynccontextmanager
    async def turn(
        self, group: GroupName, urgency: Urgency = Urgency.NORMAL
    ) -> AsyncIterator[None]:
        """Have the turn while the context lasts; within a group the urgent go first."""
        came = time.monotonic()
        await self._take(group, urgency)
        try:
            self._check_hope(came)
            await asyncio.sleep(max(0.0, self._ended + self._pace_seconds - time.monotonic()))
            self._begin()
            try:
                yield
            except BaseException as exc:
                self._end(exc)
                raise
            self._end(None)
        finally:
            self._pass_on()

    def backlog(self) -> str | None:
        """Say who waits, where it takes long until all of them have had their turn."""
        waiting = {group: _alive(queue) for group, queue in self._waiting.items()}
        everybody = [each for queue in waiting.values() for each in queue]
        if not everybody:
            return None
        longest = time.monotonic() - min(each.since for each in everybody)
        if max(longest, len(everybody) * self._pace_seconds) < _LONG_SECONDS:
            return None
        most = max(waiting, key=lambda group: len(waiting[group]))
        return (
            f"{len(everybody)} messages wait their turn, {len(waiting[most])} of them from group "
            f"{most}, one every {self._pace_seconds:g} s at most"
        )

    def _begin(self) -> None:
        """A message is about to be sent."""

    def _end(self, error: BaseException | None) -> None:
        """A message was sent, or was not, and that is why."""
        self._losses = self._losses + 1 if isinstance(error, self._lost) else 0
        self._ended = time.monotonic()

    async def _take(self, group: GroupName, urgency: Urgency) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _QueuedMessage(_RANKS[urgency], next(self._numbers), time.monotonic(), served)
        heapq.heappush(self._waiting.setdefault(group, []), waiting)
        try:
            await served
        except asyncio.CancelledError:
            if served.done() and not served.cancelled():
                self._pass_on()  # it was ours already
            raise

    def _pass_on(self) -> None:
        """Give the turn to the next group, or to nobody."""
        for over in self._watching:
            if not over.done():
                over.set_result(None)
        self._watching.clear()
        while self._waiting:
            group, queue = next(iter(self._waiting.items()))
            del self._waiting[group]
            first = heapq.heappop(queue)
            if first.served.done():  # who gave up cost the group no turn
                if queue:
                    self._waiting = {group: queue, **self._waiting}
                continue
            if queue:
                self._waiting[group] = queue
            first.served.set_result(None)
            return
        self._is_taken = False

    def _check_hope(self, came: float) -> None:
        if self._losses >= _HOPELESS and came < self._ended:
            raise NotShown(f"{self._service} does not answer")


def backlog_of(limiters: Iterable[tuple[str, RateLimiter]]) -> str | None:
    """Say in which chats many messages wait, and what can be done; None if in none of them."""
    told = [f"in {chat} {words}" for chat, each in limiters if (words := each.backlog())]
    if not told:
        return None
    return (
        f"{'; '.join(told)}. Groups take turns; answer elsewhere meanwhile (pynchy pending), "
        "or stop the agent that asks so much"
    )


def _alive(queue: list[_QueuedMessage]) -> list[_QueuedMessage]:
    return [each for each in queue if not each.served.done()]
