"""What sources have in common whose programs keep a question while we are away."""

from __future__ import annotations

from pynchy.model import PendingQuestion
from pynchy.pending.base import OpenQuestions
from pynchy.sources.base import HeldRoute, SourceHandler


def open_of(index: OpenQuestions, source: str) -> list[PendingQuestion]:
    """Return the source's questions that are not over for whoever asked them."""
    return [p for p in index if p.source == source and p.delivered is None]


async def end(
    route: HeldRoute, handler: SourceHandler, pending: PendingQuestion, reason: str
) -> None:
    """End a question that is not asked any more; an answer to it reaches nobody."""
    if pending.ending is None:
        await handler.cleared(pending.source, *pending.key, reason)
    else:
        route.lose(pending.key)


async def let_go(
    source: str, route: HeldRoute, index: OpenQuestions, handler: SourceHandler, reason: str
) -> None:
    """End all that a source has asked: it asks no more."""
    for pending in open_of(index, source):
        await end(route, handler, pending, reason)
