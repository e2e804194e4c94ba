"""The WhatsApp channel: one paired account, each group in its own chat.

Cards are numbered text; how a question ended is said in a message that quotes the card. A child
process talks to WhatsApp, and what it keeps on the queue is judged here.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pynchy.channels.base import Channel, ReplyHandler
from pynchy.channels.numbered import NumberedCard, fits_whole, render_card, render_settled
from pynchy.channels.whatsapp.addresses import normal
from pynchy.channels.whatsapp.inbound import InboundContext, InboundProcessor, WhatsAppGroups
from pynchy.channels.whatsapp.inbound_queue import InboundQueue
from pynchy.channels.whatsapp.outbox import CARD, ChatCard, ChatCards, Outbox, Record, digest
from pynchy.channels.whatsapp.sending import CONFIRM_SECONDS, READY_SECONDS, Quote, Sender
from pynchy.channels.whatsapp.supervisor import MaybeSent, Supervisor
from pynchy.config import WHATSAPP, WhatsAppChannelSettings
from pynchy.errors import CannotShow, ChannelUnavailable, NotShown
from pynchy.model import Card, Ending, Question, RequestId, ShownCard
from pynchy.safe_folder import Folder

log = logging.getLogger(__name__)

# WhatsApp takes 65,536 characters, and folds a message after some thousand.
MAX_TEXT = 16_000
_SENT_AGAIN = "\n(Sent again: the first one may not have arrived.)"


def make_home(data: Path) -> Path:
    """Return the channel's own folder in the data folder, made for its owner alone."""
    Folder(data, WHATSAPP).make()
    return data / WHATSAPP


def store_of(table: WhatsAppChannelSettings, home: Path) -> Path:
    """Return where the session is kept."""
    return table.store or home / "session.db"


class WhatsAppChannel(Channel):
    """Shows cards in WhatsApp and takes replies from there."""

    name = WHATSAPP
    # A child that died is started again and the message repeated, all within one call; and cards
    # in one chat wait for one another. When WhatsApp is down, that is known much sooner.
    least_send_timeout = 10 * (CONFIRM_SECONDS + READY_SECONDS)

    def __init__(
        self, home: Path, store: Path, audience: WhatsAppGroups, pace_seconds: float
    ) -> None:
        self._home = home
        self._audience = audience
        self._queue = InboundQueue(home)
        self._outbox = Outbox(home)
        self._cards = ChatCards()
        order = {"chats": sorted(audience.chats), "self_chat": audience.self_chat}
        self._supervisor = Supervisor(home, store, order | {"purpose": "serve"}, self)
        self._sender = Sender(self._supervisor, self._outbox, pace_seconds)
        self._inbound: InboundProcessor | None = None

    async def open(self, handler: ReplyHandler) -> None:
        """See Channel. Nobody waits for WhatsApp: it is tried until it works; `problem` tells."""
        if self.has_jobs:
            return
        await asyncio.to_thread(self._queue.make)
        await asyncio.to_thread(self._queue.tidy)
        records = await asyncio.to_thread(self._outbox.load)
        await self._supervisor.load()
        for shown in handler.open_cards(self.name):
            self._take_up(shown)
        for record in records:
            self._cards.put_over(record)
        context = InboundContext(
            self._queue, self._cards, self._outbox, self._sender, self._audience, self._own_forms
        )
        self._inbound = InboundProcessor(self.name, handler, context)
        self.start_jobs(self._supervisor.run, self._inbound.run)

    async def close(self) -> None:
        """See Channel. What was said and not judged yet stays on the queue."""
        await self.stop_jobs()

    async def send_ask_user(
        self,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> str:
        """See Channel."""
        record = self._outbox.record(card, request_id, jid, self._address(jid))
        made = NumberedCard(card.short_id, request_id, card.group, questions, card.timestamp)
        self._cards.put(ChatCard(made, jid, record.address))

        def text(repeated: bool) -> str:  # noqa: FBT001 - what Sender passes
            return render_card(questions, replace(card, repeated=repeated), MAX_TEXT)

        try:
            sent = await self._sender.send(record, CARD, text, urgency=card.urgency)
        except ChannelUnavailable as exc:
            self._cards.give_up(record.key, may_be_there=isinstance(exc, MaybeSent))
            raise
        self._note_sent(record, sent)
        return sent

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        """See Channel."""
        return fits_whole(questions, card, MAX_TEXT)

    async def settle_card(
        self,
        jid: str,
        message_id: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        *,
        card: Card,
    ) -> None:
        """See Channel. Messages can be edited for some minutes only, so a new one says it."""
        if card.ending is None:
            log.warning("card.settle_impossible", extra={"id": request_id})
            return
        message_id = message_id or self._confirmed_late(jid, request_id, card)
        if not message_id:
            return
        self._take_up(ShownCard(jid, message_id, request_id, questions, card))
        key = (card.group, request_id)
        self._cards.end(key, card.ending, self.name)
        record = self._outbox.record(card, request_id, jid, self._address(jid))
        quote = Quote(message_id, self._own_jid(), _beginning(questions, card))
        sent = await self._tell_ending(record, questions, card, card.ending, quote)
        self._cards.add_message(key, sent)

    def problem(self) -> str | None:
        """See Channel."""
        return self._supervisor.problem() if self.has_jobs else None

    def backlog(self) -> str | None:
        """See Channel."""
        return self._sender.backlog()

    def message_queued(self, name: str) -> None:
        """See ChildListener."""
        if self._inbound is not None:
            self._inbound.hear(name)

    def child_ended(self) -> None:
        """See ChildListener."""
        if self._inbound is not None:
            self._inbound.look()

    async def _tell_ending(
        self,
        record: Record,
        questions: tuple[Question, ...],
        card: Card,
        ending: Ending,
        quote: Quote,
    ) -> str:
        told = render_settled(questions, card, ending, self.name, MAX_TEXT)
        part = f"ending {digest(told)[:16]}"
        return await self._sender.send(
            record, part, lambda repeated: told + (_SENT_AGAIN if repeated else ""), quote
        )

    def _take_up(self, shown: ShownCard) -> None:
        """Note a card that the reply handler knows, with what was sent about it."""
        card, address = NumberedCard.of(shown), normal(shown.jid) or self._own_jid()
        record = self._outbox.record(shown.card, card.request_id, shown.jid, address)
        self._cards.put(ChatCard(card, shown.jid, address))
        self._note_sent(record, shown.message_id)

    def _confirmed_late(self, jid: str, request_id: RequestId, card: Card) -> str:
        """Return the id of a card that WhatsApp confirmed after it counted as failed."""
        sent = self._outbox.record(card, request_id, jid, self._address(jid)).parts.get(CARD)
        return sent.message_id if sent is not None else ""

    def _note_sent(self, record: Record, message_id: str) -> None:
        """Note the card's message, and by WhatsApp's own clock when it was asked."""
        self._cards.add_message(record.key, message_id)
        sent = record.parts.get(CARD)
        if sent is not None and sent.at and (entry := self._cards.get(record.key)) is not None:
            # People's messages are stamped in whole seconds.
            at = datetime.fromtimestamp(math.floor(sent.at), UTC)
            entry.card = replace(entry.card, asked_at=at)

    def _address(self, jid: str) -> str:
        """Return where to send; the chat with oneself has no address in the settings."""
        address = normal(jid) if jid else self._own_jid()
        if not address:
            if problem := self._supervisor.problem():
                raise NotShown(problem)
            raise CannotShow(f"{jid or 'no chat'} is no address in WhatsApp")
        return address

    def _own_jid(self) -> str:
        account = self._supervisor.account
        return "" if account is None else account.jid

    def _own_forms(self) -> frozenset[str]:
        account = self._supervisor.account
        return frozenset() if account is None else account.forms


def _beginning(questions: tuple[Question, ...], card: Card) -> str:
    return f"#{card.short_id} {questions[0].text}"
