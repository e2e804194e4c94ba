"""Remove cards that count as not shown but may be in Slack all the same.

A question whose card got no reply is asked elsewhere, or its agent is told; a card that turns up
later would ask for ever. It is removed as soon as Slack can be reached.
"""

from __future__ import annotations

import asyncio
import logging

from pynchy.channels.slack.book import Book, Shown
from pynchy.channels.slack.search import Posting, Search
from pynchy.channels.slack.web import Refused, Web
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 2.0
_AGAIN_MOST_SECONDS = 60.0
_MOST = 1_000


class Leftovers:
    """What is to be removed, for as long as `run` runs."""

    def __init__(self, web: Web, book: Book, search: Search) -> None:
        self._web = web
        self._book = book
        self._search = search
        self._waiting: asyncio.Queue[tuple[Posting, Shown]] = asyncio.Queue()

    def add(self, posting: Posting, shown: Shown) -> None:
        """Remove the card when that is possible; until then a click on it counts."""
        if self._waiting.qsize() >= _MOST:
            log.warning("a card may be left in Slack for good", extra={"id": posting.request_id})
            return
        self._book.set_adrift(shown)
        self._waiting.put_nowait((posting, shown))

    async def run(self) -> None:
        """Remove one after another, for ever."""
        wait = _AGAIN_SECONDS
        while True:
            posting, shown = await self._waiting.get()
            try:
                await self._remove(posting, shown)
                wait = _AGAIN_SECONDS
            except ChannelUnavailable as exc:
                log.info("a card may be left in Slack", extra={"why": str(exc)})
                await asyncio.sleep(wait)
                wait = min(wait * 2, _AGAIN_MOST_SECONDS)
                self._waiting.put_nowait((posting, shown))
            except Exception:
                log.exception("a card that may be left in Slack could not be removed")

    async def _remove(self, posting: Posting, shown: Shown) -> None:
        channel = shown.place.channel
        try:
            found = await self._search.all_of(posting, channel, shown.place.thread)
        except Refused as exc:
            log.warning("a card may be left in Slack for good", extra={"why": str(exc)})
            found = []
        for marked in found:
            try:
                await self._web.call(self._web.client.chat_delete, channel=channel, ts=marked.ts)
            except Refused as exc:
                log.warning("a card is left in Slack", extra={"why": str(exc)})
        self._book.pick_up(shown)
