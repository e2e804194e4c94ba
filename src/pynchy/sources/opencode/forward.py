"""Ask people what the sessions of one server ask, and bring their answers back.

The server decides: an answer that it does not take any more was too late, and whoever gave it is
told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from pynchy.config import is_loopback
from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, OutcomeKind, PendingQuestion
from pynchy.pending.base import Key, OpenQuestions
from pynchy.sources.base import (
    MAX_OPEN,
    OPENCODE,
    HeldRoute,
    SourceHandler,
    SourceQuestion,
    end,
    open_of,
)
from pynchy.sources.opencode.reading import Notice, has_message
from pynchy.sources.opencode.requests import (
    ask_mark,
    message_suffix,
    reply_to,
    request_id,
    server_mark,
    source_question,
)
from pynchy.sources.opencode.server import NotServed, OpenCodeFailed
from pynchy.sources.opencode.state import OpenAsk
from pynchy.sources.opencode.watch import ServerWatch
from pynchy.sources.running import keep_trying
from pynchy.sources.terminals import describe_folder

log = logging.getLogger(__name__)

ANSWERED_THERE = "answered in OpenCode"
NOT_ASKED = "OpenCode does not ask it any more"
SERVER_ENDED = "its OpenCode server has ended"

# How often a question is asked that its server takes back and asks again.
_MAX_ATTEMPTS = 64
# Nobody has listened for so long: what it asked is cleared, and an answer kept for somewhat longer.
ENDED_SECONDS = 60.0
_HOPELESS_SECONDS = 3_600.0
_MESSAGES = "20"


def folder_name(url: str, folder: str) -> str:
    """Return what a session's folder is called. It may look at the disk, if it is on this one."""
    is_here = is_loopback(urlsplit(url).hostname or "")
    return describe_folder(folder) if is_here else PurePath(folder).name


@dataclass(slots=True)
class _Carried:
    """One question. `over`: the server does not ask it any more; `reason` says why.

    `is_asked`: people are asked in its place, or were, and the server has their answer.
    `is_answered`: a person's answer is on its way, and waits for the server if need be.
    """

    ask: OpenAsk
    key: Key
    over: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = NOT_ASKED
    is_asked: bool = False
    is_answered: bool = False
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class ForwardingContext:
    """What the questions of a source are asked with."""

    group: GroupName
    route: HeldRoute
    index: OpenQuestions
    handler: SourceHandler
    tasks: asyncio.TaskGroup

    async def end(self, pending: PendingQuestion, reason: str) -> None:
        """End a question that is not asked any more."""
        await end(self.route, self.handler, pending, reason)

    def end_later(self, pending: PendingQuestion, reason: str) -> None:
        """End the question, however often that is to be tried."""
        ending = keep_trying(partial(self.end, pending, reason), "opencode.not_ended")
        self.tasks.create_task(ending, name="opencode-over")


class Forwarding:
    """What people are asked in the place of one server's sessions."""

    def __init__(self, watch: ServerWatch, context: ForwardingContext) -> None:
        self._watch = watch
        self._context = context
        self._carried: dict[str, _Carried] = {}
        self._has_begun = False
        self._ended: set[Key] = set()
        watch.expected = frozenset(pending.session_id for pending in self._left_open())

    def key_of(self, ask: OpenAsk) -> Key | None:
        """Return the key of the question that stands for it, if people are asked."""
        carried = self._carried.get(ask.id)
        return carried.key if carried and carried.is_asked else None

    def update(self, asks: Iterable[OpenAsk]) -> None:
        """Ask what is new, and end what is not asked any more."""
        if not self._watch.is_sure:
            self._give_up()
            return
        now = {ask.id: ask for ask in asks}
        for ask_id, carried in list(self._carried.items()):
            if ask_id not in now and self._watch.state.knows(carried.ask.directory):
                is_told = ask_id in self._watch.replies
                self._end(carried, ANSWERED_THERE if is_told else NOT_ASKED)
        for ask in now.values():
            if ask.id not in self._carried and len(self._carried) < MAX_OPEN:
                self._begin(ask)
        if not self._has_begun:
            self._has_begun = self._end_left_open(NOT_ASKED)

    def _begin(self, ask: OpenAsk) -> None:
        key = (self._context.group, request_id(self._watch.url, ask))
        carried = self._carried[ask.id] = _Carried(ask, key)
        self._context.tasks.create_task(self._carry(carried), name="opencode-question")

    def _end(self, carried: _Carried, reason: str) -> None:
        carried.reason = reason
        carried.over.set()
        if carried.is_done:
            self._carried.pop(carried.ask.id, None)

    def _give_up(self) -> None:
        """End what a server asked that has ended. It may be back: an answer waits for longer."""
        away = self._watch.refused_for
        if away < ENDED_SECONDS:
            return
        is_hopeless = away > _HOPELESS_SECONDS
        for carried in list(self._carried.values()):
            if is_hopeless or not carried.is_answered:
                self._end(carried, SERVER_ENDED)
        if not self._has_begun:
            self._end_left_open(SERVER_ENDED, also_answered=is_hopeless)

    def _left_open(self) -> list[PendingQuestion]:
        """Return what an earlier host has asked for this server."""
        mark = server_mark(self._watch.url)
        ours = open_of(self._context.index, OPENCODE)
        return [pending for pending in ours if pending.request_id.startswith(mark)]

    def _end_left_open(self, reason: str, *, also_answered: bool = True) -> bool:
        """End what an earlier host has asked for this server, and it asks no more.

        False if it is not known of all whether they are asked.
        """
        url, state = self._watch.url, self._watch.state
        marks = tuple(ask_mark(url, carried.ask) for carried in self._carried.values())
        left = [one for one in self._left_open() if not one.request_id.startswith(marks)]
        unread = {one.id for one in state.sessions.values() if not state.knows(one.directory)}
        for pending in left:
            is_wanted = also_answered or pending.ending is None
            if is_wanted and pending.session_id not in unread and pending.key not in self._ended:
                self._ended.add(pending.key)
                self._context.end_later(pending, reason)
        return not any(pending.session_id in unread for pending in left)

    async def _carry(self, carried: _Carried) -> None:
        """Ask people for as long as the server asks, and bring their answer to it."""
        group, ask = self._context.group, carried.ask
        try:
            await keep_trying(partial(self._ask, carried), "opencode.question_failed")
        except MalformedRequest as exc:
            log.warning("opencode.refused", extra={"group": group, "why": exc.reason})
        finally:
            carried.is_done = True
            if carried.over.is_set():
                self._carried.pop(ask.id, None)

    async def _ask(self, carried: _Carried) -> None:
        """Ask under the first id that nothing was cleared under. To do it again is harmless."""
        group, ask = self._context.group, carried.ask
        task = await asyncio.to_thread(folder_name, self._watch.url, ask.directory)
        for attempt in range(_MAX_ATTEMPTS):
            if carried.over.is_set():
                await self._clear(carried)
                return
            carried.key = (group, request_id(self._watch.url, ask, attempt))
            question = source_question(carried.key[1], ask, group, task)
            if await self._hold(carried, question):
                return

    async def _clear(self, carried: _Carried) -> None:
        """End what is open of a question that the server does not ask any more."""
        mark = ask_mark(self._watch.url, carried.ask)
        for pending in self._left_open():
            if pending.request_id.startswith(mark):
                await self._context.end(pending, carried.reason)

    async def _hold(self, carried: _Carried, question: SourceQuestion) -> bool:
        """Ask until it is over; False if it had been cleared under that id, and is asked again."""
        context = self._context
        with context.route.connection(carried.key) as connection:
            known = await context.handler.asked(OPENCODE, question)
            if known is not None and known.ending is not None:
                if known.ending.outcome is OutcomeKind.CLEARED:
                    return False
                if known.delivered is not None:
                    return True  # it was answered or has expired: once is enough
            carried.is_asked = True
            over = asyncio.ensure_future(carried.over.wait())
            try:
                await asyncio.wait((connection.ended, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                over.cancel()
            if not connection.ended.done():
                await self._clear(carried)
                return True
            ended = connection.ended.result()
            if ended is not None and ended.resumes:
                carried.is_answered = True
                connection.told = await self._answer(carried, ended)
                if not connection.told:
                    context.route.lose(carried.key)
            carried.is_asked = connection.told
        return True

    async def _answer(self, carried: _Carried, ended: PendingQuestion) -> bool:
        """Tell the server until it has heard; True if it has taken the answer."""
        path, body = reply_to(carried.ask, ended)
        may_have_it = False
        while True:
            try:
                if not await self._has_it(carried.ask):
                    await self._watch.server.post(path, body, directory=carried.ask.directory)
            except NotServed:
                return may_have_it and self._took(carried.ask, body)
            except OpenCodeFailed as exc:
                log.info("opencode.answer_put_off", extra={"why": str(exc)})
                may_have_it = may_have_it or not exc.is_refused
            else:
                return True
            if not await self._until_read(carried):
                return may_have_it and self._took(carried.ask, body)

    async def _has_it(self, ask: OpenAsk) -> bool:
        """True if the session has been given the answer already: a prompt must not come twice."""
        if not isinstance(ask.asked, Notice):
            return False
        path = f"/session/{ask.session_id}/message"
        messages = await self._watch.server.get(path, limit=_MESSAGES)
        return has_message(messages, message_suffix(ask))

    async def _until_read(self, carried: _Carried) -> bool:
        """Return when the server answers again; False if the question is over."""
        waits = {
            asyncio.ensure_future(self._watch.read_again.wait()),
            asyncio.ensure_future(carried.over.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not carried.over.is_set()

    def _took(self, ask: OpenAsk, body: Mapping[str, Any]) -> bool:
        """True if the server has said that it was answered so: what we sent had arrived."""
        told = self._watch.replies.get(ask.id, {})
        return any(
            name in told and told[name] == body[name]
            for name in ("reply", "answers")
            if name in body
        )
