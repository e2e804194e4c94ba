"""The stream that keeps open pages true.

Whoever connects is first told what is open, so that nothing is missed in between, then of every
card that changes. A browser that was signed out is told that, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from pynchy import wire
from pynchy.aio import SharedResults
from pynchy.audit import AuditLine
from pynchy.events import EventKind
from pynchy.http.card_changes import CardChanges
from pynchy.http.context import BROWSER, HttpContext, find_question, waiting_questions
from pynchy.inbox.render import Renderer
from pynchy.inbox.sign_in import Browser
from pynchy.inbox.views import order_of, revision_of
from pynchy.model import PendingQuestion, State
from pynchy.pending.base import Key

PING_SECONDS = 10
_STALLED_READER_SECONDS = 30.0
_NO_STORE = {"cache-control": "no-store"}
# Pages that keep up ask for the same few.
_SHARED_EVENTS = 256
_SHARED_CARDS = 64


class CardStream:
    """Tells open pages what changes. What they are told is made once for all of them."""

    def __init__(self, context: HttpContext, renderer: Renderer) -> None:
        self._context = context
        self._renderer = renderer
        self._found: SharedResults[int, PendingQuestion | None] = SharedResults(_SHARED_EVENTS)
        self._told: SharedResults[tuple[Key, str], ServerSentEvent] = SharedResults(_SHARED_CARDS)

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
        with self._context.audit.feed() as feed:
            waiting = waiting_questions(self._context)
            known = {pending.key: revision_of(pending) for pending in waiting}
            changes = CardChanges()
            yield self._snapshot(waiting)
            while await feed.wait():
                changes.add(feed.take_all())
                while (line := changes.next()) is not None:
                    if not self._may_see(browser):
                        yield _message("out", {})
                        return
                    if (told := await self._tell(line, changes, known)) is not None:
                        yield told
                    # What came meanwhile may end what waits, and others have their turn.
                    changes.add(feed.take_all())

    async def _tell(
        self, line: AuditLine, changes: CardChanges, known: dict[Key, str]
    ) -> ServerSentEvent | None:
        """Return what the page is told of a change, if anything."""
        if line.kind == EventKind.ANNOUNCED:
            return _message("announcement", wire.read_announced(line.data))
        pending = await self._found.get(line.sequence, partial(self._find, line.data))
        if pending is None or _is_over_unseen(pending, changes):
            return None
        revision, before = revision_of(pending), known.get(pending.key)
        known[pending.key] = revision
        changes.told(pending.key)
        if pending.state is State.CLOSED:
            del known[pending.key]
        if revision == before:
            return None
        return await self._told.get((pending.key, revision), partial(self._change, pending))

    async def _find(self, event: bytes) -> PendingQuestion | None:
        key = wire.read_event_key(event)
        return await find_question(self._context, *key) if key else None

    def _snapshot(self, waiting: list[PendingQuestion]) -> ServerSentEvent:
        open_ = [[f"{p.group}/{p.request_id}", order_of(p), revision_of(p)] for p in waiting]
        return _message("sync", {"open": open_, **self._now()})

    async def _change(self, pending: PendingQuestion) -> ServerSentEvent:
        card = await asyncio.to_thread(self._renderer.card, pending)
        return _message("over" if pending.ending is not None else "card", card.as_message())

    def _may_see(self, browser: Browser | None) -> bool:
        return browser is None or self._context.sign_in.is_in(browser)

    def _ping(self, browser: Browser | None) -> ServerSentEvent:
        return _message("ping", self._now()) if self._may_see(browser) else _message("out", {})

    def _now(self) -> dict[str, object]:
        return {"now": wire.timestamp(self._context.ledger.now())}


def _is_over_unseen(pending: PendingQuestion, changes: CardChanges) -> bool:
    """True for what came and went; what could not be delivered is still for people."""
    is_over = pending.ending is not None and pending.state is not State.UNDELIVERED
    return is_over and changes.is_unseen(pending.key)


def _message(kind: str, body: object) -> ServerSentEvent:
    return ServerSentEvent(data=json.dumps(body), event=kind, sep="\n")
