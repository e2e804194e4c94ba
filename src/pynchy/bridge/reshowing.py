"""Show a question later where it could not be shown at first, for as long as it is open.

Each attempt is durable before it is made, so that no card is forgotten that came of it. Only a
channel that does not show the question is tried; what may be a repeat says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from pynchy.bridge.cards import WAIT_MAX_SECONDS, Cards, wait_seconds
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import Routed
from pynchy.config import Settings
from pynchy.errors import AlreadyOver
from pynchy.model import CardRef, CardState, PendingQuestion
from pynchy.pending.index import Key

# About a week, as long as a card is settled.
SHOW_ATTEMPTS = 1_000


class Reshowing:
    """Tries failed cards again, those of one question at a time."""

    def __init__(self, ledger: QuestionLedger, cards: Cards, settings: Settings) -> None:
        self._ledger = ledger
        self._cards = cards
        self._settings = settings

    def failed(self, pending: PendingQuestion) -> list[CardRef]:
        """Return the cards that may be shown yet; none when the question is over."""
        routed = self._settings.group(pending.group).channels
        return [
            card
            for card in pending.cards
            if pending.state.waits_for_person
            and card.state is CardState.FAILED
            and card.attempts < SHOW_ATTEMPTS
            and card.channel in routed
            and self._cards.can_ask(card.channel)
        ]

    async def due(self, key: Key, *, soon: bool = False) -> bool:
        """Wait until an attempt makes sense, and record it. False when there is nothing to do.

        A channel that says itself that something is wrong is looked at, and not tried.
        """
        while failed := self.failed(self._ledger.get(key)):
            # One that is away has no say in how soon another is tried: it is waited for.
            waits = [
                wait_seconds(0 if soon else card.attempts)
                for card in failed
                if self._cards.is_well(card.channel)
            ]
            channels = [card.channel for card in failed]
            await self._cards.rest(channels, min(waits, default=WAIT_MAX_SECONDS))
            if await self._route(key):
                return True
        return False

    async def _route(self, key: Key) -> bool:
        try:
            pending = await self._ledger.commit(key, self._steps)
        except AlreadyOver:
            return False
        return any(card.state is CardState.SENDING for card in pending.cards)

    def _steps(self, pending: PendingQuestion) -> Sequence[Routed]:
        # Who corrected the chat in the settings wants the card there.
        chat = self._settings.group(pending.group).chat
        return [
            Routed(card.channel, chat.get(card.channel, ""))
            for card in self.failed(pending)
            if self._cards.is_well(card.channel)
        ]
