"""Which message shows which question, and which questions a thread has held.

Each message of a card says in its metadata, unseen, what it belongs to.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self

from pynchy.channels.slack.blocks import CardLocation, CardMessage
from pynchy.channels.slack.payloads import Payload, dict_in, is_ts
from pynchy.model import Card, GroupName, Question, RequestId, SessionId, ShortId

METADATA_EVENT = "pynchy_question"
# The numbers of messages in the thread, which show nothing that can be answered, begin here.
DETAILS = 1_000
_NAMES = ("request_id", "group", "chat", "short_id", "session")

_MAX_OVER = 1_000
_MAX_THREADS = 5_000
_POSTING_SECONDS = 30.0

_Key = tuple[str, str]


class SessionChat(NamedTuple):
    """A session in a chat. Agents choose the ids, so a session is one group's and no other's."""

    jid: str
    group: GroupName
    session_id: SessionId


@dataclass(slots=True)
class Identity:
    """Who we are in Slack; nothing is known before the token was checked."""

    team_id: str = ""
    bot_user_id: str = ""
    bot_id: str = ""

    @property
    def is_known(self) -> bool:
        """True once the token was checked."""
        return bool(self.team_id and self.bot_user_id)

    def wrote(self, message: Payload) -> bool:
        """True for a message of our own; other apps could put the same marks on theirs."""
        by_user = bool(self.bot_user_id) and message.get("user") == self.bot_user_id
        return by_user or (bool(self.bot_id) and message.get("bot_id") == self.bot_id)


@dataclass(frozen=True, slots=True)
class CardMetadata:
    """Which card a message belongs to, and as which part; `session` is a digest of its id."""

    request_id: RequestId
    group: GroupName
    chat: str
    short_id: ShortId
    session: str
    part: int

    def metadata(self) -> dict[str, Any]:
        """Return the mark as it is posted."""
        return {"event_type": METADATA_EVENT, "event_payload": asdict(self)}


@dataclass(frozen=True, slots=True)
class TaggedMessage:
    """A message of ours; `thread` is the one that it was posted into."""

    mark: CardMetadata
    ts: str
    thread: str | None = None

    @property
    def is_card(self) -> bool:
        """True if there is, or was, something to click in it."""
        return self.mark.part < DETAILS


def make_metadata(jid: str, request_id: RequestId, card: Card, part: int) -> CardMetadata:
    """Return the mark of a card's message."""
    session = digest(card.session_id)
    return CardMetadata(request_id, card.group, jid, card.short_id, session, part)


def digest(session_id: SessionId) -> str:
    """Return what tells the session from others; Slack need not know the id itself."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:16] if session_id else ""


def read_tagged(message: Payload, identity: Identity) -> TaggedMessage | None:
    """Return the message with its mark; None if it has none, or is not ours."""
    metadata = dict_in(message, "metadata")
    payload = dict_in(metadata, "event_payload")
    ts, thread, part = message.get("ts"), message.get("thread_ts"), payload.get("part")
    said: dict[str, Any] = {name: payload.get(name) for name in _NAMES}
    if metadata.get("event_type") != METADATA_EVENT or not identity.wrote(message):
        return None
    if not (
        is_ts(ts) and isinstance(part, int) and all(isinstance(text, str) for text in said.values())
    ):
        return None
    mark = CardMetadata(**said, part=part)
    return TaggedMessage(mark, str(ts), str(thread) if is_ts(thread) and thread != ts else None)


@dataclass(frozen=True, slots=True)
class PostedCard:
    """A card as it stands in Slack; `jid` is the chat that it was asked in.

    Of a card of an earlier host that was found in Slack the questions are not known.
    """

    jid: str
    request_id: RequestId
    short_id: ShortId
    group: GroupName
    questions: tuple[Question, ...]
    location: CardLocation
    session_id: SessionId
    told: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def of(
        cls,
        jid: str,
        request_id: RequestId,
        questions: tuple[Question, ...],
        card: Card,
        location: CardLocation,
    ) -> Self:
        """Return the card at its place."""
        return cls(jid, request_id, card.short_id, card.group, questions, location, card.session_id)

    @classmethod
    def found(cls, channel: str, tagged: TaggedMessage) -> Self:
        """Return a card of which only a message is known."""
        mark = tagged.mark
        location = CardLocation(channel, (CardMessage(tagged.ts),), tagged.thread)
        return cls(
            mark.chat, mark.request_id, mark.short_id, mark.group, (), location, SessionId("")
        )

    @property
    def session(self) -> SessionChat:
        """Whose thread it belongs into."""
        return SessionChat(self.jid, self.group, self.session_id)

    @property
    def since(self) -> float:
        """When its first message was posted."""
        return float(self.location.parts[0].ts) if self.location.parts else 0.0

    def part(self, ts: str) -> CardMessage | None:
        """Return the message of the card with that timestamp."""
        return next((part for part in self.location.parts if part.ts == ts), None)


class CardIndex:
    """The cards of this process."""

    def __init__(self) -> None:
        self._by_message: dict[_Key, PostedCard] = {}
        self._by_thread: dict[_Key, dict[_Key, PostedCard]] = {}
        self._open: dict[_Key, PostedCard] = {}
        self._over: OrderedDict[_Key, PostedCard] = OrderedDict()
        self._copies: dict[_Key, set[str]] = {}
        self._adrift: dict[tuple[GroupName, RequestId], PostedCard] = {}
        self._read: OrderedDict[_Key, None] = OrderedDict()
        self._roots: dict[SessionChat, str] = {}
        self._posting: dict[RequestId, list[asyncio.Event]] = {}

    def put(self, posted: PostedCard) -> None:
        """Keep an open card; one with the same first message is replaced."""
        key = _key(posted)
        known = self._by_message.get(key)
        if known is not None and known.request_id == posted.request_id:
            posted = replace(posted, told=known.told)
        self._open[key] = posted
        self._index(posted)
        if posted.session_id:
            self._roots.setdefault(posted.session, posted.location.root)
            while len(self._roots) > _MAX_OVER:
                del self._roots[next(iter(self._roots))]

    def end(self, location: CardLocation) -> None:
        """Move a card to those that are over; the oldest of them are forgotten."""
        key = (location.channel, location.parts[0].ts)
        posted = self._open.pop(key, None)
        if posted is not None:
            self.put_over(posted)

    def put_over(self, posted: PostedCard) -> None:
        """Keep a card that is over, or of which nothing more is known."""
        self._over[_key(posted)] = posted
        self._index(posted)
        while len(self._over) > _MAX_OVER:
            self._forget(*self._over.popitem(last=False))

    def add_copy(self, posted: PostedCard, ts: str) -> None:
        """Let a second message stand for the card."""
        self._copies.setdefault(_key(posted), set()).add(ts)
        self._index(posted)

    def find(self, channel: str, ts: str) -> PostedCard | None:
        """Return the card with that message, open or over."""
        return self._by_message.get((channel, ts))

    def is_open(self, posted: PostedCard) -> bool:
        """True until the card has been settled."""
        return bool(posted.location.parts) and _key(posted) in self._open

    def opened(self) -> list[PostedCard]:
        """Return the open cards, oldest first."""
        return list(self._open.values())

    def asking(self, request_id: RequestId, group: GroupName | None = None) -> list[PostedCard]:
        """Return the cards that ask it, of that group or of any."""
        return [
            posted
            for posted in (*self._open.values(), *self._adrift.values())
            if posted.request_id == request_id and group in {None, posted.group}
        ]

    def set_adrift(self, posted: PostedCard) -> None:
        """Remember a card that counts as not shown but may be in Slack all the same."""
        self._adrift[posted.group, posted.request_id] = posted

    def pick_up(self, posted: PostedCard) -> None:
        """Forget a card that was adrift."""
        self._adrift.pop((posted.group, posted.request_id), None)

    def in_thread(self, channel: str, thread: str) -> list[PostedCard]:
        """Return the cards that the thread has held, open and over, in their order."""
        found = self._by_thread.get((channel, thread), {})
        return sorted(found.values(), key=lambda posted: posted.since)

    def is_whole(self, channel: str, thread: str) -> bool:
        """True if the index has every card of the thread."""
        return (channel, thread) in self._read

    def mark_whole(self, channel: str, thread: str) -> None:
        """Note that every card of the thread is in the index."""
        self._read[channel, thread] = None
        while len(self._read) > _MAX_THREADS:
            self._read.popitem(last=False)

    def root_of(self, session: SessionChat) -> str | None:
        """Return the thread of the session in that chat."""
        return self._roots.get(session)

    def set_root(self, session: SessionChat, root: str | None) -> None:
        """Let the session have that thread, or none."""
        self._roots.pop(session, None)
        if root is not None:
            self._roots[session] = root

    @contextmanager
    def posting(self, request_id: RequestId) -> Iterator[None]:
        """Let a click wait that overtakes the reply to our own posting."""
        done = asyncio.Event()
        self._posting.setdefault(request_id, []).append(done)
        try:
            yield
        finally:
            done.set()
            self._posting[request_id].remove(done)
            if not self._posting[request_id]:
                del self._posting[request_id]

    async def posted(self, request_id: RequestId) -> None:
        """Return when no card of the request is being posted, or after a while."""
        for event in list(self._posting.get(request_id, ())):
            try:
                async with asyncio.timeout(_POSTING_SECONDS):
                    await event.wait()
            except TimeoutError:
                return

    def _index(self, posted: PostedCard) -> None:
        channel, key = posted.location.channel, _key(posted)
        for ts in self._messages(posted):
            self._by_message[channel, ts] = posted
        for thread in {posted.location.root, *self._messages(posted)}:
            self._by_thread.setdefault((channel, thread), {})[key] = posted

    def _forget(self, key: _Key, posted: PostedCard) -> None:
        if key in self._open:
            return
        channel = posted.location.channel
        for thread in {posted.location.root, *self._messages(posted)}:
            self._by_message.pop((channel, thread), None)
            self._read.pop((channel, thread), None)
            held = self._by_thread.get((channel, thread), {})
            held.pop(key, None)
            if not held:
                self._by_thread.pop((channel, thread), None)
        self._copies.pop(key, None)

    def _messages(self, posted: PostedCard) -> set[str]:
        return {part.ts for part in posted.location.parts} | self._copies.get(_key(posted), set())


def _key(posted: PostedCard) -> _Key:
    return (posted.location.channel, posted.location.parts[0].ts)
