"""The routes of the HTTP interface.

Every refusal is JSON with an `error` that says what to do; a second answer gets 409 with who
answered and what. The pages of a browser that is signed in may reply to questions; everything
else here is for the token.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from pydantic import ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pynchy import wire
from pynchy.bridge.expire import StaleQuestion
from pynchy.config import LOCAL, WEB
from pynchy.errors import (
    AlreadyOver,
    AmbiguousQuestion,
    GroupKept,
    IllegalTransition,
    InvalidReply,
    NotAllowed,
    NotStarted,
    NotUndelivered,
    PartTaken,
    ReplyRejected,
    RuleRefused,
    SessionOver,
    UnknownGroup,
    UnknownQuestion,
    UnknownRule,
    UnknownSession,
)
from pynchy.http.agents import find_agents, find_status
from pynchy.http.auth import BodyTooLarge, BodyTooSlow
from pynchy.http.bodies import (
    AnswerBody,
    ClosePopupBody,
    DeclineBody,
    QuestionBody,
    RetryBody,
    SweepBody,
    json_response,
)
from pynchy.http.context import (
    BROWSER,
    HttpContext,
    agent_json,
    last_ended_first,
    make_link,
    question_view,
    question_view_whole,
    who,
)
from pynchy.http.groups import group_routes, rule_routes
from pynchy.http.hooks import hook_routes
from pynchy.http.pages import InboxPages
from pynchy.http.sessions import session_routes
from pynchy.http_connections import KNOWN
from pynchy.model import Answer, GroupName, OutcomeKind, PendingQuestion, Reply
from pynchy.pending.base import HistoryQuery

log = logging.getLogger(__name__)

_PING_SECONDS = 15
_STALLED_READER_SECONDS = 30.0
_MAX_HISTORY = 1_000
_LIMIT = re.compile(r"-?[0-9]{1,18}")
_EVENT_NUMBER = re.compile(r"[0-9]{1,18}")


def make_api(context: HttpContext, inbox: InboxPages) -> Starlette:
    """Return the application, without its guard."""
    routes = _ApiRoutes(context)
    return Starlette(
        routes=[
            *inbox.routes(),
            Route("/healthz", routes.health),
            Route("/api/questions/{id}/answer", routes.answer, methods=["POST"]),
            Route("/api/questions/{id}/decline", routes.decline, methods=["POST"]),
            Route("/api/questions/{id}/close-popup", routes.close_popup, methods=["POST"]),
            Route("/api/questions/{id}/retry", routes.retry, methods=["POST"]),
            Route("/api/questions/{id}/dismiss", routes.dismiss, methods=["POST"]),
            *hook_routes(context.terminal),
            *_for_the_token(routes.for_the_token()),
            *_for_the_token(session_routes(context.session_context)),
            *_for_the_token(group_routes(context)),
            *_for_the_token(rule_routes(context)),
        ],
        exception_handlers={
            ReplyRejected: _refused,
            IllegalTransition: _overtaken,
            ValidationError: _invalid,
            HTTPException: _http_error,
            BodyTooLarge: _too_large,
            BodyTooSlow: _too_slow,
            ClientDisconnect: _gone,
            OSError: _broken_disk,
        },
    )


def _for_the_token(routes: Iterable[Route]) -> list[Route]:
    """Return the routes as they are, but closed to browsers."""
    closed = [Middleware(_TokenAlone)]
    return [Route(r.path, r.endpoint, methods=r.methods, middleware=closed) for r in routes]


class _TokenAlone:
    """Refuses a cookie: whoever steals one must not let others in or start agents."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get(BROWSER):
            raise HTTPException(403, "a browser may not do this; it needs the host's token")
        await self._app(scope, receive, send)


class _ApiRoutes:
    def __init__(self, context: HttpContext) -> None:
        self._context = context

    def for_the_token(self) -> list[Route]:
        """Return the routes that the pages do not need."""
        return [
            Route("/api/agents", self.agents),
            Route("/api/status", self.status),
            Route("/api/inbox/settings", self.inbox_settings),
            Route("/api/inbox/link", self.make_link, methods=["POST"]),
            Route("/api/inbox/sign-out-all", self.sign_out_all, methods=["POST"]),
            Route("/api/pending", self.pending),
            Route("/api/history", self.history),
            Route("/api/events", self.events),
            Route("/api/sweep", self.sweep, methods=["POST"]),
            Route("/api/questions/{id}", self.question),
        ]

    async def health(self, request: Request) -> Response:
        problems = await self._context.problems()
        waiting = sum(p.state.waits_for_person for p in self._context.ledger.index)
        health: dict[str, object] = {"status": "degraded" if problems else "ok", "open": waiting}
        if request.scope.get(KNOWN):  # they name folders and groups
            health["problems"] = problems
            if warnings := self._context.warnings():
                health["warnings"] = warnings
        return json_response(health)

    async def pending(self, _request: Request) -> Response:
        listed = [p for p in self._context.ledger.index if p.delivered is None]
        listed.sort(key=lambda pending: pending.timestamp)
        return json_response([question_view(self._context, p) for p in listed])

    async def history(self, request: Request) -> Response:
        params = request.query_params
        group, outcome, limit = params.get("group"), params.get("outcome"), params.get("limit")
        if limit is not None and not _LIMIT.fullmatch(limit):
            raise HTTPException(400, f"limit is a number from 1 to {_MAX_HISTORY}")
        if outcome and outcome not in set(OutcomeKind):
            raise HTTPException(400, f"outcome is one of {', '.join(OutcomeKind)}")
        query = HistoryQuery(
            limit=min(max(int(limit or "50"), 1), _MAX_HISTORY),
            group=GroupName(group) if group and wire.usable_group(group) else None,
            outcome=OutcomeKind(outcome) if outcome else None,
        )
        if group and query.group is None:
            return json_response([])
        found = await self._context.history.recent(query)
        return json_response([wire.pending_view(p) for p in last_ended_first(found)])

    async def question(self, request: Request) -> Response:
        group = _named_group(request.query_params.get("group"))
        found = await self._context.answers.find(request.path_params["id"], group)
        return json_response(await question_view_whole(self._context, found))

    async def answer(self, request: Request) -> Response:
        body = AnswerBody.model_validate_json(await request.body())
        reply = _reply(
            request,
            body,
            values=tuple(body.values),
            answers=await self._answers(request, body),
            question=body.question,
        )
        reply = replace(
            reply,
            rule_seconds=body.rule_seconds,
            rule_scope=body.rule_scope,
            edited=body.edited,
        )
        pending = await self._context.answers.answer(reply)
        return json_response(wire.pending_view(pending), 200 if pending.ending else 202)

    async def _answers(self, request: Request, body: AnswerBody) -> tuple[Answer, ...]:
        if not body.answers:
            return ()
        asked = (await self._find(request, body)).questions
        if body.question is not None:
            asked = asked[max(body.question - 1, 0) :]
        # What there is too much of has no labels, and is refused when it is counted.
        labels = [question.labels for question in asked] + [()] * len(body.answers)
        return tuple(a.to_model(of) for a, of in zip(body.answers, labels, strict=False))

    async def _find(self, request: Request, body: QuestionBody) -> PendingQuestion:
        return await self._context.answers.find(request.path_params["id"], _named_group(body.group))

    async def decline(self, request: Request) -> Response:
        body = DeclineBody.model_validate_json(await request.body() or b"{}")
        pending = await self._context.answers.decline(_reply(request, body), body.reason)
        return json_response(wire.pending_view(pending))

    async def close_popup(self, request: Request) -> Response:
        body = ClosePopupBody.model_validate_json(await request.body() or b"{}")
        await self._context.answers.dismiss(_reply(request, body), body.implied_choice or "")
        return json_response({})

    async def retry(self, request: Request) -> Response:
        body = RetryBody.model_validate_json(await request.body() or b"{}")
        pending, by = await self._find(request, body), who(request, body.by)
        return json_response(wire.pending_view(await self._context.delivery.retry(pending, by)))

    async def dismiss(self, request: Request) -> Response:
        body = RetryBody.model_validate_json(await request.body() or b"{}")
        pending, by = await self._find(request, body), who(request, body.by)
        return json_response(wire.pending_view(await self._context.delivery.dismiss(pending, by)))

    async def agents(self, _request: Request) -> Response:
        views = await find_agents(self._context)
        return json_response([agent_json(self._context, view) for view in views])

    async def status(self, _request: Request) -> Response:
        return json_response(await find_status(self._context))

    async def inbox_settings(self, _request: Request) -> Response:
        """Say what a screen of the inbox must know: for how long a choice can be taken back."""
        web = self._context.settings.web
        usual, high = web.undo.total_seconds(), web.undo_high.total_seconds()
        seconds = {"low": usual, "normal": usual, "high": high}
        return json_response({"undo_seconds": seconds})

    async def make_link(self, _request: Request) -> Response:
        url, until = await make_link(self._context)
        return json_response({"url": url, "expires_at": wire.timestamp(until)})

    async def sign_out_all(self, _request: Request) -> Response:
        return json_response({"signed_out": await self._context.sign_in.sign_out_all()})

    async def sweep(self, request: Request) -> Response:
        body = SweepBody.model_validate_json(await request.body() or b"{}")
        findings = await self._context.expiry.sweep(dry_run=body.dry_run)
        return json_response([_finding(finding) for finding in findings])

    async def events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        if last is not None and not _EVENT_NUMBER.fullmatch(last):
            raise HTTPException(400, "Last-Event-ID is the number of an event")
        await request.body()  # while it can still be refused
        lines = self._stream(int(last) if last else None)
        return EventSourceResponse(lines, ping=_PING_SECONDS, send_timeout=_STALLED_READER_SECONDS)

    async def _stream(self, after: int | None) -> AsyncIterator[ServerSentEvent]:
        async for line in self._context.audit.stream(after):
            yield ServerSentEvent(
                data=line.data.decode(), event=line.kind, id=str(line.sequence), sep="\n"
            )


def _reply(
    request: Request,
    body: QuestionBody,
    *,
    values: tuple[str, ...] = (),
    answers: tuple[Answer, ...] = (),
    question: int | None = None,
) -> Reply:
    """Return what a person says, by whom a browser is signed in as, else by their own word."""
    return Reply(
        target=request.path_params["id"],
        by=who(request, body.by),
        channel=WEB if request.scope.get(BROWSER) else LOCAL,
        values=values,
        answers=answers,
        question=question,
        group=_named_group(body.group),
    )


def _named_group(name: str | None) -> GroupName | None:
    if name is None:
        return None
    if not wire.usable_group(name):
        raise UnknownQuestion("there is no such group")
    return GroupName(name)


def _finding(finding: StaleQuestion) -> dict[str, object]:
    return {
        **wire.pending_view(finding.pending),
        "why": finding.why,
        "would_end_as": finding.ending.outcome if finding.ending else None,
    }


_STATUS: dict[type[ReplyRejected], int] = {
    UnknownQuestion: 404,
    AmbiguousQuestion: 409,
    NotAllowed: 403,
    InvalidReply: 422,
    NotUndelivered: 409,
    PartTaken: 409,
    UnknownSession: 404,
    SessionOver: 409,
    NotStarted: 422,
    UnknownGroup: 404,
    GroupKept: 409,
    UnknownRule: 404,
    RuleRefused: 409,
}


async def _refused(_request: Request, exc: Exception) -> Response:
    if isinstance(exc, AlreadyOver):
        return json_response({"error": f"already over: {exc}", **wire.ending_view(exc.ending)}, 409)
    if isinstance(exc, SessionOver):
        return json_response({"error": str(exc), "outcome": "ended"}, 409)
    status = next((code for kind, code in _STATUS.items() if isinstance(exc, kind)), 400)
    return json_response({"error": str(exc)}, status)


async def _overtaken(_request: Request, _exc: Exception) -> Response:
    return json_response({"error": "the question has changed meanwhile; look at it again"}, 409)


async def _invalid(_request: Request, exc: Exception) -> Response:
    detail = wire.explain(exc) if isinstance(exc, ValidationError) else str(exc)
    return json_response({"error": detail}, 422)


async def _http_error(_request: Request, exc: Exception) -> Response:
    if not isinstance(exc, HTTPException):
        raise exc
    return json_response({"error": exc.detail}, exc.status_code)


async def _too_large(_request: Request, _exc: Exception) -> Response:
    return _hang_up("the body is too large", 413)


async def _too_slow(_request: Request, _exc: Exception) -> Response:
    return _hang_up("the body came too slowly", 408)


def _hang_up(error: str, status: int) -> Response:
    """Refuse it, and do not wait for the rest of the body."""
    headers = {"connection": "close", "cache-control": "no-store"}
    return JSONResponse({"error": error}, status, headers)


async def _broken_disk(request: Request, exc: Exception) -> Response:
    why = exc.strerror if isinstance(exc, OSError) else None
    log.error("http.disk_failed", extra={"path": request.url.path, "why": why or exc})
    told = f"the data folder cannot be used ({why or exc}); see pynchy doctor, then try again"
    return json_response({"error": told}, 503)


async def _gone(_request: Request, _exc: Exception) -> Response:
    return Response(status_code=400)
