"""The routes of the HTTP interface.

Every refusal is JSON with an `error` that says what to do; a second answer gets 409 with who
answered and what.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pynchy import wire
from pynchy.audit import AuditLog
from pynchy.bridge.answer import Answering
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.desk import Desk
from pynchy.bridge.expire import Expiry, Finding
from pynchy.errors import (
    AlreadyOver,
    AmbiguousQuestion,
    IllegalTransition,
    InvalidReply,
    NotAllowed,
    NotUndelivered,
    ReplyRejected,
    UnknownQuestion,
)
from pynchy.http.guard import BodyTooLarge
from pynchy.model import Answer, GroupName, OutcomeKind, Reply
from pynchy.pending.base import History, HistoryQuery

log = logging.getLogger(__name__)

CHANNEL = "local"
_PING_SECONDS = 15
_STALLED_READER_SECONDS = 30.0
_MOST_HISTORY = 1_000
_EVENT_NUMBER = re.compile(r"[0-9]{1,18}")

Name = Annotated[str, Field(min_length=1, max_length=200)]
Value = Annotated[str, Field(max_length=20_000)]


@dataclass(frozen=True, slots=True)
class Office:
    """What the routes work with."""

    desk: Desk
    answering: Answering
    delivery: Delivery
    expiry: Expiry
    history: History
    audit: AuditLog
    problems: Callable[[], list[str]]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    by: Name = "somebody with the token"


class _AnswerIn(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    selected: list[Value] = []
    text: Value | None = None


class AnswerBody(_Body):
    """Either values to be matched, or what was ticked and written."""

    values: Annotated[list[Value], Field(max_length=200)] = []
    answers: Annotated[list[_AnswerIn], Field(max_length=4)] = []
    question: int | None = None


class DeclineBody(_Body):
    """A person will not answer, and may say why."""

    reason: Value | None = None


class RetryBody(_Body):
    """Start a failed delivery again, or stop trying."""


class SweepBody(_Body):
    """End what is stale, or only say what would be ended."""

    dry_run: bool = True


def make_api(office: Office) -> Starlette:
    """Return the application, without its guard."""
    routes = _Routes(office)
    return Starlette(
        routes=[
            Route("/healthz", routes.health),
            Route("/api/pending", routes.pending),
            Route("/api/history", routes.history),
            Route("/api/events", routes.events),
            Route("/api/sweep", routes.sweep, methods=["POST"]),
            Route("/api/questions/{id}", routes.question),
            Route("/api/questions/{id}/answer", routes.answer, methods=["POST"]),
            Route("/api/questions/{id}/decline", routes.decline, methods=["POST"]),
            Route("/api/questions/{id}/retry", routes.retry, methods=["POST"]),
            Route("/api/questions/{id}/dismiss", routes.dismiss, methods=["POST"]),
        ],
        exception_handlers={
            ReplyRejected: _refused,
            IllegalTransition: _overtaken,
            ValidationError: _invalid,
            HTTPException: _http_error,
            BodyTooLarge: _too_large,
            TimeoutError: _too_slow,
            ClientDisconnect: _gone,
            OSError: _broken_disk,
        },
    )


class _Routes:
    def __init__(self, office: Office) -> None:
        self._office = office

    async def health(self, _request: Request) -> Response:
        problems = self._office.problems()
        status = "degraded" if problems else "ok"
        waiting = sum(p.state.waits_for_person for p in self._office.desk.index)
        return JSONResponse({"status": status, "problems": problems, "open": waiting})

    async def pending(self, _request: Request) -> Response:
        listed = [p for p in self._office.desk.index if p.delivered is None]
        listed.sort(key=lambda pending: pending.timestamp)
        return _json([wire.pending_view(p) for p in listed])

    async def history(self, request: Request) -> Response:
        params = request.query_params
        group, outcome = params.get("group"), params.get("outcome")
        try:
            query = HistoryQuery(
                limit=min(max(int(params.get("limit", "50")), 1), _MOST_HISTORY),
                group=GroupName(group) if group and wire.usable_group(group) else None,
                outcome=OutcomeKind(outcome) if outcome else None,
            )
        except ValueError as exc:
            raise HTTPException(400, str(exc)) from exc
        if group and query.group is None:
            return _json([])
        return _json([wire.pending_view(p) for p in await self._office.history.recent(query)])

    async def question(self, request: Request) -> Response:
        found = await self._office.answering.find(request.path_params["id"])
        return _json(wire.pending_view(found))

    async def answer(self, request: Request) -> Response:
        body = AnswerBody.model_validate_json(await request.body())
        reply = Reply(
            target=request.path_params["id"],
            by=body.by,
            channel=CHANNEL,
            values=tuple(body.values),
            answers=tuple(Answer(tuple(a.selected), a.text) for a in body.answers),
            question=body.question,
        )
        pending = await self._office.answering.answer(reply)
        return _json(wire.pending_view(pending), 200 if pending.ending else 202)

    async def decline(self, request: Request) -> Response:
        body = DeclineBody.model_validate_json(await request.body() or b"{}")
        reply = Reply(target=request.path_params["id"], by=body.by, channel=CHANNEL)
        pending = await self._office.answering.decline(reply, body.reason)
        return _json(wire.pending_view(pending))

    async def retry(self, request: Request) -> Response:
        body = RetryBody.model_validate_json(await request.body() or b"{}")
        pending = await self._office.answering.find(request.path_params["id"])
        return _json(wire.pending_view(await self._office.delivery.retry(pending, body.by)))

    async def dismiss(self, request: Request) -> Response:
        body = RetryBody.model_validate_json(await request.body() or b"{}")
        pending = await self._office.answering.find(request.path_params["id"])
        return _json(wire.pending_view(await self._office.delivery.dismiss(pending, body.by)))

    async def sweep(self, request: Request) -> Response:
        body = SweepBody.model_validate_json(await request.body() or b"{}")
        findings = await self._office.expiry.sweep(dry_run=body.dry_run)
        return _json([_finding(finding) for finding in findings])

    async def events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        if last is not None and not _EVENT_NUMBER.fullmatch(last):
            raise HTTPException(400, "Last-Event-ID is the number of an event")
        after = int(last) if last else None
        await request.body()  # while it can still be refused
        return EventSourceResponse(
            self._stream(after), ping=_PING_SECONDS, send_timeout=_STALLED_READER_SECONDS
        )

    async def _stream(self, after: int | None) -> AsyncIterator[ServerSentEvent]:
        async for line in self._office.audit.stream(after):
            yield ServerSentEvent(
                data=line.data.decode(), event=line.kind, id=str(line.sequence), sep="\n"
            )


def _finding(finding: Finding) -> dict[str, object]:
    return {
        **wire.pending_view(finding.pending),
        "why": finding.why,
        "would_end_as": finding.ending.outcome if finding.ending else None,
    }


def _json(body: object, status: int = 200) -> JSONResponse:
    return JSONResponse(body, status, {"cache-control": "no-store"})


_STATUS: dict[type[ReplyRejected], int] = {
    UnknownQuestion: 404,
    AmbiguousQuestion: 409,
    NotAllowed: 403,
    InvalidReply: 422,
    NotUndelivered: 409,
}


async def _refused(_request: Request, exc: Exception) -> Response:
    if isinstance(exc, AlreadyOver):
        return _json({"error": f"already over: {exc}", **wire.ending_view(exc.ending)}, 409)
    status = next((code for kind, code in _STATUS.items() if isinstance(exc, kind)), 400)
    return _json({"error": str(exc)}, status)


async def _overtaken(_request: Request, _exc: Exception) -> Response:
    return _json({"error": "the question has changed meanwhile; look at it again"}, 409)


async def _invalid(_request: Request, exc: Exception) -> Response:
    detail = wire.explain(exc) if isinstance(exc, ValidationError) else str(exc)
    return _json({"error": detail}, 422)


async def _http_error(_request: Request, exc: Exception) -> Response:
    if not isinstance(exc, HTTPException):
        raise exc
    return _json({"error": exc.detail}, exc.status_code)


async def _too_large(_request: Request, _exc: Exception) -> Response:
    return _hang_up("the body is too large", 413)


async def _too_slow(_request: Request, _exc: Exception) -> Response:
    return _hang_up("the body came too slowly", 408)


def _hang_up(error: str, status: int) -> Response:
    """Refuse it, and do not wait for the rest of the body."""
    return JSONResponse({"error": error}, status, {"connection": "close"})


async def _broken_disk(request: Request, exc: Exception) -> Response:
    why = exc.strerror if isinstance(exc, OSError) else None
    log.error("a request failed at the disk", extra={"path": request.url.path, "why": why or exc})
    told = f"the data folder cannot be used ({why or exc}); see pynchy doctor, then try again"
    return _json({"error": told}, 503)


async def _gone(_request: Request, _exc: Exception) -> Response:
    return Response(status_code=400)
