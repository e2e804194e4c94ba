"""The host's stream as popups, and what people do to them as answers.

The stream begins with all that is open, so nothing is missed: whatever ends it (a restart of the
host, a laptop that slept, another network), it is opened again.
"""

from __future__ import annotations

import asyncio
import logging
import time
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from pynchy.cli.desktop.session import HostSession, SignedOut
from pynchy.cli.views import HostQuestion, read_question
from pynchy.desktop.backend import Backend
from pynchy.desktop.popup import PopupKey, PopupQuestion, shows_whole
from pynchy.desktop.popup_ids import PopupIds
from pynchy.desktop.popups import PopupAnswers, PopupNotice, Popups
from pynchy.errors import ChannelUnavailable, HostError, PynchyError
from pynchy.events import Announcement
from pynchy.model import Answer, Card, GroupName, Question, RequestId, ShortId, Urgency

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_RETRY_MAX_SECONDS = 15.0
_LOOK_SECONDS = 5.0
# Of what was open before, so much is asked for.
_MOST = 200
# As many as surely fit into one reply.
_AT_ONCE = 5
_OVER = 409
_ACCEPTED = 202
_OK = 300

Message = tuple[str, Any]


class PopupFollower(PopupAnswers):
    """Shows what one host has open. `has_moved`: it is known to be at another address now."""

    def __init__(
        self,
        session: HostSession,
        backend: Backend,
        ids: PopupIds,
        has_moved: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session = session
        self._has_moved = has_moved
        self._backend = backend
        self._popups = Popups(backend, self, ids)
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._open: set[PopupKey] = set()
        self._is_restored = False

    async def run(self) -> None:
        """Follow the host until cancelled. Raise SignedOut, in a group."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read())
                tasks.create_task(self._notice_sleep())
                tasks.create_task(self._show(tasks))
        finally:
            self._session.stop()

    async def answer(self, asked: PopupQuestion, answer: Answer) -> PopupNotice | None:
        """See PopupAnswers."""
        given = {"selected": list(answer.selected), "text": answer.text}
        body = {"group": asked.card.group, "answers": [given]}
        path = f"/api/questions/{quote(asked.request_id)}/answer"
        try:
            status, said = await asyncio.to_thread(self._session.call, "POST", path, body)
        except PynchyError as exc:
            return PopupNotice(f"Not sent, as far as is known: {exc}. Try again.")
        if status == _ACCEPTED:
            return PopupNotice("Noted. Others are to answer, too.")
        if status < _OK:
            return None
        error = said.get("error", "") if isinstance(said, dict) else ""
        is_over = status == _OVER and isinstance(said, dict) and "outcome" in said
        return PopupNotice(f"Not taken: {error or status}", is_over=is_over)

    async def dismiss(self, asked: PopupQuestion, implied: str) -> None:
        """See PopupAnswers."""
        path = f"/api/questions/{quote(asked.request_id)}/close-popup"
        body = {"group": asked.card.group, "implied_choice": implied or None}
        with suppress(PynchyError):  # nobody waits there any more
            await asyncio.to_thread(self._session.call, "POST", path, body)

    async def open_page(self, asked: PopupQuestion) -> None:
        """See PopupAnswers."""
        page = f"{self._session.url}/q/{asked.card.group}/{asked.request_id}"
        await asyncio.to_thread(webbrowser.open, page)

    async def _read(self) -> None:
        loop, pause = asyncio.get_running_loop(), _RETRY_SECONDS
        while True:
            try:
                await asyncio.to_thread(self._pump, loop)
                pause = _RETRY_SECONDS
            except HostError as exc:
                log.info("desktop.no_host", extra={"why": str(exc)})
                if await asyncio.to_thread(self._has_moved):
                    raise SignedOut(f"the host is no longer at {self._session.url}") from exc
            await asyncio.sleep(pause)
            pause = min(pause * 2, _RETRY_MAX_SECONDS)

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        for message in self._session.events():
            loop.call_soon_threadsafe(self._messages.put_nowait, message)

    async def _notice_sleep(self) -> None:
        """End a connection that was open while the machine slept: nobody may be there any more."""
        slept = _slept_seconds()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if _slept_seconds() - slept > _LOOK_SECONDS:
                slept = _slept_seconds()
                self._session.stop()

    async def _show(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            kind, body = await self._messages.get()
            try:
                await self._handle(kind, body)
            except HostError as exc:
                # The next connection begins with all that is open.
                log.info("desktop.no_host", extra={"why": str(exc)})
                self._session.stop()
            except ChannelUnavailable as exc:
                log.info("desktop.unavailable", extra={"why": str(exc)})
            if self._is_restored and kind == "sync" and not self._backend.tried.is_set():
                tasks.create_task(self._backend.run())
                tasks.create_task(self._popups.run())
                await self._backend.tried.wait()

    async def _handle(self, kind: str, body: Any) -> None:  # noqa: ANN401 - JSON is anything
        match kind:
            case "sync":
                await self._sync([str(one[0]) for one in body["open"]])
            case "card":
                for asked in await self._fetch([str(body["key"])]):
                    await self._pop_up(asked)
            case "out":
                raise SignedOut(f"the host at {self._session.url} has signed this session out")
            case "over":
                group, _, request_id = str(body["key"]).partition("/")
                await self._close((GroupName(group), RequestId(request_id)))
            case "announcement":
                await self._popups.announce(_told(body))

    async def _sync(self, keys: list[str]) -> None:
        found = await self._fetch(keys[:_MOST])
        if not self._is_restored:
            await self._popups.restore(found)
            self._open = {asked.key for asked in found}
            self._is_restored = True
            return
        still = {tuple(key.split("/", 1)) for key in keys}
        for key in [key for key in self._open if key not in still]:
            await self._close(key)
        for asked in found:
            await self._pop_up(asked)

    async def _pop_up(self, asked: PopupQuestion) -> None:
        if asked.key in self._open:
            return
        self._open.add(asked.key)
        try:
            await self._popups.show(asked)
        except ChannelUnavailable:
            self._popups.know(asked)
            raise

    async def _close(self, key: PopupKey) -> None:
        self._open.discard(key)
        with suppress(ChannelUnavailable):
            await self._popups.close(key)

    async def _fetch(self, keys: list[str]) -> list[PopupQuestion]:
        found: list[PopupQuestion] = []
        for first in range(0, len(keys), _AT_ONCE):
            wanted = urlencode([("key", key) for key in keys[first : first + _AT_ONCE]])
            call = partial(self._session.call, "GET", f"/inbox/questions?{wanted}")
            status, views = await asyncio.to_thread(call)
            if status >= _OK:
                raise HostError(f"the host at {self._session.url} is of another version")
            found += [_asked(read_question(view)) for view in views]
        return found


def _told(body: dict[str, str]) -> Announcement:
    return Announcement(
        GroupName(body["group"]),
        body["title"],
        body.get("detail", ""),
        body.get("agent", ""),
        body.get("task", ""),
        _urgency(body.get("urgency", "")),
    )


def _urgency(word: str) -> Urgency:
    return Urgency(word) if word in set(Urgency) else Urgency.NORMAL


def _asked(view: HostQuestion) -> PopupQuestion:
    card = Card(
        short_id=ShortId(view.short_id),
        group=GroupName(view.group),
        timestamp=view.asked_at,
        expires_at=view.expires_at,
        title=view.title,
        agent=view.agent,
        task=view.task,
        urgency=_urgency(view.urgency),
        hears_dismissal=view.hears_dismissal,
    )
    return PopupQuestion(
        RequestId(view.request_id), tuple(_offered(view.questions, view.title)), card
    )


def _offered(questions: Iterable[Question], title: str = "") -> Iterable[Question]:
    """Leave out what must be seen whole, where a popup cannot show it whole."""
    for question in questions:
        at_once = tuple(option for option in question.options if not option.confirm)
        if shows_whole((replace(question, options=at_once),), title):
            yield question
        else:
            kept = tuple(option for option in question.options if not option.needs_sight)
            yield replace(question, options=kept)


def _slept_seconds() -> float:
    """Return for how long the machine has slept since it was started."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
