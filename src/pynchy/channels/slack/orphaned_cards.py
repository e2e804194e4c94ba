"""Remove cards that count as not shown but may be in Slack all the same.

A question whose card got no reply is asked elsewhere, or its agent is told; a card that turns up
later would ask for ever. It is removed as soon as Slack can be reached, unless it is posted again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pynchy.channels.slack.card_index import CardIndex, PostedCard
from pynchy.channels.slack.search import CardSearch, Posting
from pynchy.channels.slack.web import Refused, Web
from pynchy.errors import ChannelUnavailable
from pynchy.model import GroupName, RequestId

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0
_MAX_ENTRIES = 1_000

_Key = tuple[GroupName, RequestId, str]


class OrphanedCards:
    """What is to be removed, for as long as `run` runs."""

    def __init__(self, web: Web, index: CardIndex, search: CardSearch) -> None:
        self._web = web
        self._index = index
        self._search = search
        self._waiting: dict[_Key, tuple[Posting, PostedCard]] = {}
        self._more = asyncio.Event()
        # Nothing is removed that is just being posted again.
        self._turn = asyncio.Lock()

    def add(self, posting: Posting, posted: PostedCard) -> None:
        """Remove the card when that is possible; until then a click on it counts."""
        if len(self._waiting) >= _MAX_ENTRIES:
            log.warning("a card may be left in Slack for good", extra={"id": posting.request_id})
            return
        self._index.set_adrift(posted)
        self._waiting.setdefault(_key(posting), (posting, posted))
        self._more.set()

    @asynccontextmanager
    async def kept(self, posting: Posting) -> AsyncIterator[None]:
        """Let the card be found by who posts it again; it is removed after all if that fails."""
        held = None
        if posting.card.repeated:
            async with self._turn:
                held = self._waiting.pop(_key(posting), None)
        try:
            yield
        except BaseException:
            if held is not None:
                self.add(*held)
            raise
        if held is not None:
            self._index.pick_up(held[1])

    async def run(self) -> None:
        """Remove one after another, for ever."""
        wait = _RETRY_SECONDS
        while True:
            await self._more.wait()
            async with self._turn:
                removed = await self._remove_first()
            if removed:
                wait = _RETRY_SECONDS
            else:
                await asyncio.sleep(wait)
                wait = min(wait * 2, _RETRY_MAX_SECONDS)

    async def _remove_first(self) -> bool:
        """Return False if Slack cannot be reached; that card comes last then."""
        if not self._waiting:
            self._more.clear()
            return True
        key = next(iter(self._waiting))
        posting, posted = self._waiting.pop(key)
        try:
            await self._remove(posting, posted)
        except ChannelUnavailable as exc:
            log.info("a card may be left in Slack", extra={"why": str(exc)})
            self._waiting[key] = posting, posted
            return False
        except Exception:
            log.exception("a card that may be left in Slack could not be removed")
        self._index.pick_up(posted)
        return True

    async def _remove(self, posting: Posting, posted: PostedCard) -> None:
        channel = posted.location.channel
        there = {part.ts for part in posted.location.parts}
        try:
            found = await self._search.all_of(posting, channel, posted.location.thread)
        except Refused as exc:
            log.warning("a card may be left in Slack for good", extra={"why": str(exc)})
            found = []
        for ts in sorted(there | {tagged.ts for tagged in found}):
            try:
                await self._web.call(self._web.client.chat_delete, channel=channel, ts=ts)
            except Refused as exc:
                log.warning("a card is left in Slack", extra={"why": str(exc)})


def _key(posting: Posting) -> _Key:
    return (posting.card.group, posting.request_id, posting.jid)
