"""May I, in Codex's terminal: its dialog and a person's phone at the same time.

    a thread waits ─► rejoin it ─► its request ─► card ─┬─ a person answers ─► the daemon is told
                                                        └─ resolved elsewhere ─► the card is cleared

Codex runs the sessions of its terminals in a daemon, which shows a request to every client of a
thread and takes the first answer. A thread is followed only while it waits for somebody. Requests
that are not for people are never answered, not even with an error: that would be an answer.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from agent_runner.codex_calls import CHANGE, COMMAND, INPUT, RESOLVED, RIGHTS
from agent_runner.cores.base import fields_of, items_of, text_of
from pynchy import wire
from pynchy.config import CodexSourceSettings
from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, PendingQuestion
from pynchy.pending.base import Key, OpenQuestions
from pynchy.sources.base import (
    CODEX_TERMINAL,
    MAX_OPEN,
    AnswerRoute,
    HeldRoute,
    SeenAgent,
    SourceHandler,
    SourceQuestion,
    end,
    let_go,
    open_of,
)
from pynchy.sources.codex_daemon import (
    CALL_SECONDS,
    CallRefused,
    CodexDaemon,
    CodexRequest,
    DaemonFailed,
    DaemonMissing,
    codex_home,
    joined,
)
from pynchy.sources.terminals import describe_folder

log = logging.getLogger(__name__)

DECIDED_THERE = "decided in the terminal"
NOT_ASKED = "Codex does not ask for it any more"
GONE = "Codex's background server has ended"

_MAX_THREADS = 1_000
_PAUSE_SECONDS = 2.0
_MAX_DOUBLINGS = 5
_LASTING_SECONDS = 60.0
_HEARTBEAT_SECONDS = 30.0
_PERMISSIONS = frozenset({COMMAND, CHANGE, RIGHTS})


class CodexSource:
    """See Source: what a Codex asks that somebody has opened in a terminal."""

    name = CODEX_TERMINAL

    def __init__(
        self,
        settings: CodexSourceSettings,
        route: HeldRoute,
        index: OpenQuestions,
        environ: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.held = route
        self.index = index
        self.home = codex_home(settings.home, environ)
        self.problem: str | None = None
        self.warnings: tuple[str, ...] = ()

    @property
    def route(self) -> AnswerRoute:
        """See Source."""
        return self.held

    def agents(self) -> tuple[SeenAgent, ...]:
        """See Source: those that ask nothing are not told of by Codex."""
        return ()

    async def run(self, handler: SourceHandler) -> None:
        """See Source."""
        failures = 0
        while True:
            client = _Client(self, handler)
            try:
                await self._attend(client, handler)
                failures = 0
            except Exception as exc:  # noqa: BLE001 - whatever a daemon does, the host goes on
                failures = 1 if client.has_lasted else failures + 1
                self._tell_failure(exc, is_first=client.has_joined and failures == 1)
            pause = _PAUSE_SECONDS * 2 ** min(failures, _MAX_DOUBLINGS)
            await asyncio.sleep(pause)

    async def _attend(self, client: _Client, handler: SourceHandler) -> None:
        """Ask people what a daemon asks; return where none runs."""
        try:
            await client.attend()
        except DaemonMissing:
            self.problem = None
            await let_go(CODEX_TERMINAL, self.held, self.index, handler, GONE)

    def _tell_failure(self, exc: Exception, *, is_first: bool) -> None:
        is_known = isinstance(exc, DaemonFailed)
        why = str(exc) if is_known else type(exc).__name__
        log.warning("codex.lost", extra={"why": why}, exc_info=not is_known)
        # One that was spoken to has likely ended; else somebody should look.
        self.problem = None if is_first else f"Codex: {why}"


class _Client:
    """What is known while one connection lasts."""

    def __init__(self, source: CodexSource, handler: SourceHandler) -> None:
        self._source = source
        self._route = source.held
        self._handler = handler
        self._group = GroupName(source.settings.group)
        self._statuses: dict[str, bool] = {}
        self._followed: dict[str, str] = {}
        self._requests: dict[int | str, CodexRequest] = {}
        self._changed: set[str] = set()
        self._poked = asyncio.Event()
        self._arrived: list[CodexRequest] = []
        self._joined_at: float | None = None

    @property
    def has_joined(self) -> bool:
        """True if the daemon was spoken to."""
        return self._joined_at is not None

    @property
    def has_lasted(self) -> bool:
        """True if that went well for a while."""
        return time.monotonic() - (self._joined_at or math.inf) > _LASTING_SECONDS

    async def attend(self) -> None:
        """Ask people what the daemon asks, until it ends. Raise DaemonMissing or DaemonFailed."""
        async with joined(self._source.home, self._listen) as daemon, asyncio.TaskGroup() as tasks:
            self._source.problem, self._joined_at = None, time.monotonic()
            log.info("codex.joined", extra={"version": daemon.version})
            await self._look_around(daemon)
            while True:
                for request in self._take_arrived():
                    tasks.create_task(self._ask(daemon, request), name="codex-request")
                if self._changed:
                    await self._look_at(daemon, self._changed.pop())
                    continue
                self._poked.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_HEARTBEAT_SECONDS):
                        await self._poked.wait()
                    continue
                await self._list(daemon, None)

    def _listen(self, message: wire.CodexMessage) -> None:
        """Note what the daemon says; what is to be done about it is done elsewhere."""
        try:
            self._note(message)
        except MalformedRequest as exc:
            log.warning("codex.unreadable", extra={"method": message.method, "why": exc.reason})
        self._poked.set()

    def _note(self, message: wire.CodexMessage) -> None:
        match message.method:
            case "thread/status/changed":
                change = wire.read_codex(wire.CodexStatusChange, message.params)
                self._note_status(change.threadId, is_waiting=change.status.is_waiting)
            case "thread/closed":
                self._note_status(text_of(message.params, "threadId"), is_waiting=False)
            case method if method == RESOLVED:
                rpc_id = message.params.get("requestId")
                request = self._requests.get(rpc_id) if isinstance(rpc_id, int | str) else None
                if request is not None:
                    request.resolved.set()
            case method if message.id is not None and method in self._wanted():
                asked = wire.read_codex(wire.CodexAsked, message.params)
                request = CodexRequest(message.id, method, message.params, asked)
                self._note_request(request)

    def _wanted(self) -> frozenset[str]:
        forward = self._source.settings.forward
        permissions = _PERMISSIONS if "permission" in forward else frozenset()
        return permissions | ({INPUT} if "question" in forward else frozenset())

    def _note_status(self, thread: str, *, is_waiting: bool) -> None:
        if is_waiting and len(self._statuses) >= _MAX_THREADS and thread not in self._statuses:
            log.warning("codex.too_many_threads")
            return
        if is_waiting or thread in self._statuses:
            self._statuses[thread] = is_waiting
            self._changed.add(thread)
        # Here and not later: a request that comes next is another one.
        for request in [] if is_waiting else list(self._requests.values()):
            if request.asked.threadId == thread:
                request.resolved.set()

    def _note_request(self, request: CodexRequest) -> None:
        known = self._requests.get(request.rpc_id)
        if known is not None and known.request_id == request.request_id:
            return  # rejoining shows it again
        if sum(not one.resolved.is_set() for one in self._requests.values()) >= MAX_OPEN:
            log.warning("codex.too_many_requests")
            return
        self._requests[request.rpc_id] = request
        self._arrived.append(request)

    def _take_arrived(self) -> Iterator[CodexRequest]:
        while self._arrived:
            yield self._arrived.pop(0)

    async def _look_around(self, daemon: CodexDaemon) -> None:
        """Find the threads that wait, and end what no thread waits for."""
        cursor: str | None = None
        threads: list[str] = []
        while len(threads) < _MAX_THREADS:
            told = await self._list(daemon, cursor)
            found = told.get("data")
            threads += [t for t in found if isinstance(t, str)] if isinstance(found, list) else []
            cursor = text_of(told, "nextCursor") or None
            if cursor is None or not found:
                break
        for thread in threads[:_MAX_THREADS]:
            await self._read(daemon, thread)
        for pending in open_of(self._source.index, CODEX_TERMINAL):
            if not self._statuses.get(pending.session_id) or pending.group != self._group:
                await end(self._route, self._handler, pending, NOT_ASKED)

    async def _list(self, daemon: CodexDaemon, cursor: str | None) -> dict[str, Any]:
        try:
            return await daemon.call("thread/loaded/list", {"cursor": cursor} if cursor else {})
        except CallRefused as exc:
            raise DaemonFailed(f"it does not list its threads: {exc}") from exc

    async def _read(self, daemon: CodexDaemon, thread: str) -> None:
        """Note whether the thread waits, unless that has been told meanwhile."""
        with suppress(CallRefused, MalformedRequest):  # closed meanwhile, or of another kind
            told = await daemon.call("thread/read", {"threadId": thread})
            found = wire.read_codex(wire.CodexThread, told.get("thread"))
            if found.id not in self._statuses:
                self._note_status(found.id, is_waiting=found.status.is_waiting)

    async def _look_at(self, daemon: CodexDaemon, thread: str) -> None:
        """Follow a thread that waits, and leave one that does not."""
        if self._statuses[thread]:
            if thread not in self._followed:
                await self._follow(daemon, thread)
            return
        del self._statuses[thread]
        await self._end_unshown(thread)
        if self._followed.pop(thread, None) is not None:
            with suppress(CallRefused):
                await daemon.call("thread/unsubscribe", {"threadId": thread})

    async def _follow(self, daemon: CodexDaemon, thread: str) -> None:
        try:
            told = await daemon.call("thread/resume", {"threadId": thread, "excludeTurns": True})
            self._followed[thread] = text_of(fields_of(told, "thread"), "cwd")
            # What it shows again comes right behind: when this is answered, it is all there.
            await daemon.call("thread/read", {"threadId": thread})
        except CallRefused as exc:
            log.info("codex.not_followed", extra={"why": str(exc)})
            return
        if any(r.asked.threadId == thread for r in self._requests.values()):
            await self._end_unshown(thread)

    async def _end_unshown(self, thread: str) -> None:
        shown = {self._key(request) for request in self._requests.values()}
        for pending in open_of(self._source.index, CODEX_TERMINAL):
            if pending.session_id == thread and pending.key not in shown:
                await end(self._route, self._handler, pending, NOT_ASKED)

    def _key(self, request: CodexRequest) -> Key:
        return (self._group, request.request_id)

    async def _ask(self, daemon: CodexDaemon, request: CodexRequest) -> None:
        """Ask people for as long as the request is open, and bring their answer back."""
        try:
            question = await self._question(daemon, request)
            if question is not None:
                await self._hold(daemon, request, question)
        except MalformedRequest as exc:
            log.warning("codex.refused", extra={"group": self._group, "why": exc.reason})
        await request.resolved.wait()
        self._requests.pop(request.rpc_id, None)

    async def _hold(
        self, daemon: CodexDaemon, request: CodexRequest, question: SourceQuestion
    ) -> None:
        key = self._key(request)
        with self._route.connection(key) as connection:
            await self._handler.asked(CODEX_TERMINAL, question)
            resolved = asyncio.ensure_future(request.resolved.wait())
            waits: set[asyncio.Future[Any]] = {connection.ended, resolved}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                resolved.cancel()
            ended = connection.ended.result() if connection.ended.done() else None
            if request.resolved.is_set():
                await self._handler.cleared(CODEX_TERMINAL, *key, DECIDED_THERE)
                self._route.lose(key)
            elif ended is not None and ended.ending and ended.ending.outcome.resumes:
                await self._answer(daemon, request, ended)
                connection.told = True

    async def _answer(
        self, daemon: CodexDaemon, request: CodexRequest, ended: PendingQuestion
    ) -> None:
        """Tell the daemon, and return when it has taken the answer."""
        if words := request.words(ended):
            await self._say(daemon, request, words)
        await daemon.respond(request.rpc_id, request.answer(ended))
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await request.resolved.wait()
        except TimeoutError as exc:
            raise DaemonFailed("it does not take an answer") from exc

    async def _say(self, daemon: CodexDaemon, request: CodexRequest, words: str) -> None:
        """Let the turn have the words, which the protocol has no place for beside a "no"."""
        asked = request.asked
        turn = {"threadId": asked.threadId, "expectedTurnId": asked.turnId}
        try:
            await daemon.call("turn/steer", {**turn, "input": [{"type": "text", "text": words}]})
        except CallRefused as exc:
            log.info("codex.reason_untold", extra={"why": str(exc)})

    async def _question(self, daemon: CodexDaemon, request: CodexRequest) -> SourceQuestion | None:
        """Return what to ask; None for what only the terminal can answer."""
        cwd = self._followed.get(request.asked.threadId, "")
        task = await asyncio.to_thread(describe_folder, cwd or request.asked.cwd or "")
        if request.method == INPUT:
            return request.questions(self._group, task)
        if not request.can_be_allowed_once:
            return None
        changes = await self._changes(daemon, request) if request.method == CHANGE else []
        if not request.is_described(changes):
            return None  # nobody can allow what cannot be shown
        return request.permission(self._group, task, cwd, changes)

    async def _changes(self, daemon: CodexDaemon, request: CodexRequest) -> list[Mapping[str, Any]]:
        """Return the changes that are asked for: only who rejoins is told of what is under way."""
        page = {"limit": 1, "sortDirection": "desc", "itemsView": "full"}
        thread = {"threadId": request.asked.threadId, "excludeTurns": True}
        with suppress(CallRefused):
            told = await daemon.call("thread/resume", {**thread, "initialTurnsPage": page})
            for turn in items_of(fields_of(told, "initialTurnsPage"), "data"):
                for item in items_of(turn, "items"):
                    if item.get("id") == request.asked.itemId:
                        return items_of(item, "changes")
        return []
