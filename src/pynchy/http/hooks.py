"""May I, in Claude Code's terminal: its dialog and a person's phone at the same time.

    PermissionRequest ─► card, and the request waits ─┬─ a person answers ──► the decision
                                                      ├─ "Yes" in the dialog ► the call has ended
                                                      └─ "No", Esc, the end ─► the connection closes

The first one wins. What was decided in the terminal clears the card. Where nobody decides here,
nothing is said, and the dialog stays.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, replace
from typing import Any

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_runner.asking.text import describe_allowed
from agent_runner.claude_reasons import read_why
from pynchy import wire
from pynchy.aio import Rate
from pynchy.bridge.connected import ConnectedRoute
from pynchy.calls import ToolCall, WhyAsked
from pynchy.channels.base import BY_RULE
from pynchy.config import Settings
from pynchy.errors import MalformedRequest
from pynchy.http.bodies import json_response
from pynchy.http.hook_keys import (
    HOOK_GROUP,
    HOOK_PATH,
    STARTED_HEADER,
    WAITING_FILE,
    is_unattended,
)
from pynchy.model import (
    GroupName,
    Kind,
    PendingQuestion,
    RequestId,
    SessionId,
)
from pynchy.outcome_text import words_beside
from pynchy.pending.base import Key, OpenQuestions
from pynchy.permissions.card import is_granted
from pynchy.safe_folder import Folder
from pynchy.sources.base import CLAUDE_TERMINAL, HeldConnection, SourceHandler, SourceQuestion
from pynchy.sources.terminals import CallKey, RunningCalls, describe_folder

log = logging.getLogger(__name__)

PROGRAM = "claude"
ALLOWED_THERE = "allowed in the terminal"
CLOSED_THERE = "closed in the terminal"
RESTARTED = "the host was restarted, so only the terminal can answer it"

# Each holds a connection, of which everybody else needs some.
MAX_WAITING = 64
# Their dialogs are no yes or no: they stay in the terminal.
_OWN_DIALOGS = frozenset({"AskUserQuestion", "ExitPlanMode"})
_CALL_ENDED = frozenset({"PostToolUse", "PostToolUseFailure"})
_RETRY_SECONDS = 2.0


class TerminalPermissions:
    """The source of what Claude Code asks in terminals, for all groups."""

    def __init__(
        self, route: ConnectedRoute, handler: SourceHandler, data: Folder, settings: Settings
    ) -> None:
        self._route = route
        self._handler = handler
        self._data = data
        self._calls = RunningCalls()
        self._rates: Mapping[GroupName, Rate] = defaultdict(
            lambda: Rate(settings.requests_per_second, settings.request_burst)
        )
        self._marking = asyncio.Lock()
        self._is_marked = False
        # What is over in the terminal and could not be written down, with the reason.
        self._unsettled: dict[Key, str] = {}
        self._failed = asyncio.Event()

    async def begin(self, index: OpenQuestions) -> None:
        """Clear what an earlier host was asked: its connections are gone."""
        await asyncio.to_thread(self._data.remove, WAITING_FILE)
        for pending in [p for p in index if p.source == CLAUDE_TERMINAL and p.ending is None]:
            await self._settle(pending.key, RESTARTED)

    async def run(self) -> None:
        """Settle what could not be settled at once, until this is cancelled."""
        while True:
            await self._failed.wait()
            self._failed.clear()
            await asyncio.sleep(_RETRY_SECONDS)
            for key, reason in list(self._unsettled.items()):
                await self._settle(key, reason)

    async def take(self, group: GroupName, request: Request) -> dict[str, Any]:
        """Heed one event. Return what the program is told."""
        event = wire.read_hook_event(await request.body())
        if not self._rates[group].take_now():
            raise HTTPException(429, "too many events of this group at once; the dialog can answer")
        if event.hook_event_name == "PermissionRequest":
            return await self._ask(group, event, request)
        if event.hook_event_name in _CALL_ENDED:
            call = _key(group, event)
            words = self._calls.take_words(call)
            await self._clear(group, self._calls.end(call))
            return _told_beside(event, words)
        if event.hook_event_name == "Stop":
            await self._clear(group, self._calls.end_turn(group, event.session_id))
        return {}

    async def _ask(
        self, group: GroupName, event: wire.HookEvent, request: Request
    ) -> dict[str, Any]:
        """Ask a person for as long as the program waits. Return their decision, or nothing."""
        if not event.tool_name or event.tool_name in _OWN_DIALOGS:
            return {}
        if is_unattended(request.headers.get(STARTED_HEADER, "")):
            return {}
        if self._route.count(group) >= MAX_WAITING:
            raise MalformedRequest(
                f"{MAX_WAITING} dialogs of this group wait already: answer this one in the "
                "terminal, or others first with pynchy approve ID or pynchy deny ID (pynchy "
                "pending lists them)"
            )
        request_id, call = RequestId(f"t{secrets.token_hex(12)}"), _key(group, event)
        with self._route.connection((group, request_id)) as connection:
            self._calls.begin(call, request_id)
            allowed, words = None, ""
            try:
                task = await asyncio.to_thread(describe_folder, event.cwd)
                question = _question(group, request_id, event, task)
                await _both(self._handler.asked(CLAUDE_TERMINAL, question), self.mark())
                ended = await self._wait(connection, request)
                connection.told = not await request.is_disconnected()
                if connection.told and ended is not None and is_granted(ended):
                    allowed, words = _let_run(call, ended)
            finally:
                self._calls.decide(call, request_id, allowed, words)
            if ended is None and not connection.told:
                await self._clear(group, [request_id], CLOSED_THERE)
        return decision(ended)

    async def _wait(self, connection: HeldConnection, request: Request) -> PendingQuestion | None:
        """Return how the question ended; None if the program does not wait for it any more."""
        gone = asyncio.ensure_future(_disconnected(request))
        waits: set[asyncio.Future[Any]] = {connection.ended, gone}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        return connection.ended.result() if connection.ended.done() else None

    async def _clear(
        self, group: GroupName, over: Iterable[RequestId], reason: str = ALLOWED_THERE
    ) -> None:
        for request_id in over:
            await self._settle((group, request_id), reason)

    async def _settle(self, key: Key, reason: str) -> None:
        try:
            await self._handler.cleared(CLAUDE_TERMINAL, *key, reason)
        except OSError as exc:
            # The program tells it once, and need not wait: it is tried again until it works.
            log.warning("hook.not_settled", extra={"id": key[1], "why": exc.strerror})
            self._unsettled[key] = reason
            self._failed.set()
        else:
            self._unsettled.pop(key, None)

    async def mark(self) -> None:
        """Let the hook beside the terminal know whether anybody waits: else it need not tell."""
        async with self._marking:
            waits = bool(self._calls)
            if waits == self._is_marked:
                return
            try:
                if waits:
                    await asyncio.to_thread(self._data.create, WAITING_FILE, b"")
                else:
                    await asyncio.to_thread(self._data.remove, WAITING_FILE)
            except OSError as exc:  # a card that is settled late is no reason to ask nobody
                log.warning("hook.not_marked", extra={"why": exc.strerror})
            else:
                self._is_marked = waits


async def _both(one: Awaitable[object], other: Awaitable[object]) -> None:
    """Return when both are done; raise what the first of them raised."""
    for result in await asyncio.gather(one, other, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def hook_routes(terminal: TerminalPermissions) -> list[Route]:
    """Return the routes, for the application."""

    async def claude(request: Request) -> Response:
        group = request.scope.get(HOOK_GROUP)
        if group is None:
            raise HTTPException(401, "this needs the key that pynchy connect wrote")
        try:
            response = json_response(await terminal.take(group, request))
        except MalformedRequest as exc:
            await terminal.mark()
            log.warning("hook.refused", extra={"group": group, "why": exc.reason})
            raise HTTPException(422, exc.reason) from exc
        response.background = BackgroundTask(terminal.mark)  # the program need not wait for it
        return response

    return [Route(HOOK_PATH, claude, methods=["POST"])]


def decision(ended: PendingQuestion | None) -> dict[str, Any]:
    """Return what Claude Code is told; nothing where no person has decided."""
    ending = ended.ending if ended is not None else None
    if ended is None or ending is None or not ending.outcome.resumes:
        return {}
    if is_granted(ended):
        edited = wire.edited_input(ending)
        return _said({"behavior": "allow", **({} if edited is None else {"updatedInput": edited})})
    notes = words_beside(ending)
    words = f" They say: {notes}" if notes else ""
    message = f"{ending.by or 'A person'} did not allow this.{words}"
    if ending.channel == BY_RULE:
        message = f"A rule of the group denies this ({ending.by}); nobody was asked."
    return _said({"behavior": "deny", "message": message})


def _let_run(call: CallKey, ended: PendingQuestion) -> tuple[CallKey, str]:
    """Return the call that will be made, and what its model is to read beside the result."""
    ending, edited = wire.ending_of(ended), wire.edited_input(wire.ending_of(ended))
    given = ended.call.input if ended.call is not None else {}
    words = describe_allowed(ending.by, words_beside(ending), given, edited)
    if edited is not None:
        call = replace(call, input_digest=wire.input_digest(edited))
    return call, words


def _told_beside(event: wire.HookEvent, words: str) -> dict[str, Any]:
    """Return what the model reads beside the result of the call."""
    if not words:
        return {}
    told = {"hookEventName": event.hook_event_name, "additionalContext": words}
    return {"hookSpecificOutput": told}


def _said(said: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": said}}


def _key(group: GroupName, event: wire.HookEvent) -> CallKey:
    agent, tool = event.agent_id or "", event.tool_name
    return CallKey(group, event.session_id, agent, tool, wire.input_digest(event.tool_input))


def _question(
    group: GroupName, request_id: RequestId, event: wire.HookEvent, task: str
) -> SourceQuestion:
    why = read_why(event.model_dump())
    return SourceQuestion(
        group,
        request_id,
        (),
        kind=Kind.PERMISSION,
        agent=PROGRAM,
        task=task,
        session_id=SessionId(event.session_id),
        call=ToolCall(
            PROGRAM,
            event.tool_name,
            event.tool_input,
            event.cwd,
            editable=True,
            why=WhyAsked(*astuple(why)) if why else None,
        ),
    )


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
