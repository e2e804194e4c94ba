"""Find in Slack itself the cards that the book does not know: of an earlier host, or lost copies.

A thread is read once, before the first reply in it counts, so that a reply is never taken for one
to another question of the same thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from pynchy.channels.slack.book import Book, Shown
from pynchy.channels.slack.marks import Identity, Marked, read_marked
from pynchy.channels.slack.payloads import Click, Said
from pynchy.channels.slack.web import Web
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

_MOST_PAGES = 10
_MOST_SECONDS = 6.0
# A question is over, and forgotten, long before.
_OLDEST_SECONDS = 60 * 24 * 3600.0


class Recall:
    """Adds to the book what Slack knows. `chats` are the addresses of the groups."""

    def __init__(self, web: Web, book: Book, identity: Identity, chats: frozenset[str]) -> None:
        self._web = web
        self._book = book
        self._identity = identity
        self._chats = chats
        # One after another: a second reply in a thread finds it read.
        self._turn = asyncio.Lock()

    async def thread_of(self, said: Said) -> bool:
        """Let the book have every card of the reply's thread, if it may have held one.

        Return False if Slack does not say which those are.
        """
        if not self._may_hold_cards(said):
            return True
        async with self._turn:
            if self._book.is_whole(said.channel, said.thread):
                return True
            try:
                async with asyncio.timeout(_MOST_SECONDS):
                    await self._read_thread(said.channel, said.thread)
            except (ChannelUnavailable, TimeoutError) as exc:
                log.warning("a thread could not be read", extra={"why": str(exc)})
                return False
        return True

    async def card_of(self, click: Click) -> Shown | None:
        """Return the card that the clicked message shows; None if it is not one of ours.

        Raise ChannelUnavailable if Slack does not say.
        """
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                return await self._read_message(click)
        except TimeoutError as exc:
            raise ChannelUnavailable("Slack does not say what was clicked") from exc

    def _may_hold_cards(self, said: Said) -> bool:
        if self._book.is_whole(said.channel, said.thread):
            return False
        ours = bool(said.parent) and said.parent == self._identity.bot_user_id
        known = ours or f"{said.channel}/{said.thread}" in self._chats
        return known or bool(self._book.in_thread(said.channel, said.thread))

    async def _read_thread(self, channel: str, thread: str) -> None:
        oldest = f"{time.time() - _OLDEST_SECONDS:.6f}"
        async for marked in self._marked(channel, thread, _MOST_PAGES, oldest=oldest):
            self._note(channel, marked)
        self._book.mark_whole(channel, thread)

    async def _read_message(self, click: Click) -> Shown | None:
        bounds = {"oldest": click.ts, "latest": click.ts, "inclusive": True}
        async for marked in self._marked(click.channel, click.thread or click.ts, 1, **bounds):
            if marked.ts == click.ts:
                return self._note(click.channel, marked)
        return None

    async def _marked(
        self, channel: str, thread: str, most_pages: int, **bounds: object
    ) -> AsyncIterator[Marked]:
        method = self._web.client.conversations_replies
        where = {"channel": channel, "ts": thread, "include_all_metadata": True}
        async for message in self._web.messages(method, most_pages, **where, **bounds):
            marked = read_marked(message, self._identity)
            if marked is not None and marked.is_card:
                yield marked

    def _note(self, channel: str, marked: Marked) -> Shown:
        """Put into the book which card the message shows, unless it is there."""
        known = self._book.find(channel, marked.ts)
        if known is not None:
            return known
        asking = self._book.asking(marked.mark.request_id, marked.mark.group)
        for shown in asking:
            if shown.place.channel == channel and shown.place.parts:
                self._book.add_copy(shown, marked.ts)
                return shown
        found = Shown.found(channel, marked)
        if asking:
            # It counts as failed, but here it is.
            found = replace(asking[0], place=found.place)
        self._book.put_over(found)
        return found
