"""Post a card: at least once, and never twice without saying so.

Slack has no key against doubles. Each message carries a mark instead: where a reply was lost, or
an earlier host may have posted, the conversation is searched first.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from pynchy.channels.slack.book import Book, Shown
from pynchy.channels.slack.ids import Part, Place, read_chat
from pynchy.channels.slack.leftovers import Leftovers
from pynchy.channels.slack.marks import DETAILS, Marked, make_mark
from pynchy.channels.slack.render import Message, render
from pynchy.channels.slack.search import Posting, Search
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
        book: Book,
        search: Search,
        leftovers: Leftovers,
        *,
        thread_per_session: bool,
    ) -> None:
        self._web = web
        self._book = book
        self._search = search
        self._leftovers = leftovers
        self._thread_per_session = thread_per_session
        self._direct: dict[str, str] = {}
        self._turns: WeakValueDictionary[tuple[str, SessionId], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def post(self, posting: Posting) -> Place:
        """Return where the card is. Raise ChannelUnavailable if it could not be shown."""
        channel, thread = await self._chat(posting)
        async with self._leftovers.kept(posting):
            return await self._post_where(posting, channel, thread)

    async def _post_where(self, posting: Posting, channel: str, thread: str | None) -> Place:
        session = posting.card.session_id
        if not (self._thread_per_session and thread is None and session):
            return await self._post(posting, Place(channel, (), thread))
        # The first card of a session must be there before the second can be put under it.
        turn = self._turns.setdefault((posting.jid, session), asyncio.Lock())
        async with turn:
            return await self._post_in_session(posting, channel)

    async def copies(self, posting: Posting, place: Place) -> list[Marked]:
        """Return the messages of the card that are not in the place."""
        known = {part.ts for part in place.parts}
        found = await self._search.all_of(posting, place.channel, place.thread)
        return [marked for marked in found if marked.is_card and marked.ts not in known]

    async def _post_in_session(self, posting: Posting, channel: str) -> Place:
        jid, session = posting.jid, posting.card.session_id
        root = self._book.root_of(jid, session) or await self._find_root(posting, channel)
        try:
            return await self._post(posting, Place(channel, (), root), broadcast=True)
        except Refused as exc:
            if root is None or exc.error != "thread_not_found":
                raise
        # Somebody has removed the first card.
        self._book.set_root(jid, session, None)
        return await self._post(posting, Place(channel, ()))

    async def _find_root(self, posting: Posting, channel: str) -> str | None:
        try:
            root = await self._search.root_of_session(posting, channel)
        except ChannelUnavailable as exc:
            log.warning("a session's thread could not be looked for", extra={"why": str(exc)})
            return None
        self._book.set_root(posting.jid, posting.card.session_id, root)
        return root

    async def _post(self, posting: Posting, place: Place, *, broadcast: bool = False) -> Place:
        there = await self._there(posting, place) if posting.card.repeated else []
        if (first := next((marked for marked in there if marked.is_card), None)) is not None:
            place = replace(place, thread=first.thread)
        rendering = render(posting.request_id, posting.questions, posting.card)
        try:
            for number, message in enumerate(rendering.messages):
                posted = _first(there, number) or await self._post_one(
                    posting, place, number, message, broadcast=broadcast and bool(place.thread)
                )
                parts = (*place.parts, Part(posted.ts, message.question))
                place = replace(place, parts=parts, copied=place.copied or posted.copied)
                self._book.put(_shown(posting, place))
            if rendering.details:
                await self._post_details(posting, place, rendering.details)
        except ChannelUnavailable as exc:
            self._give_up(posting, place, in_doubt=isinstance(exc, ReplyLost))
            raise
        return place

    async def _post_details(
        self, posting: Posting, place: Place, details: tuple[Message, ...]
    ) -> None:
        """Post what belongs into the thread; what fails there does not undo the card."""
        inside = replace(place, thread=place.root)
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
        place: Place,
        number: int,
        message: Message,
        *,
        broadcast: bool = False,
    ) -> _Posted:
        mark = make_mark(posting.jid, posting.request_id, posting.card, number)
        more = {"metadata": mark.metadata(), **({"reply_broadcast": True} if broadcast else {})}
        # What says of itself that it may be a repeat may be one.
        copied = posting.card.repeated
        try:
            _, ts = await self._web.post(place.channel, place.thread, message, **more)
        except ReplyLost:
            # Where the search gets no reply either, Slack is down, and that is that.
            there = await self._there(posting, place)
            if (found := _first(there, number)) is not None:
                return found
            again = _as_repeat(posting, number, message)
            _, ts = await self._web.post(place.channel, place.thread, again, **more)
            copied = True
        if place.thread is None and not copied:
            self._book.mark_whole(place.channel, ts)
        return _Posted(ts, copied)

    async def _there(self, posting: Posting, place: Place) -> list[Marked]:
        """Return what is there of the card already; nothing if Slack will not tell."""
        try:
            return await self._search.all_of(posting, place.channel, place.thread)
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

    def _give_up(self, posting: Posting, place: Place, *, in_doubt: bool) -> None:
        """Let it be taken back what was posted of a card that could not be posted whole."""
        shown = _shown(posting, place)
        if place.parts:
            self._book.end(place)
        if self._book.root_of(posting.jid, posting.card.session_id) in {p.ts for p in place.parts}:
            self._book.set_root(posting.jid, posting.card.session_id, None)
        if place.parts or in_doubt:
            self._leftovers.add(posting, shown)


def _first(there: list[Marked], number: int) -> _Posted | None:
    found = [marked.ts for marked in there if marked.mark.part == number]
    return _Posted(found[0], copied=len(found) > 1) if found else None


def _as_repeat(posting: Posting, number: int, message: Message) -> Message:
    if number >= DETAILS:
        return message
    repeated = replace(posting.card, repeated=True)
    return render(posting.request_id, posting.questions, repeated).messages[number]


def _shown(posting: Posting, place: Place) -> Shown:
    return Shown.of(posting.jid, posting.request_id, posting.questions, posting.card, place)
