"""See every question through: whatever state it is in, do what comes next.

What fails for a passing reason (a full disk, a bug in a channel) is tried again until it works;
nothing here ends because one question is in trouble.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from pynchy.bridge.cards import Cards, Reshowing, is_unseen, sent_next, to_settle, why_unseen
from pynchy.bridge.deliver import Delivery
from pynchy.bridge.expire import Expiry
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Routed, is_finished
from pynchy.config import Settings
from pynchy.errors import UnknownQuestion
from pynchy.model import CardRef, CardState, PendingQuestion, State
from pynchy.pending.base import Key, QuestionObserver

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0

Work = Callable[[Key], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QuestionServices:
    """Who does the work."""

    cards: Cards
    delivery: Delivery
    expiry: Expiry


class QuestionWorkers(QuestionObserver):
    """Starts what a question needs next, and after a restart what it still needs."""

    def __init__(
        self,
        ledger: QuestionLedger,
        services: QuestionServices,
        settings: Settings,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._ledger = ledger
        self._services = services
        self._settings = settings
        self._tasks = tasks
        self._reshowing = Reshowing(ledger, services.cards, settings)
        self._showing: set[Key] = set()
        self._finishing: set[Key] = set()
        # Whose agents have been told that nobody has seen the question.
        self._unseen: set[Key] = set()

    def question_recorded(self, pending: PendingQuestion) -> None:
        """Show a new question."""
        self._services.expiry.watch(pending)
        self._showing.add(pending.key)
        show = self._show if pending.cards else self._show_again
        self._spawn("show", pending.key, show, again=self._show_again)

    def question_ended(self, pending: PendingQuestion) -> None:
        """Deliver an outcome, settle the cards, and close the question."""
        if self._ledger.is_home(pending) and pending.key not in self._finishing:
            self._finishing.add(pending.key)
            self._spawn("finish", pending.key, self._finish)

    def question_closed(self, pending: PendingQuestion) -> None:
        """Forget it: the next question of that id is another one."""
        for noted in (self._showing, self._finishing, self._unseen):
            noted.discard(pending.key)

    def resume(self) -> int:
        """Go on with what was loaded, wherever it had got to. Return how many there are."""
        loaded = list(self._ledger.index)
        for pending in loaded:
            if self._ledger.is_home(pending):
                self._resume(pending)
        return len(loaded)

    def _resume(self, pending: PendingQuestion) -> None:
        if pending.ending is not None:
            self.question_ended(pending)
            return
        self._services.expiry.watch(pending)
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
        pending = self._ledger.get(key)
        # An attempt that a crash or an error cut short may have shown it all the same.
        in_doubt = [card.channel for card in sent_next(pending)]
        known = {card.channel for card in pending.cards}
        for name in routing.channels:
            if name not in known:
                await self._ledger.apply(key, Routed(name, routing.chat.get(name, "")))
        await self._show(key, in_doubt, soon=True)

    async def _show(self, key: Key, in_doubt: Collection[str] = (), *, soon: bool = False) -> None:
        give_up_at = self._ledger.now() + self._settings.show_patience
        await self._show_now(key, in_doubt)
        # A channel that is away shows it when it is back, if somebody still has to answer.
        while await self._reshowing.wait_and_route(key, give_up_at, soon=soon):
            await self._show_now(key)
            soon = False

    async def _show_now(self, key: Key, in_doubt: Collection[str] = ()) -> None:
        self._showing.add(key)
        await self._services.cards.show(key, in_doubt)
        self._showing.discard(key)
        self._ledger.notify(key)
        await self._tell_whether_unseen(key)

    async def _tell_whether_unseen(self, key: Key) -> None:
        """Let the agent know while nobody can have seen its question."""
        pending = self._ledger.get(key)
        unseen = why_unseen(pending) if is_unseen(pending) else ""
        if unseen:
            self._unseen.add(key)  # before it is told: if it ends meanwhile, that is taken back
        if key in self._unseen:
            await self._services.delivery.route(pending).tell_unseen(pending, unseen)
        if not unseen:
            self._unseen.discard(key)

    async def _finish(self, key: Key) -> None:
        # The response goes first and alone: an agent waits, and writes hold each other up.
        await self._services.delivery.respond(key)
        # Each until it is done by itself: what is wrong with a card does not hold up the agent.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._until_done(key, self._services.delivery.see_through))
            tasks.create_task(self._until_done(key, self._settle_until_finished))
            tasks.create_task(self._until_done(key, self._services.delivery.settle_covered))
        if key in self._unseen:
            await self._tell_whether_unseen(key)
        await self._ledger.close(key)

    async def _settle_until_finished(self, key: Key) -> None:
        sending = [card.channel for card in sent_next(self._ledger.get(key))]
        if sending and key not in self._showing:
            # Whether it was shown is not known; showing it again tells where it is.
            await self._services.cards.show(key, sending)
        # Each card by itself: one channel may be away for days, and holds up no other.
        busy: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while not is_finished(pending := self._ledger.get(key)):
                version = self._ledger.version(key)
                for card in to_settle(pending):
                    if card.channel not in busy:
                        busy.add(card.channel)
                        tasks.create_task(self._settle(pending, card, busy))
                await self._ledger.changed(key, version, _RETRY_MAX_SECONDS)

    async def _settle(self, pending: PendingQuestion, card: CardRef, busy: set[str]) -> None:
        await self._services.cards.settle(pending, card)
        busy.discard(card.channel)
        # Its own step has woken the loop above while the channel was still busy.
        self._ledger.notify(pending.key)

    def _spawn(self, what: str, key: Key, work: Work, *, again: Work | None = None) -> None:
        working = self._until_done(key, work, again)
        try:
            self._tasks.create_task(working, name=f"{what} {key[1]}")
        except RuntimeError:
            # The host stops: a step that had begun was finished, and the next host goes on.
            working.close()

    async def _until_done(self, key: Key, work: Work, again: Work | None = None) -> None:
        wait = _RETRY_SECONDS
        while True:
            try:
                await work(key)
            except UnknownQuestion:
                return
            except Exception:
                if self._ledger.index.get(key) is None:
                    return  # closed meanwhile, and part of the work was still going on
                log.exception("question.work_failed", extra={"id": key[1]})
                await asyncio.sleep(wait)
                wait = min(wait * 2, _RETRY_MAX_SECONDS)
                work = again or work
            else:
                return
