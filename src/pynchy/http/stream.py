"""The live stream of the inbox: every card that changes, in one message each.

Whoever connects is first told what is open, so that nothing is missed in between. A browser that
was signed out is told that, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from pynchy import wire
from pynchy.http.auth import BROWSER
from pynchy.http.context import HttpContext, find_question, waiting_questions
from pynchy.inbox.render import Renderer
from pynchy.inbox.sign_in import Browser
from pynchy.inbox.views import order_of, revision_of
from pynchy.model import PendingQuestion, State

PING_SECONDS = 10
_STALLED_READER_SECONDS = 30.0
_NO_STORE = {"cache-control": "no-store"}


class CardStream:
    """Tells open pages what changes."""

    def __init__(self, context: HttpContext, renderer: Renderer) -> None:
        self._context = context
        self._renderer = renderer

    async def stream(self, request: Request) -> Response:
        """Tell of every card that changes, for as long as the browser is signed in."""
        browser = request.scope.get(BROWSER)
        await request.body()
        return EventSourceResponse(
            self._changes(browser),
            ping=PING_SECONDS,
            ping_message_factory=lambda: self._ping(browser),
            send_timeout=_STALLED_READER_SECONDS,
            headers=_NO_STORE,
        )

    async def _changes(self, browser: Browser | None) -> AsyncIterator[ServerSentEvent]:
        seen, waiting = self._context.audit.sequence, waiting_questions(self._context)
        known = {pending.key: revision_of(pending) for pending in waiting}
        yield self._snapshot(waiting)
        async for line in self._context.audit.stream(seen):
            key = wire.read_event_key(line.data)
            pending = await find_question(self._context, *key) if key else None
            if not self._may_see(browser):
                yield _message("out", {})
                return
            if pending is not None and known.get(pending.key) != revision_of(pending):
                known[pending.key] = revision_of(pending)
                yield await self._change(pending)
            if pending is not None and pending.state is State.CLOSED:
                known.pop(pending.key, None)

    def _snapshot(self, waiting: list[PendingQuestion]) -> ServerSentEvent:
        open_ = [[f"{p.group}/{p.request_id}", order_of(p), revision_of(p)] for p in waiting]
        return _message("sync", {"open": open_, **self._now()})

    async def _change(self, pending: PendingQuestion) -> ServerSentEvent:
        card = await asyncio.to_thread(self._renderer.card, pending)
        return _message("over" if pending.ending is not None else "card", card.facts())

    def _may_see(self, browser: Browser | None) -> bool:
        return browser is None or self._context.sign_in.is_in(browser)

    def _ping(self, browser: Browser | None) -> ServerSentEvent:
        return _message("ping", self._now()) if self._may_see(browser) else _message("out", {})

    def _now(self) -> dict[str, object]:
        return {"now": wire.timestamp(self._context.ledger.now())}


def _message(kind: str, body: object) -> ServerSentEvent:
    return ServerSentEvent(data=json.dumps(body), event=kind, sep="\n")
