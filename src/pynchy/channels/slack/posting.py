"""Post a card: at least once, and never twice without saying so.

Slack has no key against doubles. Each message carries a mark instead: where a reply was lost, or
an earlier host may have posted, the conversation is searched first.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from pynchy.channels.slack.card_index import CardIndex, PostedCard
from pynchy.channels.slack.card_metadata import DETAILS, TaggedMessage, make_metadata
from pynchy.channels.slack.ids import CardLocation, CardMessage, read_chat
from pynchy.channels.slack.orphaned_cards import OrphanedCards
from pynchy.channels.slack.render import SlackMessage, render
from pynchy.channels.slack.search import CardSearch, Posting
from pynchy.channels.slack.web import Refused, ReplyLost, Web
from pynchy.errors import ChannelUnavailable
from pynchy.model import SessionId

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Posted:
    """A message in Slack; `copied` if there may be a second one."""

    ts: str
    copied: bool = False


class Poster:
    """Posts cards, and remembers them in the book."""

    def __init__(
        self,
        web: Web,
        index: CardIndex,
        search: CardSearch,
        orphans: OrphanedCards,
        *,
        thread_per_session: bool,
    ) -> None:
        self._web = web
        self._index = index
        self._search = search
        self._orphans = orphans
        self._thread_per_session = thread_per_session
        self._direct: dict[str, str] = {}
        self._limiters: WeakValueDictionary[tuple[str, SessionId], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def post(self, posting: Posting) -> CardLocation:
        """Return where the card is. Raise ChannelUnavailable if it could not be shown."""
        channel, thread = await self._chat(posting)
        async with self._orphans.kept(posting):
            return await self._post_where(posting, channel, thread)

    async def _post_where(self, posting: Posting, channel: str, thread: str | None) -> CardLocation:
        session = posting.card.session_id
        if not (self._thread_per_session and thread is None and session):
            return await self._post(posting, CardLocation(channel, (), thread))
        # The first card of a session must be there before the second can be put under it.
        turn = self._limiters.setdefault((posting.jid, session), asyncio.Lock())
        async with turn:
            return await self._post_in_session(posting, channel)

    async def copies(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        """Return the messages of the card that are not in the place."""
        known = {part.ts for part in location.parts}
        found = await self._search.all_of(posting, location.channel, location.thread)
        return [tagged for tagged in found if tagged.is_card and tagged.ts not in known]

    async def _post_in_session(self, posting: Posting, channel: str) -> CardLocation:
        jid, session = posting.jid, posting.card.session_id
        root = self._index.root_of(jid, session) or await self._find_root(posting, channel)
        try:
            return await self._post(posting, CardLocation(channel, (), root), broadcast=True)
        except Refused as exc:
            if root is None or exc.error != "thread_not_found":
                raise
        # Somebody has removed the first card.
        self._index.set_root(jid, session, None)
        return await self._post(posting, CardLocation(channel, ()))

    async def _find_root(self, posting: Posting, channel: str) -> str | None:
        try:
            root = await self._search.root_of_session(posting, channel)
        except ChannelUnavailable as exc:
            log.warning("a session's thread could not be looked for", extra={"why": str(exc)})
            return None
        self._index.set_root(posting.jid, posting.card.session_id, root)
        return root

    async def _post(
        self, posting: Posting, location: CardLocation, *, broadcast: bool = False
    ) -> CardLocation:
        there = await self._there(posting, location) if posting.card.repeated else []
        if (first := next((tagged for tagged in there if tagged.is_card), None)) is not None:
            location = replace(location, thread=first.thread)
        rendering = render(posting.request_id, posting.questions, posting.card)
        try:
            for number, message in enumerate(rendering.messages):
                posted = _first(there, number) or await self._post_one(
                    posting,
                    location,
                    number,
                    message,
                    broadcast=broadcast and bool(location.thread),
                )
                parts = (*location.parts, CardMessage(posted.ts, message.question))
                location = replace(location, parts=parts, copied=location.copied or posted.copied)
                self._index.put(_shown(posting, location))
            if rendering.details:
                await self._post_details(posting, location, rendering.details)
        except ChannelUnavailable as exc:
            self._give_up(posting, location, in_doubt=isinstance(exc, ReplyLost))
            raise
        return location

    async def _post_details(
        self, posting: Posting, location: CardLocation, details: tuple[SlackMessage, ...]
    ) -> None:
        """Post what belongs into the thread; what fails there does not undo the card."""
        inside = replace(location, thread=location.root)
        there = await self._there(posting, inside) if posting.card.repeated else []
        try:
            for number, message in enumerate(details, start=DETAILS):
                if _first(there, number) is None:
                    await self._post_one(posting, inside, number, message)
        except ChannelUnavailable as exc:
            log.warning("details of a card could not be posted", extra={"why": str(exc)})

    async def _post_one(
        self,
        posting: Posting,
        location: CardLocation,
        number: int,
        message: SlackMessage,
        *,
        broadcast: bool = False,
    ) -> _Posted:
        mark = make_metadata(posting.jid, posting.request_id, posting.card, number)
        more = {"metadata": mark.metadata(), **({"reply_broadcast": True} if broadcast else {})}
        # What says of itself that it may be a repeat may be one.
        copied = posting.card.repeated
        try:
            _, ts = await self._web.post(location.channel, location.thread, message, **more)
        except ReplyLost:
            # Where the search gets no reply either, Slack is down, and that is that.
            there = await self._there(posting, location)
            if (found := _first(there, number)) is not None:
                return found
            again = _as_repeat(posting, number, message)
            _, ts = await self._web.post(location.channel, location.thread, again, **more)
            copied = True
        if location.thread is None and not copied:
            self._index.mark_whole(location.channel, ts)
        return _Posted(ts, copied)

    async def _there(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        """Return what is there of the card already; nothing if Slack will not tell."""
        try:
            return await self._search.all_of(posting, location.channel, location.thread)
        except Refused as exc:
            log.warning("earlier cards could not be searched", extra={"why": str(exc)})
            return []

    async def _chat(self, posting: Posting) -> tuple[str, str | None]:
        channel, thread = read_chat(posting.jid)
        if not channel:
            raise ChannelUnavailable(
                f"group {posting.card.group} has no Slack address: set its chat.slack"
            )
        if channel[0] in "UW":
            channel = self._direct.get(channel) or await self._open_direct(channel)
        return channel, thread

    async def _open_direct(self, user: str) -> str:
        opened = await self._web.call(self._web.client.conversations_open, users=user)
        self._direct[user] = str(opened["channel"]["id"])
        return self._direct[user]

    def _give_up(self, posting: Posting, location: CardLocation, *, in_doubt: bool) -> None:
        """Let it be taken back what was posted of a card that could not be posted whole."""
        posted = _shown(posting, location)
        if location.parts:
            self._index.end(location)
        if self._index.root_of(posting.jid, posting.card.session_id) in {
            p.ts for p in location.parts
        }:
            self._index.set_root(posting.jid, posting.card.session_id, None)
        if location.parts or in_doubt:
            self._orphans.add(posting, posted)


def _first(there: list[TaggedMessage], number: int) -> _Posted | None:
    found = [tagged.ts for tagged in there if tagged.mark.part == number]
    return _Posted(found[0], copied=len(found) > 1) if found else None


def _as_repeat(posting: Posting, number: int, message: SlackMessage) -> SlackMessage:
    if number >= DETAILS:
        return message
    repeated = replace(posting.card, repeated=True)
    return render(posting.request_id, posting.questions, repeated).messages[number]


def _shown(posting: Posting, location: CardLocation) -> PostedCard:
    return PostedCard.of(posting.jid, posting.request_id, posting.questions, posting.card, location)
