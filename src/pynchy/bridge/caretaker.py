"""See every question through: whatever state it is in, do what comes next.

What fails for a passing reason (a full disk, a bug in a channel) is tried again until it works;
nothing here ends because one question is in trouble.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from pynchy.bridge.cards import Cards, to_settle
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.desk import Desk
from pynchy.bridge.expire import Expiry
from pynchy.bridge.lifecycle import Routed, is_finished
from pynchy.bridge.reshowing import Reshowing
from pynchy.config import Settings
from pynchy.errors import UnknownQuestion
from pynchy.model import CardRef, CardState, PendingQuestion, State
from pynchy.pending.base import PendingStore
from pynchy.pending.index import Key

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 2.0
_AGAIN_MOST_SECONDS = 60.0

Work = Callable[[Key], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work."""

    cards: Cards
    delivery: Delivery
    expiry: Expiry


class Caretaker:
    """Starts what a question needs next, and after a restart what it still needs."""

    def __init__(
        self, desk: Desk, crew: Crew, settings: Settings, tasks: asyncio.TaskGroup
    ) -> None:
        self._desk = desk
        self._crew = crew
        self._settings = settings
        self._tasks = tasks
        self._reshowing = Reshowing(desk, crew.cards, settings)
        self._showing: set[Key] = set()
        desk.on_ended = self.ended

    def asked(self, key: Key) -> None:
        """Show a new question."""
        self._crew.expiry.watch(self._desk.get(key))
        self._showing.add(key)
        # An attempt that failed may have shown it all the same.
        self._spawn("show", key, self._show, again=self._show_again)

    def ended(self, key: Key) -> None:
        """Deliver an outcome, settle the cards, and close the question."""
        self._spawn("finish", key, self._finish)

    async def load(self, store: PendingStore) -> list[Key]:
        """Know every question that an earlier host left, and do nothing about it yet."""
        stored = await store.load()
        for item in stored:
            self._desk.restore(item.pending, item.ending)
        return [item.pending.key for item in stored]

    def resume(self, keys: Iterable[Key]) -> None:
        """Go on with what was loaded, wherever it had got to."""
        for key in keys:
            self._resume(self._desk.get(key))

    def _resume(self, pending: PendingQuestion) -> None:
        if pending.ending is not None:
            self.ended(pending.key)
            return
        self._crew.expiry.watch(pending)
        wanted = set(self._settings.group(pending.group).channels)
        missing = wanted - {card.channel for card in pending.cards}
        unsent = any(card.state is CardState.SENDING for card in pending.cards)
        # What is recorded only was shown nowhere: it is shown, or given up, now.
        if missing or unsent or pending.state is State.RECORDED or self._reshowing.failed(pending):
            self._showing.add(pending.key)
            self._spawn("show", pending.key, self._show_again)

    async def _show_again(self, key: Key) -> None:
        """Show what may not have been shown, and route to channels that were added since."""
        routing = self._settings.group(key[0])
        known = {card.channel for card in self._desk.get(key).cards}
        for name in routing.channels:
            if name not in known:
                await self._desk.take(key, Routed(name, routing.chat.get(name, "")))
        await self._show(key, repeated=True)

    async def _show(self, key: Key, *, repeated: bool = False) -> None:
        await self._show_now(key, repeated=repeated)
        # A channel that is away shows it when it is back, if somebody still has to answer.
        soon = repeated
        while await self._reshowing.due(key, soon=soon):
            await self._show_now(key, repeated=True)
            soon = False

    async def _show_now(self, key: Key, *, repeated: bool) -> None:
        self._showing.add(key)
        await self._crew.cards.show(key, repeated=repeated)
        self._showing.discard(key)
        self._desk.wake(key)

    async def _finish(self, key: Key) -> None:
        # The response goes first and alone: an agent waits, and writes hold each other up.
        await self._crew.delivery.respond(key)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._crew.delivery.see_through(key))
            tasks.create_task(self._settle_until_finished(key))
        await self._desk.close(key)

    async def _settle_until_finished(self, key: Key) -> None:
        sending = any(card.state is CardState.SENDING for card in self._desk.get(key).cards)
        if sending and key not in self._showing:
            # Whether it was shown is not known; showing it again tells where it is.
            await self._crew.cards.show(key, repeated=True)
        # Each card by itself: one channel may be away for days, and holds up no other.
        busy: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while not is_finished(pending := self._desk.get(key)):
                version = self._desk.version(key)
                for card in to_settle(pending):
                    if card.channel not in busy:
                        busy.add(card.channel)
                        tasks.create_task(self._settle(pending, card, busy))
                await self._desk.changed(key, version, _AGAIN_MOST_SECONDS)

    async def _settle(self, pending: PendingQuestion, card: CardRef, busy: set[str]) -> None:
        await self._crew.cards.settle(pending, card)
        busy.discard(card.channel)

    def _spawn(self, what: str, key: Key, work: Work, *, again: Work | None = None) -> None:
        self._tasks.create_task(self._until_done(key, work, again), name=f"{what} {key[1]}")

    async def _until_done(self, key: Key, work: Work, again: Work | None) -> None:
        wait = _AGAIN_SECONDS
        while True:
            try:
                await work(key)
            except UnknownQuestion:
                return
            except Exception:
                log.exception("work on a question failed; trying again", extra={"id": key[1]})
                await asyncio.sleep(wait)
                wait = min(wait * 2, _AGAIN_MOST_SECONDS)
                work = again or work
            else:
                return
