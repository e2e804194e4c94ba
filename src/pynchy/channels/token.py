"""The channels that need no service: `pynchy answer`, the HTTP interface, the page in the browser.

Whoever holds the data folder's token, or is signed in, sees every question.
"""

from __future__ import annotations

from pynchy.channels.base import Channel
from pynchy.model import Card, Question, RequestId


class LocalChannel(Channel):
    """Shows every question to whoever holds the data folder's token."""

    name = "local"

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """Return an id at once: listings read the pending questions themselves."""
        del jid, request_id, questions
        return f"local-{card.short_id}"


class WebChannel(Channel):
    """Shows every question to whoever is signed in."""

    name = "web"

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """Return an id at once: the page reads the pending questions themselves."""
        del jid, request_id, questions
        return f"web-{card.short_id}"
