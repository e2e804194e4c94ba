"""From the queue to the reply handler, and from its refusals back to the chat.

A message leaves the queue when it was decided upon; after a crash it is judged again, and means
what it meant at first. People who may not answer, and what is no answer, hear nothing from us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import assert_never

from pynchy.channels import numbered
from pynchy.channels.base import ReplyHandler
from pynchy.channels.numbered import (
    Answers,
    Decline,
    Hint,
    NotForUs,
    NumberedCard,
    Reading,
    TooLate,
)
from pynchy.channels.text import FAILED
from pynchy.channels.whatsapp.addresses import all_normal, normal, phone
from pynchy.channels.whatsapp.inbound_queue import InboundMessage, InboundQueue, What
from pynchy.channels.whatsapp.outbox import ChatCard, ChatCards, Outbox, key_of
from pynchy.channels.whatsapp.sending import Quote, Sender
from pynchy.config import WHATSAPP, Settings
from pynchy.errors import AlreadyOver, InvalidReply, ReplyRejected
from pynchy.model import Ending, GroupName, PendingQuestion, Reply

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_MAX_ATTEMPTS = 6
_MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class WhatsAppGroups:
    """What the settings say; `people` are the entries of a group's list by how they compare."""

    chats: frozenset[str] = frozenset()
    self_chat: bool = False
    people: Mapping[GroupName, Mapping[str, str]] = field(default_factory=dict)

    def entry_of(self, group: GroupName, senders: Iterable[str]) -> str | None:
        """Return the entry of the group's list that means this person; None if none does."""
        listed = self.people.get(group, {})
        return next((listed[form] for form in senders if form in listed), None)

    def knows(self, said: InboundMessage) -> bool:
        """True if this person may answer for any group."""
        return any(self.entry_of(group, said.senders) is not None for group in self.people)


def read_groups(settings: Settings) -> WhatsAppGroups:
    """Return the audience of the groups that ask in WhatsApp."""
    groups = {
        GroupName(name): group
        for name, group in settings.groups.items()
        if WHATSAPP in group.channels
    }
    return WhatsAppGroups(
        all_normal(group.chat.get(WHATSAPP, "") for group in groups.values()),
        any(group.self_chat for group in groups.values()),
        {
            name: {
                form: entry
                for entry in group.allowed_users.get(WHATSAPP, ())
                if (form := normal(entry))
            }
            for name, group in groups.items()
        },
    )


@dataclass(frozen=True, slots=True)
class InboundContext:
    """The parts that judging needs; `own_forms` gives the addresses of the paired account."""

    queue: InboundQueue
    cards: ChatCards
    outbox: Outbox
    sender: Sender
    audience: WhatsAppGroups
    own_forms: Callable[[], frozenset[str]]


class InboundProcessor:
    """Judges one message after another; what is said back waits for nobody."""

    def __init__(self, name: str, handler: ReplyHandler, context: InboundContext) -> None:
        self._name = name
        self._handler = handler
        self._context = context
        # None is a wish to look at the whole queue.
        self._names: asyncio.Queue[str | None] = asyncio.Queue()
        self._attempts: dict[str, int] = {}
        # Judged, though the disk would not let them off the queue.
        self._weighed: set[str] = set()

    def hear(self, name: str) -> None:
        """Let a message on the queue be judged."""
        self._names.put_nowait(name)

    def look(self) -> None:
        """Let everything on the queue be judged: nobody may have told of it."""
        self._names.put_nowait(None)

    async def run(self) -> None:
        """Judge what lies on the queue, and then whatever comes, for ever."""
        self.look()
        async with asyncio.TaskGroup() as tasks:
            while True:
                name = await self._names.get()
                queue = self._context.queue
                for each in [name] if name else await asyncio.to_thread(queue.waiting):
                    await self._try_to_judge(each, tasks)

    async def _try_to_judge(self, name: str, tasks: asyncio.TaskGroup) -> None:
        try:
            await self._judge(name, tasks)
        except Exception:
            log.exception("whatsapp.message_failed")
            self._judge_later(name, tasks)

    async def _judge(self, name: str, tasks: asyncio.TaskGroup) -> None:
        queue = self._context.queue
        if name not in self._weighed:
            said = await asyncio.to_thread(queue.read, name)
            if said is not None and not said.whole:
                # The child will tell when it knows who it was.
                return
            if said is not None and not self._is_own(said):
                await self._context.sender.quiet(said.chats)
                await self._weigh(name, said, tasks)
            self._weighed.add(name)
        await asyncio.to_thread(queue.done, name)
        self._weighed.discard(name)
        self._attempts.pop(name, None)

    def _judge_later(self, name: str, tasks: asyncio.TaskGroup) -> None:
        """Try again in a while; a message that can never be judged waits for the next start."""
        attempts = self._attempts[name] = self._attempts.get(name, 0) + 1
        if attempts < _MAX_ATTEMPTS:
            loop = asyncio.get_running_loop()
            loop.call_later(_RETRY_SECONDS * attempts, self._names.put_nowait, name)
        elif attempts == _MAX_ATTEMPTS and name not in self._weighed:
            tasks.create_task(_guarded(self._tell_failed(name)))

    async def _tell_failed(self, name: str) -> None:
        said = await asyncio.to_thread(self._context.queue.read, name)
        if said is not None and self._context.audience.knows(said):
            await self._context.sender.say(said.chats[0], FAILED, _quote(said))

    def _is_own(self, said: InboundMessage) -> bool:
        return said.from_me and self._context.outbox.is_ours(said.message_id, said.text)

    async def _weigh(self, name: str, said: InboundMessage, tasks: asyncio.TaskGroup) -> None:
        said = self._about_its_author(said)
        entries = self._spoken_to(said)
        self._recognise(said, entries)
        reading = _read(said, [_as_first_read(entry.card, said) for entry in entries])
        entry = _entry_of(reading, entries)
        if isinstance(reading, Answers) and len(reading.parts) < len(reading.card.questions):
            await asyncio.to_thread(self._context.queue.complete, name, _taken(said, reading))
        if isinstance(reading, Hint):
            address = entry.address if entry else said.chats[0]
            tasks.create_task(_guarded(self._say(address, reading.text, entry, _quote(said))))
        elif entry is not None:
            told = await self._decide(said, reading, entry)
            if told:
                tasks.create_task(_guarded(self._say(entry.address, told, entry, _quote(said))))

    def _about_its_author(self, said: InboundMessage) -> InboundMessage:
        """Let nobody's message pass for a card: an id is its sender's choice."""
        own, server = self._context.own_forms(), said.quoted_by.rpartition("@")[2]
        # Who the account is by a number says nothing of an author by the other kind of address.
        known = [form for form in own if form.endswith(f"@{server}")]
        if not said.about or not known or said.quoted_by in known:
            return said
        return replace(said, about=f"{said.quoted_by} {said.about}")

    def _spoken_to(self, said: InboundMessage) -> list[ChatCard]:
        """Return the cards of the chat that this person may answer."""
        chats, own = frozenset(said.chats), self._context.own_forms()
        if not own.isdisjoint(chats):
            chats |= own
        audience = self._context.audience
        return [
            entry
            for entry in self._context.cards.in_chat(chats)
            if audience.entry_of(entry.card.group, said.senders) is not None
        ]

    def _recognise(self, said: InboundMessage, entries: list[ChatCard]) -> None:
        """Know a copy of a card whose id we never learned by the short id in what was quoted."""
        if not said.quoted or said.quoted_by not in {"", *self._context.own_forms()}:
            return
        if any(said.about in entry.card.message_ids for entry in entries):
            return
        named = [entry for entry in entries if f"#{entry.card.short_id}" in said.quoted]
        if len(named) == 1:
            self._context.cards.add_message(key_of(named[0].card), said.about)

    async def _decide(self, said: InboundMessage, reading: Reading, entry: ChatCard) -> str | None:
        """Pass the reply on. Return what the person is to be told, if anything."""
        sender = self._reply(said, entry)
        try:
            pending = await self._bring(reading, sender)
        except AlreadyOver as exc:
            if self._is_known(exc, said, sender, entry):
                return None
            return numbered.refusal(exc)
        except ReplyRejected as exc:
            if isinstance(reading, TooLate) and isinstance(exc, InvalidReply):
                return await self._decide_open(said, entry, exc)
            return numbered.refusal(exc)
        if pending is None or pending.ending is not None:
            return None
        self._context.cards.note_parts(pending)
        return numbered.noted(pending)

    async def _decide_open(
        self, said: InboundMessage, entry: ChatCard, exc: InvalidReply
    ) -> str | None:
        """Take a reply to a card that counts as failed, though its question is open elsewhere."""
        card = replace(entry.card, over=False)
        reading = _read(said, [card] if card.questions else [])
        if isinstance(reading, Hint):
            return reading.text
        if isinstance(reading, NotForUs | TooLate):
            return numbered.refusal(exc)
        return await self._decide(said, reading, entry)

    async def _bring(self, reading: Reading, sender: Reply) -> PendingQuestion | None:
        match reading:
            case Answers():
                pending = None
                for reply in reading.replies(sender):
                    pending = await self._handler.answer(reply)
                return pending
            case Decline():
                return await self._handler.decline(
                    numbered.aim(reading.card, sender), reading.reason
                )
            case TooLate():
                return await self._handler.answer(numbered.aim(reading.card, sender))
            case Hint() | NotForUs():
                return None
            case _:
                assert_never(reading)

    def _is_known(
        self, exc: AlreadyOver, said: InboundMessage, sender: Reply, entry: ChatCard
    ) -> bool:
        """True if the person need not be told: this was the answer, or they know already."""
        own = exc.ending.by == sender.by and exc.ending.channel == self._name
        # Whoever says something else later must not believe that it counts.
        is_answer = own and (
            said.at <= exc.ending.at.timestamp() or _says_the_same(said, entry.card, exc.ending)
        )
        known = is_answer or sender.by in entry.told
        if not is_answer:
            entry.told.add(sender.by)
        return known

    def _reply(self, said: InboundMessage, entry: ChatCard) -> Reply:
        listed = self._context.audience.entry_of(entry.card.group, said.senders) or ""
        return Reply(
            target=entry.card.request_id,
            by=_called(said),
            channel=self._name,
            user_id=listed,
            chat=entry.jid,
            group=entry.card.group,
        )

    async def _say(self, address: str, text: str, entry: ChatCard | None, quote: Quote) -> None:
        sent = await self._context.sender.say(address, text, quote)
        if entry is not None:
            self._context.cards.add_message(key_of(entry.card), sent)


async def _guarded(work: Coroutine[None, None, None]) -> None:
    """Let nothing that is only said stop the judging."""
    try:
        await work
    except Exception:
        log.exception("whatsapp.say_failed")


def _taken(said: InboundMessage, reading: Answers) -> InboundMessage:
    """Return the message with what it was read as, for whoever has to judge it again."""
    numbers = tuple(part.number for part in reading.parts)
    return replace(said, taken_for=reading.card.request_id, taken_as=numbers)


def _says_the_same(said: InboundMessage, card: NumberedCard, ending: Ending) -> bool:
    """True if the message would answer as the question was answered; without questions, False."""
    if not card.questions:
        return False
    reading = _read(said, [replace(card, over=False, answered=frozenset())])
    return isinstance(reading, Answers) and all(
        part.answer == answer
        for part in reading.parts
        for answer in ending.answers[part.number - 1 : part.number]
    )


def _as_first_read(card: NumberedCard, said: InboundMessage) -> NumberedCard:
    """Return the card as it stood when the message was first read."""
    if card.request_id != said.taken_for:
        return card
    return replace(card, answered=card.answered.difference(said.taken_as))


def _read(said: InboundMessage, cards: Sequence[NumberedCard]) -> Reading:
    at = datetime.fromtimestamp(said.at, UTC)
    if not cards:
        return NotForUs()
    if said.what is What.REACTION:
        return numbered.read_reaction(numbered.Reacted(said.text, said.about, at), cards)
    heard = numbered.ChatMessage(said.text, at, not said.is_group, said.about or None)
    return numbered.read(heard, cards)


def _entry_of(reading: Reading, entries: list[ChatCard]) -> ChatCard | None:
    if isinstance(reading, NotForUs) or reading.card is None:
        return None
    key = key_of(reading.card)
    return next((entry for entry in entries if key_of(entry.card) == key), None)


def _called(said: InboundMessage) -> str:
    """Return what to call the person: anybody can choose a name, so the number stands beside it."""
    number = phone(next((form for form in said.senders if form.endswith("net")), said.senders[0]))
    name = " ".join(said.name.split())[:_MAX_NAME]
    return f"{name} ({number})" if name else number


def _quote(said: InboundMessage) -> Quote:
    return Quote(said.message_id, said.senders[0], said.text)
