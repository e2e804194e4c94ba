"""Find in Slack itself the cards that the index does not know: of an earlier host, or copies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from pynchy.channels.slack.card_index import (
    CardIndex,
    Identity,
    PostedCard,
    SessionChat,
    TaggedMessage,
    digest,
    read_tagged,
)
from pynchy.channels.slack.payloads import Click, ThreadReply
from pynchy.channels.slack.web import Web
from pynchy.errors import ChannelUnavailable
from pynchy.model import Card, Question, RequestId

# Slack's clock and ours may differ.
_SKEW_SECONDS = 600.0
_MAX_PAGES = 10

log = logging.getLogger(__name__)
_MAX_SECONDS = 6.0
# A question is over, and forgotten, long before.
_OLDEST_SECONDS = 60 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Posting:
    """What is to be shown, and where."""

    jid: str
    request_id: RequestId
    questions: tuple[Question, ...]
    card: Card

    @property
    def session(self) -> SessionChat:
        """Whose thread the card belongs into."""
        return SessionChat(self.jid, self.card.group, self.card.session_id)


class CardHistory:
    """Looks through conversations and threads, and lets the index have what belongs there.

    `chats` are the addresses of the groups. What Slack does not say is a ChannelUnavailable.
    """

    def __init__(
        self,
        web: Web,
        index: CardIndex,
        identity: Identity,
        identify: Callable[[], Awaitable[None]],
        chats: frozenset[str],
    ) -> None:
        self._web = web
        self._index = index
        self._identity = identity
        self._identify = identify
        self._chats = chats
        # One after another: a second reply in a thread finds it read.
        self._turn = asyncio.Lock()

    async def all_of(
        self, posting: Posting, channel: str, thread: str | None
    ) -> list[TaggedMessage]:
        """Return every message of the card, oldest first."""
        oldest = str(posting.card.timestamp.timestamp() - _SKEW_SECONDS)
        wanted = (posting.request_id, posting.card.group)
        found = [
            tagged
            async for tagged in self._marked(channel, thread, _MAX_PAGES, oldest=oldest)
            if (tagged.mark.request_id, tagged.mark.group) == wanted
        ]
        return sorted(found, key=lambda tagged: float(tagged.ts))

    async def root_of_session(self, posting: Posting, channel: str) -> str | None:
        """Return the thread of the session's cards, if a recent message of the chat is one."""
        wanted = (posting.jid, posting.card.group, digest(posting.card.session_id))
        async for tagged in self._marked(channel, None, 1):
            if (tagged.mark.chat, tagged.mark.group, tagged.mark.session) == wanted:
                return tagged.thread or tagged.ts
        return None

    async def thread_of(self, said: ThreadReply) -> bool:
        """Let the index have every card of the reply's thread, if it may have held one.

        Return False if Slack does not say which those are.
        """
        if not self._may_hold_cards(said):
            return True
        async with self._turn:
            if self._index.is_whole(said.channel, said.thread):
                return True
            try:
                async with asyncio.timeout(_MAX_SECONDS):
                    await self._read_thread(said.channel, said.thread)
            except (ChannelUnavailable, TimeoutError) as exc:
                log.warning("slack.thread_failed", extra={"why": str(exc)})
                return False
        return True

    async def card_of(self, click: Click) -> PostedCard | None:
        """Return the card that the clicked message shows; None if it is not one of ours.

        Raise ChannelUnavailable if Slack does not say.
        """
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                return await self._read_message(click)
        except TimeoutError as exc:
            raise ChannelUnavailable("Slack does not say what was clicked") from exc

    def _may_hold_cards(self, said: ThreadReply) -> bool:
        if self._index.is_whole(said.channel, said.thread):
            return False
        ours = bool(said.parent) and said.parent == self._identity.bot_user_id
        known = ours or f"{said.channel}/{said.thread}" in self._chats
        return known or bool(self._index.in_thread(said.channel, said.thread))

    async def _read_thread(self, channel: str, thread: str) -> None:
        oldest = f"{time.time() - _OLDEST_SECONDS:.6f}"
        async for tagged in self._marked(channel, thread, _MAX_PAGES, oldest=oldest):
            if tagged.is_card:
                self._note(channel, tagged)
        self._index.mark_whole(channel, thread)

    async def _read_message(self, click: Click) -> PostedCard | None:
        bounds = {"oldest": click.ts, "latest": click.ts, "inclusive": True}
        async for tagged in self._marked(click.channel, click.thread or click.ts, 1, **bounds):
            if tagged.is_card and tagged.ts == click.ts:
                return self._note(click.channel, tagged)
        return None

    async def _marked(
        self, channel: str, thread: str | None, most_pages: int, **bounds: object
    ) -> AsyncIterator[TaggedMessage]:
        if not self._identity.is_known:
            # Without it our own messages cannot be told from others.
            await self._identify()
        arguments: dict[str, Any] = {"channel": channel, "include_all_metadata": True, **bounds}
        method = self._web.client.conversations_history
        if thread is not None:
            method = self._web.client.conversations_replies  # type: ignore[assignment]
            arguments["ts"] = thread
        async for message in self._web.messages(method, most_pages, **arguments):
            tagged = read_tagged(message, self._identity)
            if tagged is not None:
                yield tagged

    def _note(self, channel: str, tagged: TaggedMessage) -> PostedCard:
        """Put into the index which card the message shows, unless it is there."""
        known = self._index.find(channel, tagged.ts)
        if known is not None:
            return known
        asking = self._index.asking(tagged.mark.request_id, tagged.mark.group)
        for posted in asking:
            if posted.location.channel == channel and posted.location.parts:
                self._index.add_copy(posted, tagged.ts)
                return posted
        found = PostedCard.found(channel, tagged)
        if asking:
            # It counts as failed, but here it is.
            found = replace(asking[0], location=found.location)
        self._index.put_over(found)
        return found
