"""Follow one server: its event stream says when to look, and what is read says what is so.

    event ─► what may have changed is read at once
    every poll ─► everything is read again, since events get lost

A server that fails is asked less and less often. It never costs more than its own rows.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from pynchy.sources.opencode.reading import (
    SeenSession,
    count_open_todos,
    notices,
    read_busy,
    read_permissions,
    read_questions,
    read_sessions,
    running_tools,
)
from pynchy.sources.opencode.server import (
    MAX_DOUBLINGS,
    EventListener,
    NotServed,
    OpenCodeFailed,
    OpenCodeServer,
)
from pynchy.sources.opencode.stale import StaleParts
from pynchy.sources.opencode.state import (
    OpenAsk,
    ServerFolder,
    ServerState,
    SessionDetail,
    WatchOptions,
)

log = logging.getLogger(__name__)

# How many of an unknown folder's newest sessions are looked at for one that still works.
_MAX_UNKNOWN = 30
_MAX_MESSAGES = 40
# What runs stands in the last of them.
_MAX_MESSAGES_AT_WORK = 3
_MAX_SESSIONS = "200"
# So many sessions are read in one round; the others have their turn in the next.
_MAX_READS = 10
# The list of sessions is read again so often without an event.
_LIST_ROUNDS = 5
# A model that works changes something all the time: it is looked at no more often than that.
_SOON_SECONDS = 0.5
_MIN_PAUSE_SECONDS = 0.02
_TELL_SECONDS = 0.05
_FAILURES_BEFORE_EMPTY = 3
# So many times as long as a look has taken, nothing is read.
_REST_TIMES = 4.0


class ServerWatch:
    """What is known of one server, kept true for as long as `run` runs."""

    def __init__(
        self,
        server: OpenCodeServer,
        options: WatchOptions,
        changed: Callable[[ServerWatch], None],
    ) -> None:
        self.server = server
        self.url = server.url
        self.state = ServerState()
        self.problem: str | None = None
        self._stale = StaleParts(server.url, self.state, self._tell_soon)
        self.events = EventListener(server, options.poll, self._stale.hear)
        self.replies = self._stale.replies
        self.has_read = False
        self.read_again = asyncio.Event()
        self.expected: frozenset[str] = frozenset()
        self._options = options
        self._changed = changed
        self._all_due: float | None = None
        self._checked: set[str] = set()
        self._idle_at: dict[str, float] = {}
        self._telling: asyncio.Handle | None = None
        self._told_at = 0.0
        self._look_seconds = 0.0
        self._failures = 0
        self._refused_since: float | None = None

    @property
    def is_sure(self) -> bool:
        """True if what is known was just read: what is not there is not asked any more."""
        return self.has_read and not self._failures

    @property
    def refused_for(self) -> float:
        """For how many seconds nobody has listened there."""
        return 0.0 if self._refused_since is None else time.monotonic() - self._refused_since

    def asks(self) -> list[OpenAsk]:
        """Return what sessions wait for."""
        return self.state.asks(time.time(), self._options.ask_timeout)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.events.run(), name="opencode-events")
                await self._look_for_ever()
        finally:
            if self._telling is not None:
                self._telling.cancel()

    async def _look_for_ever(self) -> None:
        rounds = 0
        while True:
            began = time.monotonic()
            try:
                await self._look(is_whole=rounds % _LIST_ROUNDS == 0)
                self._succeeded()
                rounds += 1
            except OpenCodeFailed as exc:
                self._failed(exc)
                rounds = 0
            except Exception as exc:  # whatever a server says, the others go on
                log.exception("opencode.unreadable", extra={"url": self.url})
                self._failed(OpenCodeFailed(type(exc).__name__))
                rounds = 0
            self._look_seconds = time.monotonic() - began
            self._tell()
            await self._pause()

    def _tell(self) -> None:
        if self._telling is not None:
            self._telling.cancel()  # what it would have told is told now
        self._telling, self._told_at = None, asyncio.get_running_loop().time()
        try:
            self._changed(self)
        except Exception:
            log.exception("opencode.not_told", extra={"url": self.url})

    def _tell_soon(self) -> None:
        """Tell once of all that comes in one go, and of all that comes right after it."""
        if self._telling is None and self.is_sure:
            due = self._told_at + _TELL_SECONDS
            self._telling = asyncio.get_running_loop().call_at(due, self._tell)

    async def _pause(self) -> None:
        if self._failures:
            await asyncio.sleep(self._options.poll * 2 ** min(self._failures, MAX_DOUBLINGS))
            return
        # However much changes there: most of the time nothing is read.
        rest = min(_REST_TIMES * self._look_seconds, self._options.poll)
        await asyncio.sleep(max(rest, _MIN_PAUSE_SECONDS))
        if self._all_due is None:
            self._all_due = time.monotonic() + self._options.poll
        while (left := self._all_due - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _SOON_SECONDS)):
                    await self._stale.wake.wait()
                return
            if self._stale.sessions or self._stale.is_list:
                return
        # However much was told meanwhile: the one event that counts may have got lost.
        self._stale.add_due_folders()
        self._all_due = None

    def _succeeded(self) -> None:
        if self._failures or not self.has_read:
            log.info("opencode.joined", extra={"url": self.url, "exact": self.state.is_exact})
        self._failures, self._refused_since, self.problem = 0, None, None
        self.has_read = True
        self.read_again.set()
        self.read_again.clear()

    def _failed(self, exc: OpenCodeFailed) -> None:
        self._failures += 1
        if exc.is_refused:
            self._refused_since = self._refused_since or time.monotonic()
        else:
            self._refused_since = None
        if self._failures == 1:
            log.warning("opencode.lost", extra={"url": self.url, "why": str(exc)})
        if exc.is_refused or self._failures >= _FAILURES_BEFORE_EMPTY:
            self.problem = f"OpenCode at {self.url}: {exc}"
            self.state.forget()
            self._stale.add_all()
            self._checked.clear()
            self._idle_at.clear()

    async def _look(self, *, is_whole: bool) -> None:
        self._stale.wake.clear()
        if not self.has_read or self._failures:
            await self._meet()
        if is_whole or self._stale.is_list:
            self._stale.is_list = False
            await self._list()
        if await self._read_folders() and self.is_sure:
            self._tell()  # what is asked does not wait for what is merely told
        await self._read_sessions()
        self.state.forget_done()
        asked = {one.id for place in self.state.places.values() for one in place.asked}
        self._checked &= asked

    async def _meet(self) -> None:
        """Learn where the server works, and whether it can tell what it waits for."""
        told: object = None
        with suppress(NotServed):
            told = await self.server.get("/path")
        directory = told.get("directory") if isinstance(told, dict) else ""
        self._stale.add_own(directory if isinstance(directory, str) else "")
        self.state.is_exact = await self.server.tells_exactly()

    async def _list(self) -> None:
        self.state.sessions = read_sessions(await self.server.get("/session", limit=_MAX_SESSIONS))
        known = self.state.sessions
        self._idle_at = {name: at for name, at in self._idle_at.items() if name in known}
        elsewhere = [one for one in known.values() if one.directory not in self.state.places]
        for session in elsewhere:
            if session.id in self.expected:
                self._stale.keep_folder(session.directory)
        # To ask about a folder makes the server open it: only where a session may be at work.
        changed = [
            session
            for session in elsewhere
            if self._idle_at.get(session.id) != session.updated
            and time.time() - session.updated <= self._options.ask_timeout
        ]
        for session in changed[:_MAX_UNKNOWN]:
            messages = await self.server.messages(session.id, 1)
            self._idle_at[session.id] = session.updated
            if running_tools(messages):
                self._stale.add_folder(session.directory)

    async def _read_folders(self) -> bool:
        """Read those that may have changed; True if there were any."""
        folders, self._stale.folders = self._stale.folders, set()
        unread = set(folders)
        try:
            for directory in folders:
                await self._read_folder(directory)
                unread.discard(directory)
        finally:
            self._stale.folders |= unread
        return bool(folders)

    async def _read_folder(self, directory: str) -> None:
        """Read a folder. One that fails by itself costs nothing but what would be read there."""
        place = self.state.places.get(directory)
        if place is None:
            return
        try:
            await self._look_at(directory, place)
        except OpenCodeFailed as exc:
            own = self._stale.own or ""
            if exc.is_refused or directory == own:
                raise
            await self._look_at(own, self.state.places[own])
            extra = {"url": self.url, "folder": directory, "why": str(exc)}
            log.info("opencode.folder_failed", extra=extra)
            place.failed()

    async def _look_at(self, directory: str, place: ServerFolder) -> None:
        version = place.version
        permissions = await self.server.list_of("/permission", self._query(directory))
        questions = await self.server.list_of("/question", self._query(directory))
        # Last: what has asked was at work before, and a session that was stopped is no more.
        status = await self.server.get("/session/status", directory=self._query(directory))
        if place.version != version:  # what was read is older than what was told meanwhile
            self._stale.folders.add(directory)
            self._stale.wake.set()
            return
        place.permissions = read_permissions(permissions)
        place.questions = read_questions(questions)
        # Also those that have just come to rest.
        busy = read_busy(status)
        self._stale.sessions |= (place.busy | busy) & self.state.sessions.keys()
        place.busy = busy
        place.read()
        self.state.leave_behind(place)
        # Leave out what a stopped session left behind, although it works again by now.
        for asked in [one for one in place.asked if one.id not in self._checked]:
            if await self.server.has_ended(asked.session_id, asked.part):
                self.state.over.add(asked.id)
            self._checked.add(asked.id)
        self._stale.ask_for_sessions(place)

    async def _read_sessions(self) -> None:
        lately = [
            session.id
            for session in self.state.sessions.values()
            if time.time() - session.updated <= self._options.ask_timeout
            and self.state.details_of(session.id).updated != session.updated
        ]
        wanted = dict.fromkeys([*self._stale.sessions & self.state.sessions.keys(), *lately])
        self._stale.sessions = set(wanted)
        for session_id in list(wanted)[:_MAX_READS]:
            # Before it is read: what is told meanwhile has it read again.
            self._stale.sessions.discard(session_id)
            await self._read(self.state.sessions[session_id])

    async def _read(self, session: SeenSession) -> None:
        try:
            is_busy = session.id in self.state.busy
            most = _MAX_MESSAGES_AT_WORK if is_busy else _MAX_MESSAGES
            messages = await self.server.messages(session.id, most)
            todos = await self.server.list_of(f"/session/{session.id}/todo")
        except NotServed:  # deleted meanwhile
            self.state.details.pop(session.id, None)
            return
        self.state.details[session.id] = SessionDetail(
            running_tools(messages), notices(messages), count_open_todos(todos), session.updated
        )

    def _query(self, directory: str) -> str:
        return "" if directory == self._stale.own else directory
