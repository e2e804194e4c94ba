"""The routes of sessions: which there are, starting and stopping one, what its runner prints."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pynchy import wire
from pynchy.config import Settings
from pynchy.config.values import AgentName
from pynchy.errors import UnknownSession
from pynchy.http.bodies import Body, Name, json_response
from pynchy.launchers.kinds import LAUNCHER_GONE, UNKNOWN, isolation_of
from pynchy.launchers.run_log import LogChunk
from pynchy.model import ShortId
from pynchy.pending.base import OpenQuestions
from pynchy.session import Session, SessionState
from pynchy.tracking.control import SessionControl, Wanted
from pynchy.tracking.tracker import SessionTracker

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What these routes work with."""

    tracker: SessionTracker
    control: SessionControl
    output: Callable[[Session, int], Awaitable[LogChunk]]
    settings: Settings
    questions: OpenQuestions

    def isolation(self, session: Session | None) -> str:
        """Say how isolated the session's agent is, as far as we started it."""
        if session is None or not session.launches:
            return UNKNOWN
        group = self.settings.group(session.group)
        return LAUNCHER_GONE if group.launcher is None else isolation_of(group).words

    def view(self, session: Session) -> dict[str, Any]:
        """Return the session as it is told."""
        more = {"isolation": self.isolation(session), "waits_for": self._waits_for(session)}
        return {**wire.session_view(session), **more}

    def _waits_for(self, session: Session) -> str | None:
        """Return what sort of thing the session waits for a person with, if it does."""
        if session.state not in {SessionState.WAITING, SessionState.PARKED}:
            return None
        asked = self.questions.with_short_id(ShortId(session.detail))
        return asked.kind if asked else None


class RunBody(Body):
    """Start a session of the group with a first prompt."""

    group: Name
    prompt: Annotated[str, Field(min_length=1, max_length=100_000, pattern=r"\S")]
    agent: AgentName | None = None


class StopBody(Body):
    """End the session's runner."""


def session_routes(session_context: SessionContext) -> list[Route]:
    """Return the routes, for the application."""
    routes = _SessionRoutes(session_context)
    return [
        Route("/api/sessions", routes.listed),
        Route("/api/sessions", routes.run, methods=["POST"]),
        Route("/api/sessions/{id:path}/log", routes.log),
        Route("/api/sessions/{id:path}/stop", routes.stop, methods=["POST"]),
        Route("/api/sessions/{id:path}", routes.session),
    ]


class _SessionRoutes:
    def __init__(self, session_context: SessionContext) -> None:
        self._context = session_context

    async def listed(self, _request: Request) -> Response:
        return json_response(
            [self._context.view(session) for session in self._context.tracker.sessions()]
        )

    async def session(self, request: Request) -> Response:
        return json_response(
            self._context.view(self._context.tracker.find(request.path_params["id"]))
        )

    async def run(self, request: Request) -> Response:
        body = RunBody.model_validate_json(await request.body())
        wanted = Wanted(body.group, body.prompt, body.agent or "")
        return json_response(self._context.view(await self._context.control.start(wanted)), 201)

    async def stop(self, request: Request) -> Response:
        body = StopBody.model_validate_json(await request.body() or b"{}")
        session, end = await self._context.control.stop(request.path_params["id"], body.by)
        return json_response({**self._context.view(session), "end": end.error or "ended by itself"})

    async def log(self, request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if not _NUMBER.fullmatch(after):
            raise HTTPException(400, "after is a number of bytes")
        target = request.path_params["id"]
        try:
            session = self._context.tracker.find(target)
        except UnknownSession:
            # The word may be the end of an id.
            return json_response(self._context.view(self._context.tracker.find(f"{target}/log")))
        piece = await self._context.output(session, int(after))
        return json_response({"text": piece.text, "next": piece.next, "state": session.state})
