"""What keeps Slack able to reach us: tried until it works, watched, and begun anew when it fails.

While it is down, `problem` says so in words.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from pynchy.channels.slack.web import TokenRefused
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0


class Link(ABC):
    """A way in for clicks and replies, for as long as `run` runs."""

    def __init__(self) -> None:
        self.problem: str | None = "not connected yet"
        # True while Slack refuses a token: nothing can work until someone changes it.
        self.refused = False

    @abstractmethod
    async def connect(self) -> None:
        """Open the way in. Raise ChannelUnavailable with what is wrong."""

    @abstractmethod
    async def watch(self) -> None:
        """Note what is wrong meanwhile. Raise ChannelUnavailable when it must be opened anew."""

    @abstractmethod
    async def close(self) -> None:
        """Close it if it is open."""

    async def run(self) -> None:
        """Open, watch, and open again, for ever."""
        wait = _RETRY_SECONDS
        while True:
            try:
                await self.connect()
                self.note(None)
                wait = _RETRY_SECONDS
                await self.watch()
            except ChannelUnavailable as exc:
                self.note(exc)
            except Exception as exc:
                self.problem = f"the connection failed ({type(exc).__name__})"
                log.exception("the connection to Slack failed")
            await self._close()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _RETRY_MAX_SECONDS)

    def note(self, trouble: ChannelUnavailable | None) -> None:
        """Say what is wrong, or that nothing is any more."""
        self.refused = isinstance(trouble, TokenRefused)
        self.problem = None if trouble is None else str(trouble)
        if trouble is not None:
            log.warning("Slack is not connected", extra={"why": self.problem})

    async def _close(self) -> None:
        try:
            await self.close()
        except Exception:
            log.exception("the connection to Slack could not be closed")
