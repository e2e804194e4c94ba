"""Which cards stand in which chat: the open ones, and for a while those that are over."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pynchy.channels.numbered import NumberedCard
from pynchy.channels.whatsapp.outbox import Record
from pynchy.model import Ending, GroupName, PendingQuestion, RequestId

_MAX_OVER = 500

Key = tuple[GroupName, RequestId]


@dataclass(slots=True)
class ChatCard:
    """A card: `jid` is the chat as the group's settings write it, `address` as it compares.

    `told` are those who came too late and know.
    """

    card: NumberedCard
    jid: str
    address: str
    told: set[str] = field(default_factory=set)


class ChatCards:
    """Every card that may still be spoken of."""

    def __init__(self) -> None:
        self._open: dict[Key, ChatCard] = {}
        self._over: OrderedDict[Key, ChatCard] = OrderedDict()

    def put(self, entry: ChatCard) -> None:
        """Note a card that is open."""
        self._over.pop(key_of(entry.card), None)
        known = self._open.get(key_of(entry.card))
        if known is not None:
            ids = known.card.message_ids | entry.card.message_ids
            entry.card = replace(entry.card, message_ids=ids)
        self._open[key_of(entry.card)] = entry

    def put_over(self, record: Record) -> None:
        """Note a card of an earlier host whose question is over by now."""
        if (record.group, record.request_id) in self._open:
            return
        ids = frozenset(filter(None, (part.message_id for part in record.parts.values())))
        at = min((part.at for part in record.parts.values()), default=0.0)
        card = NumberedCard(
            record.short_id, record.request_id, record.group, (), _moment(at), ids, over=True
        )
        self._keep_over(ChatCard(card, record.jid, record.address))

    def end(self, key: Key, ending: Ending, here: str) -> None:
        """Note that the question is over."""
        entry = self._open.pop(key, None)
        if entry is not None:
            elsewhere = None if ending.channel == here else ending.at
            entry.card = replace(entry.card, over=True, ended_elsewhere_at=elsewhere)
            self._keep_over(entry)

    def give_up(self, key: Key, *, may_be_there: bool) -> None:
        """Note that a card counts as failed; if somebody may see it, replies hear how it stands."""
        entry = self._open.pop(key, None)
        if entry is not None and may_be_there:
            entry.card = replace(entry.card, over=True)
            self._keep_over(entry)

    def get(self, key: Key) -> ChatCard | None:
        """Return the card of the question, open or over."""
        return self._open.get(key) or self._over.get(key)

    def in_chat(self, chats: Iterable[str]) -> list[ChatCard]:
        """Return the cards of the chat, whatever form it comes in; the oldest first."""
        forms = frozenset(chats)
        entries = (*self._over.values(), *self._open.values())
        return [entry for entry in entries if entry.address in forms]

    def add_message(self, key: Key, message_id: str) -> None:
        """Note that another message stands for the card, or is about it."""
        if message_id and (entry := self.get(key)) is not None:
            ids = entry.card.message_ids | {message_id}
            entry.card = replace(entry.card, message_ids=ids)

    def note_parts(self, pending: PendingQuestion) -> None:
        """Note which of the questions are answered by now."""
        if (entry := self._open.get(pending.key)) is not None:
            entry.card = replace(entry.card, answered=pending.answered)

    def _keep_over(self, entry: ChatCard) -> None:
        self._over[key_of(entry.card)] = entry
        while len(self._over) > _MAX_OVER:
            self._over.popitem(last=False)


def key_of(card: NumberedCard) -> Key:
    """Return what tells the card's question from all others."""
    return card.group, card.request_id


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
