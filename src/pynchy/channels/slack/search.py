"""Find the messages of a card in Slack by the marks on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pynchy.channels.slack.card_metadata import Identity, TaggedMessage, digest, read_tagged
from pynchy.channels.slack.web import Web
from pynchy.model import Card, Question, RequestId

# Slack's clock and ours may differ.
_SKEW_SECONDS = 600.0
_MAX_PAGES = 10


@dataclass(frozen=True, slots=True)
class Posting:
    """What is to be shown, and where."""

    jid: str
    request_id: RequestId
    questions: tuple[Question, ...]
    card: Card


class CardSearch:
    """Looks through conversations and threads. Every failure is a ChannelUnavailable."""

    def __init__(
        self, web: Web, identity: Identity, identify: Callable[[], Awaitable[None]]
    ) -> None:
        self._web = web
        self._identity = identity
        self._identify = identify

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
        session = digest(posting.card.session_id)
        async for tagged in self._marked(channel, None, 1):
            if (tagged.mark.session, tagged.mark.chat) == (session, posting.jid):
                return tagged.thread or tagged.ts
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
