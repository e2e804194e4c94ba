"""The one way in which tests wait for what has no event of its own."""

import asyncio
import inspect
import select
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

# Generous: it is only spent when something is broken.
DEADLINE_SECONDS = 60.0
PAUSE_SECONDS = 0.02


async def until(
    look: Callable[[], Any], what: str = "the condition", seconds: float | None = None
) -> Any:
    """Return the first true thing that `look` finds; fail when the time is over."""
    seconds = DEADLINE_SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        await asyncio.sleep(PAUSE_SECONDS)


def hung_up_on(socks: Iterable[socket.socket]) -> int:
    """Return how many of the connections the other side has ended; nothing is read."""
    poll = select.poll()
    for sock in socks:
        poll.register(sock, select.POLLRDHUP)
    return len(poll.poll(0))
