"""Which question has which popup: shown once, replaced, closed, reminded of, and shown again.

A popup is its question's until the question is over, however often it was closed: a desktop may
keep it in its notification centre. What a person does to a popup is passed on once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from pynchy.aio import LockMap, finish
from pynchy.desktop.announcement_popups import AnnouncementPopups
from pynchy.desktop.backend import (
    Backend,
    Happening,
    PopupDismissed,
    Pressed,
    ServiceReady,
    TextWritten,
)
from pynchy.desktop.places import PopupPlaces
from pynchy.desktop.popup import (
    BODY,
    OPEN,
    Popup,
    PopupKey,
    PopupQuestion,
    choice_of,
    hint_of,
    implied_choice,
    notice_of,
    popup_of,
)
from pynchy.desktop.popup_ids import PopupIds
from pynchy.desktop.summary_popup import SummaryPopup
from pynchy.errors import CannotShow, ChannelUnavailable, NotShown
from pynchy.events import Announcement
from pynchy.fair_order import urgency_rank
from pynchy.model import Answer

log = logging.getLogger(__name__)

NO_BUTTONS = "the notification service shows no buttons, so nobody can answer there"
_CLOSES_ITSELF_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0


class OnlyHint(CannotShow):
    """The service has no buttons: there is a plain notification, and nobody can answer it."""

    maybe_shown = True


@dataclass(frozen=True, slots=True)
class PopupNotice:
    """What the person is told in the popup's place; `is_over`: nothing can be answered there."""

    text: str
    is_over: bool = False


class PopupAnswers(Protocol):
    """Where what people do to popups goes."""

    async def answer(self, asked: PopupQuestion, answer: Answer) -> PopupNotice | None:
        """Take an answer. Return what the person must know; None if the popup may go away."""

    async def dismiss(self, asked: PopupQuestion, implied: str) -> None:
        """Know that a person has closed the popup, which is no answer.

        `implied` is the option that closing stood for, empty where it stood for none.
        """

    async def open_page(self, asked: PopupQuestion) -> None:
        """Open the question's page."""


@dataclass(slots=True)
class _Shown:
    """What is known of a question's popup.

    `is_ours`: this connection has shown it, and hears of it. `is_busy`: an answer is on its way.
    `failed`: the service did not take it just now. `pressed_at` is when the person last did
    something to it, by the loop's clock.
    """

    asked: PopupQuestion
    popup_id: str = ""
    is_ours: bool = False
    is_busy: bool = False
    is_hint: bool = False
    failed: bool = False
    is_reminded: bool = False
    pressed_at: float = float("-inf")


class Popups:
    """Shows questions in one notification service, and passes on what people do."""

    def __init__(
        self,
        backend: Backend,
        answers: PopupAnswers,
        ids: PopupIds,
        remind_seconds: float | None = None,
    ) -> None:
        self._backend = backend
        self._answers = answers
        self._ids = ids
        self._remind_seconds = remind_seconds
        self._shown: dict[PopupKey, _Shown] = {}
        # Of questions that were over before a restart; it takes a service to close them.
        self._stale: dict[PopupKey, str] = {}
        self._locks: LockMap[PopupKey] = LockMap()
        self._tasks: asyncio.TaskGroup | None = None
        # Who may be on the screen until a person closes it, and whom the summary counts.
        self._places = PopupPlaces()
        self._summary = SummaryPopup(backend, ids, self._places)
        self._fill_lock = asyncio.Lock()
        self._fill_waits = False
        self._is_filling = False
        self._announced = AnnouncementPopups(backend)

    async def restore(self, asked: Iterable[PopupQuestion]) -> None:
        """Know the questions that were shown before a restart; all other popups go away."""
        kept = await asyncio.to_thread(self._ids.load)
        self._summary.restore(kept)
        for one in asked:
            if one.key not in self._shown:
                self._shown[one.key] = _Shown(one, kept.get(one.key, ""))
        self._stale = {key: kept[key] for key in kept.keys() - self._shown.keys()}

    async def run(self) -> None:
        """Follow what happens to the popups, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            while True:
                happening = await self._backend.happenings.get()
                tasks.create_task(self._follow(happening))

    async def show(self, asked: PopupQuestion) -> str:
        """Show the question, in place of its earlier popup; return the popup's id.

        Raise ChannelUnavailable; OnlyHint where nobody can answer on a popup.
        """
        async with self._locks.of(asked.key):
            if problem := self._backend.problem():
                raise NotShown(problem)
            known = self._shown.setdefault(asked.key, _Shown(asked))
            known.asked = asked
            if self._backend.abilities.actions or not known.is_hint:
                await self._place(known)
            if not self._backend.abilities.actions:
                raise OnlyHint(NO_BUTTONS)
        if not self._places.waits(asked.key):
            return known.popup_id
        return await self._summary.tell() or known.popup_id

    async def announce(self, told: Announcement) -> None:
        """Show what wants no answer, in place of the group's oldest. Raise ChannelUnavailable."""
        await self._announced.show(told)

    def know(self, asked: PopupQuestion) -> None:
        """Show the question as soon as there is a service."""
        self._shown.setdefault(asked.key, _Shown(asked))

    async def close(self, key: PopupKey) -> None:
        """Take the question's popup away: it is over. Raise ChannelUnavailable."""
        async with self._locks.of(key):
            known = self._shown.pop(key, None)
            self._places.leave(key)
            if known is not None and known.popup_id:
                # Until it is surely gone, its id is kept, and nobody takes it for an open one.
                self._stale[key] = known.popup_id
                await self._take_away(known.popup_id)
                del self._stale[key]
            await self._forget(key)
        with suppress(ChannelUnavailable):
            await self._fill()

    async def _fill(self) -> None:
        """Show what has waited for a place, and tell how many still wait.

        Who comes while another one waits to do so leaves it to that one.
        """
        if self._fill_waits:
            return
        self._fill_waits = True
        try:
            await self._fill_lock.acquire()
        finally:
            self._fill_waits = False
        try:
            while (key := self._places.next_to_show()) is not None:
                await self._show_waiting(key)
            await self._summary.tell()
        finally:
            self._fill_lock.release()

    async def _show_waiting(self, key: PopupKey) -> None:
        async with self._locks.of(key):
            known = self._shown.get(key)
            if known is None:
                self._places.leave(key)
            elif self._places.waits(key):
                await self._place(known)

    async def _take_away(self, popup_id: str) -> None:
        if self._backend.is_current(popup_id):
            await self._backend.close(popup_id)

    async def _forget(self, key: PopupKey) -> None:
        self._shown.pop(key, None)
        self._places.leave(key)
        await asyncio.to_thread(self._ids.forget, key)

    async def _put(self, known: _Shown, popup: Popup) -> None:
        known.popup_id = await self._backend.show(popup, known.popup_id)
        known.is_ours = True
        # To its end: a host that stops now would not know the popup when it starts again.
        await finish(asyncio.to_thread(self._ids.keep, known.asked.key, known.popup_id))

    async def _place(self, known: _Shown) -> None:
        """Show the question if there is a place for it: with buttons, or where to answer it."""
        abilities, key = self._backend.abilities, known.asked.key
        rank = urgency_rank(known.asked.card.urgency)
        if not self._places.take(key, rank):
            return
        popup = popup_of(known.asked, abilities) if abilities.actions else hint_of(known.asked)
        try:
            await self._put(known, popup)
        except ChannelUnavailable:
            # It takes nobody's place, and is tried again with what waits.
            self._places.wait(key, rank)
            known.failed = True
            self._fill_later()
            raise
        known.failed, known.is_hint = False, not abilities.actions
        self._remind_later(known)

    def _fill_later(self) -> None:
        """Try again soon what could not be shown, for as long as there is something."""
        if self._tasks is not None and not self._is_filling:
            self._is_filling = True
            self._tasks.create_task(self._fill_until_done())

    async def _fill_until_done(self) -> None:
        wait = _RETRY_SECONDS
        try:
            while any(known.failed for known in self._shown.values()):
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MAX_SECONDS)
                with suppress(ChannelUnavailable):
                    await self._fill()
        finally:
            self._is_filling = False

    async def _follow(self, happening: Happening) -> None:
        try:
            await self._handle(happening)
        except ChannelUnavailable as exc:
            log.info("desktop.unavailable", extra={"why": str(exc)})
        except Exception:
            log.exception("desktop.failed")

    async def _handle(self, happening: Happening) -> None:
        if isinstance(happening, ServiceReady):
            await self._show_all_again()
            await self._close_stale()
            return
        if happening.popup_id == self._summary.popup_id:
            await self._open_first_waiting(happening)
            return
        known = self._with_id(happening.popup_id)
        if known is None:
            return
        if isinstance(happening, PopupDismissed):
            await self._closed(known)
        else:
            known.pressed_at = asyncio.get_running_loop().time()
            await self._pressed(known, happening)

    async def _closed(self, known: _Shown) -> None:
        self._places.leave(known.asked.key)
        since = asyncio.get_running_loop().time() - known.pressed_at
        # Nobody could answer on a hint, many services close what was pressed, and who closes a
        # popup whose answer is on its way has answered.
        if not known.is_hint and not known.is_busy and since >= _CLOSES_ITSELF_SECONDS:
            implied = implied_choice(known.asked, self._backend.abilities)
            await self._answers.dismiss(known.asked, implied)
        await self._fill()

    async def _pressed(self, known: _Shown, happening: Pressed | TextWritten) -> None:
        match happening:
            case Pressed(key=key) if key in {BODY, OPEN}:
                await self._answers.open_page(known.asked)
            case Pressed(key=key):
                label = choice_of(known.asked, key)
                if label is not None:
                    await self._answer(known, Answer((label,)))
            case TextWritten(text=text):
                if text.strip():
                    await self._answer(known, Answer(text=text))

    async def _open_first_waiting(self, happening: Happening) -> None:
        first = self._places.first_waiting()
        if first in self._shown and isinstance(happening, Pressed):
            await self._answers.open_page(self._shown[first].asked)

    def _with_id(self, popup_id: str) -> _Shown | None:
        return next((s for s in self._shown.values() if s.popup_id == popup_id and s.is_ours), None)

    async def _answer(self, known: _Shown, answer: Answer) -> None:
        if known.is_busy:
            return
        known.is_busy = True
        try:
            told = await self._answers.answer(known.asked, answer)
        except Exception:
            # Nobody may take it that an answer was given which was not.
            log.exception("desktop.answer_failed")
            told = PopupNotice("Not sent: something is wrong here. Try again, or answer elsewhere.")
        # What was answered stays so: services tell of a press twice, and closing it takes a while.
        known.is_busy = told is None
        if told is None:
            await self.close(known.asked.key)
        else:
            await self._tell(known, told)
            await self._fill()

    async def _tell(self, known: _Shown, told: PopupNotice) -> None:
        key = known.asked.key
        async with self._locks.of(key):
            if told.is_over:
                await self._backend.show(notice_of(known.asked, told.text), known.popup_id)
                await self._forget(key)
            elif self._shown.get(key) is known:
                abilities = self._backend.abilities
                await self._put(known, popup_of(known.asked, abilities, told=told.text))

    async def _show_all_again(self) -> None:
        self._places.clear()
        self._summary.forget()
        for known in self._shown.values():
            known.is_ours = known.is_hint = False
        for key in list(self._shown):
            try:
                await self._show_again(key)
            except ChannelUnavailable as exc:
                log.info("desktop.unavailable", extra={"why": str(exc)})
        await self._summary.tell()

    async def _show_again(self, key: PopupKey) -> None:
        async with self._locks.of(key):
            known = self._shown.get(key)
            if known is not None and not known.is_ours:
                await self._place(known)

    async def _close_stale(self) -> None:
        for key, popup_id in list(self._stale.items()):
            await self._take_away(popup_id)
            del self._stale[key]
            await asyncio.to_thread(self._ids.forget, key)

    def _remind_later(self, known: _Shown) -> None:
        wanted = self._remind_seconds and not known.is_hint and not known.is_reminded
        if wanted and self._tasks is not None:
            known.is_reminded = True
            self._tasks.create_task(self._remind(known, self._remind_seconds or 0))

    async def _remind(self, known: _Shown, seconds: float) -> None:
        await asyncio.sleep(seconds)
        key, abilities = known.asked.key, self._backend.abilities
        async with self._locks.of(key):
            is_open = self._shown.get(key) is known and abilities.actions
            if is_open and self._backend.problem() is None:
                with suppress(ChannelUnavailable):
                    await self._put(known, popup_of(known.asked, abilities, again=True))
                    self._places.hold(key)
