"""The page in the browser, which `pynchy serve` shows.

It shows every open question, whatever channels its group has, so there is nothing to send: a
group that names `web` has a card there as soon as the question is recorded.
"""

from __future__ import annotations

from pynchy.channels.base import Channel
from pynchy.model import Card, Question, RequestId


class WebChannel(Channel):
    """Shows every question to whoever is signed in."""

    name = "web"
    checks_users = False

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
