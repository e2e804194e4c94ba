"""Find the messages of a card in Slack by the marks on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pynchy.channels.slack.marks import Identity, Marked, digest, read_marked
from pynchy.channels.slack.web import Web
from pynchy.model import Card, Question, RequestId

# Slack's clock and ours may differ.
_SKEW_SECONDS = 600.0
_MOST_PAGES = 10


@dataclass(frozen=True, slots=True)
class Posting:
    """What is to be shown, and where."""

    jid: str
    request_id: RequestId
    questions: tuple[Question, ...]
    card: Card


class Search:
    """Looks through conversations and threads. Every failure is a ChannelUnavailable."""

    def __init__(
        self, web: Web, identity: Identity, identify: Callable[[], Awaitable[None]]
    ) -> None:
        self._web = web
        self._identity = identity
        self._identify = identify

    async def all_of(self, posting: Posting, channel: str, thread: str | None) -> list[Marked]:
        """Return every message of the card, oldest first."""
        oldest = str(posting.card.timestamp.timestamp() - _SKEW_SECONDS)
        wanted = (posting.request_id, posting.card.group)
        found = [
            marked
            async for marked in self._marked(channel, thread, _MOST_PAGES, oldest=oldest)
            if (marked.mark.request_id, marked.mark.group) == wanted
        ]
        return sorted(found, key=lambda marked: float(marked.ts))

    async def root_of_session(self, posting: Posting, channel: str) -> str | None:
        """Return the thread of the session's cards, if a recent message of the chat is one."""
        session = digest(posting.card.session_id)
        async for marked in self._marked(channel, None, 1):
            if (marked.mark.session, marked.mark.chat) == (session, posting.jid):
                return marked.thread or marked.ts
        return None

    async def _marked(
        self, channel: str, thread: str | None, most_pages: int, **bounds: object
    ) -> AsyncIterator[Marked]:
        if not self._identity.is_known:
            # Without it our own messages cannot be told from others.
            await self._identify()
        arguments: dict[str, Any] = {"channel": channel, "include_all_metadata": True, **bounds}
        method = self._web.client.conversations_history
        if thread is not None:
            method = self._web.client.conversations_replies  # type: ignore[assignment]
            arguments["ts"] = thread
        async for message in self._web.messages(method, most_pages, **arguments):
            marked = read_marked(message, self._identity)
            if marked is not None:
                yield marked
