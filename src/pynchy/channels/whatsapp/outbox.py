"""What was sent, written down before it is sent, and which cards stand in which chat."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pynchy.channels.numbered import NumberedCard
from pynchy.model import Card, Ending, GroupName, PendingQuestion, RequestId, ShortId
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)

CARD = "card"
_CAP = 1_000_000
_MAX_RECORDS = 1_000
# Each record has some, and what was said beside them.
_MAX_MARKS = 10 * _MAX_RECORDS

_MAX_OVER = 500

Key = tuple[GroupName, RequestId]


@dataclass(slots=True)
class Attempt:
    """One message: how often it was begun, and its id and moment once WhatsApp has told them."""

    begun: int = 0
    message_id: str = ""
    at: float = 0.0
    digests: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Record:
    """All that was sent about one question; `jid` is the chat as the settings write it."""

    group: GroupName
    request_id: RequestId
    short_id: ShortId
    jid: str
    address: str
    parts: dict[str, Attempt] = field(default_factory=dict)

    @property
    def key(self) -> tuple[GroupName, RequestId]:
        """What tells the question from all others."""
        return self.group, self.request_id


class Outbox:
    """The records, in a folder of their own, the newest ones in memory too."""

    def __init__(self, home: Path) -> None:
        self._folder = Folder(home, "outbox")
        self._records: OrderedDict[tuple[GroupName, RequestId], Record] = OrderedDict()
        self._own: OrderedDict[str, None] = OrderedDict()

    def load(self) -> list[Record]:
        """Read what earlier hosts sent, and forget what is too old to matter."""
        self._folder.make()
        self._folder.clear_temporary()
        names = sorted(self._folder.names(), key=lambda name: self._folder.stat(name).st_mtime)
        for name in names[:-_MAX_RECORDS]:
            self._folder.remove(name)
        for name in names[-_MAX_RECORDS:]:
            if (record := self._read(name)) is not None:
                self._take(record)
        return list(self._records.values())

    def record(self, card: Card, request_id: RequestId, jid: str, address: str) -> Record:
        """Return what was sent about the question to that chat so far."""
        known = self._records.get((card.group, request_id))
        if known is not None and known.jid == jid:
            return known
        return Record(card.group, request_id, card.short_id, jid, address)

    def begin(self, record: Record, part: str, text: str) -> None:
        """Write down that the message is about to be sent."""
        attempt = record.parts.setdefault(part, Attempt())
        attempt.begun += 1
        if (mark := digest(text)) not in attempt.digests:
            attempt.digests.append(mark)
        self._keep(record)

    def withdraw(self, record: Record, part: str) -> None:
        """Write down that the message was not sent after all."""
        attempt = record.parts[part]
        attempt.begun -= 1
        self._keep(record)

    def sent(self, record: Record, part: str, message_id: str, at: float) -> None:
        """Write down that WhatsApp has the message."""
        attempt = record.parts[part]
        attempt.message_id, attempt.at = message_id, at
        self._keep(record)

    def note(self, text: str, message_id: str = "") -> None:
        """Remember for a while that a message which is in no record is ours."""
        self._mark(digest(text), message_id)

    def is_ours(self, message_id: str, text: str) -> bool:
        """True if the bridge has sent this itself, though its id may not be known yet."""
        return message_id in self._own or digest(text) in self._own

    def _take(self, record: Record) -> None:
        self._records[record.key] = record
        self._records.move_to_end(record.key)
        for attempt in record.parts.values():
            self._mark(attempt.message_id, *attempt.digests)
        while len(self._records) > _MAX_RECORDS:
            _, old = self._records.popitem(last=False)
            self._folder.remove(_name(old))

    def _mark(self, *marks: str) -> None:
        for mark in filter(None, marks):
            self._own[mark] = None
            self._own.move_to_end(mark)
        while len(self._own) > _MAX_MARKS:
            self._own.popitem(last=False)

    def _keep(self, record: Record) -> None:
        self._take(record)
        self._folder.replace(_name(record), json.dumps(asdict(record)).encode())

    def _read(self, name: str) -> Record | None:
        try:
            return _record(json.loads(self._folder.read(name, _CAP)))
        except (OSError, UnsafeFile, ValueError, KeyError, TypeError):
            log.warning("whatsapp.outbox_damaged", extra={"file": name})
            return None


def digest(text: str) -> str:
    """Return what the text is known by."""
    return "=" + hashlib.sha256(text.strip().encode(errors="replace")).hexdigest()


def _name(record: Record) -> str:
    return hashlib.sha256("\0".join(record.key).encode()).hexdigest()[:40] + ".json"


def _record(body: dict[str, Any]) -> Record:
    parts = {str(part): _attempt(attempt) for part, attempt in body["parts"].items()}
    return Record(
        GroupName(str(body["group"])),
        RequestId(str(body["request_id"])),
        ShortId(str(body["short_id"])),
        str(body["jid"]),
        str(body["address"]),
        parts,
    )


def _attempt(body: dict[str, Any]) -> Attempt:
    digests = [str(mark) for mark in body["digests"]]
    return Attempt(int(body["begun"]), str(body["message_id"]), float(body["at"]), digests)


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
