"""Show a question in every channel of its group, and settle the cards when it is over.

A card is shown at least once; one that may be a repeat says so. A channel that fails, hangs or
gives no id counts as failed there and holds up nobody else. A question that no channel can show is
given up when patience is over, or at once where trying again cannot help.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pynchy.aio import is_being_cancelled
from pynchy.bridge.ledger import QuestionLedger
from pynchy.bridge.lifecycle import CardSettled, Routed, SettleFailed, ShowFailed, Shown, unsettled
from pynchy.channels.base import Channel, said_of_itself
from pynchy.config import Settings
from pynchy.errors import (
    AlreadyOver,
    AskingUnsupported,
    CannotShow,
    ChannelUnavailable,
    UnknownQuestion,
)
from pynchy.model import (
    Card,
    CardRef,
    CardState,
    Ending,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
)
from pynchy.outcome_text import delivery_note
from pynchy.pending.base import Key

log = logging.getLogger(__name__)
T = TypeVar("T")

# About a week: a channel may be away for long, and its cards must not look open for ever.
SETTLE_ATTEMPTS = 1_000
_WAIT_SECONDS = 2.0
WAIT_MAX_SECONDS = 600.0
# How soon it is noticed that a channel is back.
_POLL_SECONDS = 5.0

# About a week, as long as a card is settled.
SHOW_ATTEMPTS = 1_000


class Cards:
    """Talks to the channels about one question at a time."""

    def __init__(
        self,
        ledger: QuestionLedger,
        channels: Mapping[str, Channel],
        send_timeout: float,
        public_url: str = "",
    ) -> None:
        self._ledger = ledger
        self._channels = channels
        self._send_timeout = send_timeout
        self._public_url = public_url
        self._unable: set[str] = set()

    def can_ask(self, channel: str) -> bool:
        """True for a channel that may show a card, now or later."""
        return channel in self._channels and channel not in self._unable

    def is_well(self, channel: str) -> bool:
        """True for a channel that does not say itself that something is wrong."""
        known = self._channels.get(channel)
        return known is not None and said_of_itself(known.problem) is None

    async def rest(self, channels: Collection[str], seconds: float) -> None:
        """Return after so many seconds, or sooner when one of the channels was away and is back."""
        away = {name for name in channels if not self.is_well(name)}
        while seconds > 0:
            await asyncio.sleep(min(seconds, _POLL_SECONDS))
            seconds -= _POLL_SECONDS
            if any(self.is_well(name) for name in away):
                return
            away = {name for name in channels if not self.is_well(name)}

    async def show(self, key: Key, in_doubt: Collection[str] = ()) -> None:
        """Show every card that is to be sent; `in_doubt` are channels that may show it already."""
        pending = self._ledger.get(key)
        async with asyncio.TaskGroup() as tasks:
            for card in sent_next(pending):
                repeated = card.maybe_shown or card.channel in in_doubt
                tasks.create_task(self._show_one(pending, card, repeated=repeated))

    async def settle(self, pending: PendingQuestion, card: CardRef) -> None:
        """Bring the card up to date with how the question stands, or abandon it."""
        while True:
            try:
                await self._settle_card(pending, card)
            except ChannelUnavailable as exc:
                last = card.attempts + 1 >= SETTLE_ATTEMPTS
                failed = SettleFailed(card.channel, str(exc), abandon=last)
            else:
                settled = CardSettled(card.channel, delivery_note(pending))
                await self._ledger.apply(pending.key, settled)
                return
            pending = await self._ledger.apply(pending.key, failed)
            if last:
                return
            card = pending.card_of(card.channel) or card
            await self.rest([card.channel], wait_seconds(card.attempts))

    async def _show_one(self, pending: PendingQuestion, card: CardRef, *, repeated: bool) -> None:
        try:
            message_id = await self._send(pending, card, repeated=repeated)
        except ChannelUnavailable as exc:
            if isinstance(exc, AskingUnsupported):
                self._unable.add(card.channel)
            failed = ShowFailed(
                card.channel,
                str(exc),
                maybe_shown=repeated or exc.maybe_shown,
                hopeless=isinstance(exc, CannotShow),
            )
            await self._ledger.apply(pending.key, failed)
        else:
            await self._ledger.apply(pending.key, Shown(card.channel, message_id))

    async def _send(self, pending: PendingQuestion, card: CardRef, *, repeated: bool) -> str:
        shown = replace(card_of(pending, self._public_url), repeated=repeated)
        message_id = await self._call(
            card,
            lambda channel: channel.send_ask_user(
                card.chat, pending.request_id, offered(pending, channel, shown), card=shown
            ),
        )
        if not isinstance(message_id, str) or not message_id:
            raise ChannelUnavailable("the channel gave no message id")
        return message_id

    async def give_up(self, pending: PendingQuestion) -> None:
        """End a question that no channel could show."""
        reason = f"no channel could show the question ({why_unseen(pending)})"
        ending = Ending(OutcomeKind.UNDELIVERABLE, self._ledger.now(), reason=reason)
        try:
            await self._ledger.end(pending.key, ending)
        except (AlreadyOver, UnknownQuestion):
            log.debug("card.overtaken", extra={"id": pending.request_id})

    async def _settle_card(self, pending: PendingQuestion, card: CardRef) -> None:
        settled = card_of(pending, self._public_url)
        await self._call(
            card,
            lambda channel: channel.settle_card(
                card.chat,
                card.message_id or "",
                pending.request_id,
                offered(pending, channel, settled),
                card=settled,
            ),
        )

    async def _call(self, card: CardRef, call: Callable[[Channel], Awaitable[T]]) -> T:
        """Call the channel; whatever goes wrong there becomes ChannelUnavailable."""
        channel = self._channels.get(card.channel)
        if channel is None:
            raise CannotShow("not configured")
        seconds = max(self._send_timeout, channel.least_send_timeout)
        try:
            async with asyncio.timeout(seconds):
                return await call(channel)
        except ChannelUnavailable:
            raise
        except TimeoutError as exc:
            raise ChannelUnavailable(f"no reply within {seconds:g} s") from exc
        except asyncio.CancelledError as exc:
            if is_being_cancelled():
                raise
            # Nobody cancelled us: a library did that to its own call, and it must not pass
            # for a card that is still being sent.
            raise ChannelUnavailable("the channel cancelled its own call") from exc
        except Exception as exc:
            log.exception("channel.failed", extra={"channel": card.channel})
            raise ChannelUnavailable(f"{type(exc).__name__} in the channel") from exc


def card_of(pending: PendingQuestion, public_url: str = "") -> Card:
    """Return what a channel needs to know of the question as it stands.

    Where people reach the inbox, the card has the address of the question's own page.
    """
    link = f"{public_url}/q/{pending.group}/{pending.request_id}" if public_url else None
    return Card(
        short_id=pending.short_id,
        group=pending.group,
        timestamp=pending.timestamp,
        expires_at=pending.expires_at,
        title=pending.title,
        agent=pending.agent,
        task=pending.task,
        urgency=pending.urgency,
        defaults_at=pending.defaults_at,
        link=link,
        session_id=pending.session_id,
        ending=pending.ending,
        delivery=delivery_note(pending),
        hears_dismissal=pending.hears_dismissal,
    )


def offered(pending: PendingQuestion, channel: Channel, card: Card) -> tuple[Question, ...]:
    """Return the questions as the channel can put them.

    Nobody chooses there what needs to be seen whole, if the channel cannot show it whole.
    """
    questions = pending.questions
    if not any(option.needs_sight for question in questions for option in question.options):
        return questions
    as_new = replace(card, ending=None, delivery="", repeated=False)
    if channel.shows_whole(questions, as_new):
        return questions
    # What is confirmed may be too long for that alone.
    at_once = tuple(
        _without(question, lambda option: bool(option.confirm)) for question in questions
    )
    if channel.shows_whole(at_once, as_new):
        return at_once
    where = f"{card.link} or " if card.link else ""
    told = f"Too long to be allowed here: open {where}`pynchy show {card.short_id}`."
    return tuple(
        replace(
            _without(question, lambda option: option.needs_sight),
            text=f"{told}\n\n{question.text}",
        )
        for question in questions
    )


def _without(question: Question, is_left_out: Callable[[Option], bool]) -> Question:
    return replace(question, options=tuple(o for o in question.options if not is_left_out(o)))


def wait_seconds(attempts: int) -> float:
    """Return how long to wait after so many attempts, with a card of any channel."""
    return min(_WAIT_SECONDS * 2.0 ** min(attempts, 16), WAIT_MAX_SECONDS)


def to_settle(pending: PendingQuestion) -> list[CardRef]:
    """Return the cards that can be settled now; one that is being sent comes later."""
    return [card for card in unsettled(pending) if card.state is not CardState.SENDING]


def sent_next(pending: PendingQuestion) -> list[CardRef]:
    """Return the cards that are about to be sent, or were when a host ended."""
    return [card for card in pending.cards if card.state is CardState.SENDING]


def is_unseen(pending: PendingQuestion) -> bool:
    """True while a person should see the question and no channel shows it or is about to."""
    shown = {CardState.SHOWN, CardState.SENDING}
    return pending.state.waits_for_person and all(c.state not in shown for c in pending.cards)


def why_unseen(pending: PendingQuestion) -> str:
    """Say what kept each channel from showing the question."""
    return "; ".join(f"{card.channel}: {card.error}" for card in pending.cards) or "none set"


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

    async def wait_and_route(self, key: Key, give_up_at: datetime, *, soon: bool = False) -> bool:
        """Wait until an attempt makes sense, and record it. False when there is nothing to do.

        A channel that says itself that something is wrong is looked at, and not tried. A question
        that nobody can see by `give_up_at`, or ever, is ended.
        """
        while True:
            pending = self._ledger.get(key)
            failed = self.failed(pending)
            left = (give_up_at - self._ledger.now()).total_seconds()
            if is_unseen(pending) and (left <= 0 or all(c.hopeless for c in failed)):
                await self._cards.give_up(pending)
                return False
            if not failed:
                return False
            # One that is away has no say in how soon another is tried: it is waited for.
            waits = [
                wait_seconds(0 if soon else card.attempts)
                for card in failed
                if self._cards.is_well(card.channel)
            ]
            if is_unseen(pending):
                waits.append(left)
            channels = [card.channel for card in failed]
            await self._cards.rest(channels, min(waits, default=WAIT_MAX_SECONDS))
            if await self._route(key):
                return True

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
