"""Listen to one server's event stream for as long as it can be had, and leave one that floods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pynchy.sources.opencode.server import Flooded, OpenCodeFailed, OpenCodeServer, ServerEvent

log = logging.getLogger(__name__)

CONNECTED = "server.connected"
MAX_DOUBLINGS = 5


class EventListener:
    """Hands on what a server tells. `problem` says that it is not listened to just now."""

    def __init__(
        self, server: OpenCodeServer, pause_seconds: float, hear: Callable[[ServerEvent], None]
    ) -> None:
        self.problem: str | None = None
        self._server = server
        self._pause_seconds = pause_seconds
        self._hear = hear
        self._failures = 0

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            rest_seconds = await self._listen()
            self._failures += 1
            pause = self._pause_seconds * 2 ** min(self._failures, MAX_DOUBLINGS)
            await asyncio.sleep(max(rest_seconds, pause))
            self.problem = None

    async def _listen(self) -> float:
        """Listen until the stream ends. Return for how long the server is left alone."""
        try:
            async for event in self._server.events():
                if event.type == CONNECTED:
                    self._failures = 0
                self._hear(event)
        except Flooded as exc:
            self.problem = f"OpenCode at {self._server.url}: {exc}"
            log.warning("opencode.flooded", extra={"url": self._server.url})
            return exc.rest_seconds
        except OpenCodeFailed as exc:
            log.debug("opencode.stream_ended", extra={"url": self._server.url, "why": str(exc)})
        except Exception:  # a stream of rubbish costs nothing but itself
            log.exception("opencode.stream_unreadable", extra={"url": self._server.url})
        return 0.0
