"""Read the threads of open cards after each connection: a reply may have come while none was.

Reading twice is harmless, as the inbox knows what it has taken.
"""

from __future__ import annotations

import asyncio
import logging

from pynchy.channels.slack.card_index import CardIndex
from pynchy.channels.slack.inbound import InboundHandler
from pynchy.channels.slack.web import Refused, Web
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

_RETRY_SECONDS = 15.0


class CatchUp:
    """Reads when it is told that there may be something new."""

    def __init__(self, web: Web, index: CardIndex, inbox: InboundHandler) -> None:
        self._web = web
        self._index = index
        self._inbox = inbox
        self._wanted = asyncio.Event()

    def wanted(self) -> None:
        """Read again soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Read whenever it is wanted, for ever; what fails is tried again."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                for (channel, thread), since in self._threads().items():
                    await self._read(channel, thread, since)
            except ChannelUnavailable as exc:
                log.warning("threads could not be read", extra={"why": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
                self._wanted.set()

    def _threads(self) -> dict[tuple[str, str], str]:
        """Return the threads of open cards, each once, with where to begin."""
        found: dict[tuple[str, str], str] = {}
        for posted in sorted(self._index.opened(), key=lambda posted: posted.since):
            location = posted.location
            for thread in (
                [location.thread] if location.thread else [part.ts for part in location.parts]
            ):
                found.setdefault((location.channel, thread), location.parts[0].ts)
        return found

    async def _read(self, channel: str, thread: str, since: str) -> None:
        method = self._web.client.conversations_replies
        where = {"channel": channel, "ts": thread, "oldest": since}
        try:
            async for message in self._web.messages(method, None, **where):
                await self._inbox.said({**message, "channel": channel})
        except Refused as exc:
            # A person removed the message or the bot; the other cards are read all the same.
            log.warning("a thread cannot be read", extra={"why": str(exc)})
        except ChannelUnavailable:
            raise
        except Exception:
            log.exception("a thread could not be read")
