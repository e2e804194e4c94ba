"""The pages of the inbox. Each is whole when it is sent; `card_stream.py` keeps it true."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pynchy import wire
from pynchy.http.agents import find_agents, seen_revision
from pynchy.http.auth import SignInRoutes
from pynchy.http.card_stream import CardStream
from pynchy.http.context import (
    HttpContext,
    can_retry,
    find_question,
    last_ended_first,
    waiting_questions,
    who,
)
from pynchy.inbox.render import RenderedCard, Renderer, Viewer
from pynchy.inbox.views import RowView, brief, row_view
from pynchy.model import GroupName, OutcomeKind, PendingQuestion
from pynchy.pending.base import HistoryQuery, has_words
from pynchy.unicode_safety import clip

_NO_STORE = {"cache-control": "no-store"}

# So many cards come with the page; the others follow when it is painted.
FIRST_CARDS = 30
_CARDS_AT_ONCE = 60
_MAX_FOUND = 100
_HISTORY_PAGE = 50
_MAX_PLACE_DIGITS = 5
# What a question is, without where it is shown and how it is delivered.
_AS_ASKED = (
    *("request_id", "short_id", "group", "kind", "title", "agent", "task", "urgency", "state"),
    *("timestamp", "expires_at", "defaults_at", "approvals_needed", "questions"),
    "hears_dismissal",
)
_MAX_TEXT = 2_000
_MAX_ABOUT = 400
_OUTCOMES = frozenset(kind.value for kind in OutcomeKind)


class InboxPages:
    """The routes of the pages."""

    def __init__(self, context: HttpContext) -> None:
        self._context = context
        self._renderer = Renderer(context.cookie, partial(can_retry, context))
        self._sign_in = SignInRoutes(context, self._renderer)
        self._live = CardStream(context, self._renderer)

    def routes(self) -> list[Route]:
        """Return the routes, those of signing in and of the stream among them."""
        return [
            Route("/", self.inbox),
            Route("/q/{group}/{id}", self.question),
            Route("/agents", self.agents),
            Route("/history", self.history),
            Route("/inbox/stream", self._live.stream),
            Route("/inbox/cards", self.cards),
            Route("/inbox/questions", self.questions),
            Route("/inbox/find", self.find),
            Route("/inbox/agents", self.agents_list),
            *self._sign_in.routes(),
        ]

    async def ask_to_sign_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser that is not signed in."""
        await self._sign_in.welcome(scope, receive, send)

    async def inbox(self, request: Request) -> Response:
        """Show what waits, most urgent first."""
        waiting = waiting_questions(self._context)
        cards = await asyncio.to_thread(self._print, waiting[:FIRST_CARDS])
        more = len(waiting) - len(cards)
        revisions = _revisions(cards)
        return await self._page(request, "inbox", cards=cards, more=more, revisions=revisions)

    async def question(self, request: Request) -> Response:
        """Show one question, open or over."""
        pending = await find_question(
            self._context, request.path_params["group"], request.path_params["id"]
        )
        if pending is None:
            return await self._page(request, "missing", status=404)
        card = await asyncio.to_thread(self._renderer.whole_card, pending)
        return await self._page(
            request, "question", card=card, brief=brief(pending), revisions=_revisions([card])
        )

    async def agents(self, request: Request) -> Response:
        """Show every agent and how it stands."""
        revision = seen_revision(self._context)
        agents = await find_agents(self._context)
        return await self._page(request, "agents", agents=agents, revision=revision)

    async def agents_list(self, request: Request) -> Response:
        """Send the list of agents alone, for a page that shows an older one.

        A page that names the revision of the foreign agents which it knows is told at little cost
        that it is still so: nothing else tells it of them, and it asks every other second.
        """
        revision = seen_revision(self._context)
        if request.query_params.get("known") == revision:
            return Response(status_code=204, headers=_NO_STORE)
        agents = await find_agents(self._context)
        html = await asyncio.to_thread(self._renderer.agents, agents, revision)
        return HTMLResponse(html, headers=_NO_STORE)

    async def history(self, request: Request) -> Response:
        """Show what is over."""
        params = request.query_params
        q, group, outcome = (params.get(name, "").strip() for name in ("q", "group", "outcome"))
        first = _place(params.get("after", ""))
        end = first + _HISTORY_PAGE
        found = await self._over(q, group, outcome, end + 1)
        rows = await asyncio.to_thread(_rows, last_ended_first(found[first:end]))
        older = {"q": q, "group": group, "outcome": outcome, "after": end}
        groups = await asyncio.to_thread(self._context.groups)
        return await self._page(
            request,
            "history",
            rows=rows,
            q=q,
            group=group,
            outcome=outcome,
            groups=sorted({*groups, *({group} if group else ())}),
            filtered=bool(q or group or outcome or first),
            more=f"/history?{urlencode(older)}" if len(found) > end else "",
        )

    async def cards(self, request: Request) -> Response:
        """Send the cards that a page lacks; to the page of one question, the whole of it."""
        is_whole = "whole" in request.query_params
        wanted = request.query_params.getlist("key")[: 1 if is_whole else _CARDS_AT_ONCE]
        found = [
            await find_question(self._context, *key.split("/", 1)) for key in wanted if "/" in key
        ]
        known = [pending for pending in found if pending is not None]
        render = self._renderer.whole_card if is_whole else self._renderer.card
        printed = await asyncio.to_thread(lambda: [render(pending) for pending in known])
        body = [
            {**card.as_message(), "over": pending.ending is not None}
            for card, pending in zip(printed, known, strict=True)
        ]
        return JSONResponse(body, headers=_NO_STORE)

    async def questions(self, request: Request) -> Response:
        """Send open questions to who shows them without our pages; long texts are cut."""
        wanted = request.query_params.getlist("key")[:_CARDS_AT_ONCE]
        found = [
            await find_question(self._context, *key.split("/", 1)) for key in wanted if "/" in key
        ]
        asked = [p for p in found if p is not None and p.ending is None]
        response = JSONResponse(
            await asyncio.to_thread(lambda: [_as_asked(pending) for pending in asked]),
            headers=_NO_STORE,
        )
        await self._sign_in.renew(request, response)
        return response

    async def find(self, request: Request) -> Response:
        """Send the keys of the first open questions that fit a search, and whether more do."""
        q, waiting = request.query_params.get("q", ""), waiting_questions(self._context)
        words = tuple(q.split())
        fitting = await asyncio.to_thread(lambda: [p for p in waiting if has_words(p, words)])
        keys = [f"{p.group}/{p.request_id}" for p in fitting[:_MAX_FOUND]]
        body = {"keys": keys, "more": len(fitting) > _MAX_FOUND}
        return JSONResponse(body, headers=_NO_STORE)

    async def _page(
        self, request: Request, name: str, *, status: int = 200, **values: object
    ) -> Response:
        html = await asyncio.to_thread(self._renderer.page, name, self._viewer(request), **values)
        response = HTMLResponse(html, status, _NO_STORE)
        await self._sign_in.renew(request, response)
        return response

    def _viewer(self, request: Request) -> Viewer:
        web = self._context.settings.web
        return Viewer(
            by=who(request, "the token's holder"),
            undo_ms=round(web.undo.total_seconds() * 1000),
            undo_high_ms=round(web.undo_high.total_seconds() * 1000),
            now=self._context.ledger.now(),
        )

    def _print(self, questions: list[PendingQuestion]) -> list[RenderedCard]:
        return [self._renderer.card(pending) for pending in questions]

    async def _over(self, q: str, group: str, outcome: str, most: int) -> list[PendingQuestion]:
        """Return what is over and fits, newest first."""
        if (group and not wire.usable_group(group)) or (outcome and outcome not in _OUTCOMES):
            return []
        query = HistoryQuery(
            limit=most,
            group=GroupName(group) if group else None,
            outcome=OutcomeKind(outcome) if outcome else None,
            words=tuple(q.split()),
        )
        return await self._context.history.recent(query)


def _as_asked(pending: PendingQuestion) -> dict[str, Any]:
    """Return what a popup can show of the question. What is cut is longer than any shows."""
    questions = tuple(
        replace(
            question,
            text=clip(question.text, _MAX_TEXT),
            options=tuple(
                replace(
                    option,
                    description=clip(option.description, _MAX_ABOUT),
                    preview=clip(option.preview, _MAX_ABOUT),
                )
                for option in question.options
            ),
        )
        for question in pending.questions
    )
    view = wire.pending_view(replace(pending, questions=questions))
    return {name: view[name] for name in _AS_ASKED if name in view}


def _place(after: str) -> int:
    """Return where in the history a page begins: after that many newer questions."""
    return int(after) if after.isdecimal() and len(after) <= _MAX_PLACE_DIGITS else 0


def _rows(over: list[PendingQuestion]) -> list[RowView]:
    return [row_view(pending, pending.ending) for pending in over if pending.ending is not None]


def _revisions(cards: list[RenderedCard]) -> list[tuple[str, str]]:
    """Return what the page already has, so that it asks only for what it lacks."""
    return [(card.key, card.revision) for card in cards]
