"""The desktop channel: popups in the session that the host runs in.

Whoever sits there is the person: there is no list of people, and one login answers.
"""

from __future__ import annotations

import asyncio
import logging
import webbrowser
from collections.abc import Callable
from contextlib import suppress

from pynchy.channels.base import Channel, ReplyHandler
from pynchy.channels.text import FAILED, noted, refusal
from pynchy.desktop.backend import Backend
from pynchy.desktop.popup import PopupQuestion, shows_whole
from pynchy.desktop.popup_ids import PopupIds
from pynchy.desktop.popups import NO_BUTTONS, PopupAnswers, PopupNotice, Popups
from pynchy.errors import AlreadyOver, ChannelUnavailable, ReplyRejected
from pynchy.events import Announcement
from pynchy.model import Answer, Card, Question, Reply, RequestId

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS = 3.0


class DesktopChannel(Channel, PopupAnswers):
    """Shows questions as popups. `page_of` returns the address of a question's page, if known."""

    name = "desktop"

    def __init__(
        self,
        backend: Backend,
        ids: PopupIds,
        user: str,
        page_of: Callable[[PopupQuestion], str | None],
        remind_seconds: float | None = None,
    ) -> None:
        self._backend = backend
        self._user = user
        self._page_of = page_of
        self._popups = Popups(backend, self, ids, remind_seconds)
        self._handler: ReplyHandler | None = None

    async def open(self, handler: ReplyHandler) -> None:
        """See Channel."""
        self._handler = handler
        if self.has_jobs:
            return
        await self._popups.restore(
            PopupQuestion(shown.request_id, shown.questions, shown.card, shown.jid)
            for shown in handler.open_cards(self.name)
        )
        self.start_jobs(self._backend.run, self._popups.run)
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LOOK_SECONDS):
                await self._backend.tried.wait()

    async def close(self) -> None:
        """See Channel."""
        await self.stop_jobs()

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel."""
        return await self._popups.show(PopupQuestion(request_id, questions, card, jid))

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel: the popup goes away."""
        del jid, message_id, questions
        if problem := self._backend.problem():
            raise ChannelUnavailable(problem)
        await self._popups.close((card.group, request_id))

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        """See Channel."""
        return shows_whole(questions, card.title)

    def problem(self) -> str | None:
        """See Channel."""
        return self._backend.problem() or (None if self._backend.abilities.actions else NO_BUTTONS)

    async def answer(self, asked: PopupQuestion, answer: Answer) -> PopupNotice | None:
        """See PopupAnswers."""
        if self._handler is None:
            return PopupNotice(FAILED)
        try:
            pending = await self._handler.answer(self._reply(asked, answer))
        except ReplyRejected as exc:
            return PopupNotice(refusal(exc), is_over=isinstance(exc, AlreadyOver))
        except Exception:
            log.exception("desktop.answer_failed")
            return PopupNotice(FAILED)
        return None if pending.ending else PopupNotice(noted(pending))

    async def dismiss(self, asked: PopupQuestion, implied: str) -> None:
        """See PopupAnswers."""
        if self._handler is not None:
            with suppress(ReplyRejected):  # it is over, and its popup goes away
                await self._handler.dismiss(self._reply(asked), implied)

    async def announce(self, jid: str, told: Announcement) -> None:
        """See Channel."""
        del jid
        await self._popups.announce(told)

    def _reply(self, asked: PopupQuestion, *answers: Answer) -> Reply:
        return Reply(
            asked.request_id,
            by=self._user,
            channel=self.name,
            answers=answers,
            user_id=self._user,
            chat=asked.chat,
            group=asked.card.group,
        )

    async def open_page(self, asked: PopupQuestion) -> None:
        """See PopupAnswers."""
        if page := self._page_of(asked):
            await asyncio.to_thread(webbrowser.open, page)
