"""Post a card: at least once, and never twice without saying so.

Cards that count as not shown but may be in Slack all the same are removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pynchy.aio import LockMap
from pynchy.channels.slack.blocks import CardLocation, CardMessage, read_chat
from pynchy.channels.slack.card_history import CardHistory, Posting
from pynchy.channels.slack.card_index import (
    DETAILS,
    CardIndex,
    PostedCard,
    SessionChat,
    TaggedMessage,
    make_metadata,
)
from pynchy.channels.slack.render import SlackMessage, render
from pynchy.channels.slack.web import Refused, ReplyLost, Web
from pynchy.errors import CannotShow, ChannelUnavailable
from pynchy.model import GroupName, RequestId

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0
_MAX_ENTRIES = 1_000

_Key = tuple[GroupName, RequestId, str]


class OrphanedCards:
    """What is to be removed, for as long as `run` runs."""

    def __init__(self, web: Web, index: CardIndex, history: CardHistory) -> None:
        self._web = web
        self._index = index
        self._history = history
        self._waiting: dict[_Key, tuple[Posting, PostedCard]] = {}
        self._more = asyncio.Event()
        # Nothing is removed that is just being posted again.
        self._turn = asyncio.Lock()

    def add(self, posting: Posting, posted: PostedCard) -> None:
        """Remove the card when that is possible; until then a click on it counts."""
        if len(self._waiting) >= _MAX_ENTRIES:
            log.warning("slack.card_orphaned", extra={"id": posting.request_id})
            return
        self._index.set_adrift(posted)
        self._waiting.setdefault(_key(posting), (posting, posted))
        self._more.set()

    @asynccontextmanager
    async def kept(self, posting: Posting) -> AsyncIterator[None]:
        """Let the card be found by who posts it again; it is removed after all if that fails."""
        held = None
        if posting.card.repeated:
            async with self._turn:
                held = self._waiting.pop(_key(posting), None)
        try:
            yield
        except BaseException:
            if held is not None:
                self.add(*held)
            raise
        if held is not None:
            self._index.pick_up(held[1])

    async def run(self) -> None:
        """Remove one after another, for ever."""
        wait = _RETRY_SECONDS
        while True:
            await self._more.wait()
            async with self._turn:
                removed = await self._remove_first()
            if removed:
                wait = _RETRY_SECONDS
            else:
                await asyncio.sleep(wait)
                wait = min(wait * 2, _RETRY_MAX_SECONDS)

    async def _remove_first(self) -> bool:
        """Return False if Slack cannot be reached; that card comes last then."""
        if not self._waiting:
            self._more.clear()
            return True
        key = next(iter(self._waiting))
        posting, posted = self._waiting.pop(key)
        try:
            await self._remove(posting, posted)
        except ChannelUnavailable as exc:
            log.info("slack.card_maybe_orphaned", extra={"why": str(exc)})
            self._waiting[key] = posting, posted
            return False
        except Exception:
            log.exception("slack.orphan_removal_failed")
        self._index.pick_up(posted)
        return True

    async def _remove(self, posting: Posting, posted: PostedCard) -> None:
        channel = posted.location.channel
        there = {part.ts for part in posted.location.parts}
        try:
            found = await self._history.all_of(posting, channel, posted.location.thread)
        except Refused as exc:
            log.warning("slack.card_orphaned", extra={"why": str(exc)})
            found = []
        for ts in sorted(there | {tagged.ts for tagged in found}):
            try:
                await self._web.call(self._web.client.chat_delete, channel=channel, ts=ts)
            except Refused as exc:
                log.warning("slack.card_left", extra={"why": str(exc)})


def _key(posting: Posting) -> _Key:
    return (posting.card.group, posting.request_id, posting.jid)


@dataclass(frozen=True, slots=True)
class _Posted:
    """A message in Slack; `copied` if there may be a second one."""

    ts: str
    copied: bool = False


class Poster:
    """Posts cards, and remembers them in the index."""

    def __init__(
        self,
        web: Web,
        index: CardIndex,
        history: CardHistory,
        orphans: OrphanedCards,
        *,
        thread_per_session: bool,
    ) -> None:
        self._web = web
        self._index = index
        self._history = history
        self._orphans = orphans
        self._thread_per_session = thread_per_session
        self._direct: dict[str, str] = {}
        self._session_locks: LockMap[SessionChat] = LockMap()

    async def post(self, posting: Posting) -> CardLocation:
        """Return where the card is. Raise ChannelUnavailable if it could not be shown."""
        channel, thread = await self._chat(posting)
        async with self._orphans.kept(posting):
            return await self._post_where(posting, channel, thread)

    async def _post_where(self, posting: Posting, channel: str, thread: str | None) -> CardLocation:
        in_session = self._thread_per_session and thread is None and posting.card.session_id
        if not in_session:
            return await self._post(posting, CardLocation(channel, (), thread))
        # The first card of a session must be there before the second can be put under it.
        async with self._session_locks.of(posting.session):
            return await self._post_in_session(posting, channel)

    async def find(self, posting: Posting) -> CardLocation | None:
        """Return where a card is that could not be posted for all we know; None if nowhere."""
        channel, thread = await self._chat(posting)
        root = self._index.root_of(posting.session)
        for place in dict.fromkeys((thread, root)):
            found = await self._there(posting, CardLocation(channel, (), place))
            if there := [tagged for tagged in found if tagged.is_card]:
                parts = tuple(CardMessage(tagged.ts, None) for tagged in there)
                return CardLocation(channel, parts, there[0].thread)
        return None

    async def copies(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        """Return the messages of the card that are not in the place."""
        known = {part.ts for part in location.parts}
        found = await self._history.all_of(posting, location.channel, location.thread)
        return [tagged for tagged in found if tagged.is_card and tagged.ts not in known]

    async def _post_in_session(self, posting: Posting, channel: str) -> CardLocation:
        root = self._index.root_of(posting.session) or await self._find_root(posting, channel)
        try:
            return await self._post(posting, CardLocation(channel, (), root), broadcast=True)
        except Refused as exc:
            if root is None or exc.error != "thread_not_found":
                raise
        # Somebody has removed the first card.
        self._index.set_root(posting.session, None)
        return await self._post(posting, CardLocation(channel, ()))

    async def _find_root(self, posting: Posting, channel: str) -> str | None:
        try:
            root = await self._history.root_of_session(posting, channel)
        except ChannelUnavailable as exc:
            log.warning("slack.thread_search_failed", extra={"why": str(exc)})
            return None
        self._index.set_root(posting.session, root)
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
            # What is there of it is taken back, which may take its time.
            exc.maybe_shown = exc.maybe_shown or bool(location.parts)
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
            log.warning("slack.details_failed", extra={"why": str(exc)})

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
            ts = await self._send(posting, location, message, more)
        except ReplyLost:
            # Where the search gets no reply either, Slack is down, and that is that.
            there = await self._there(posting, location)
            if (found := _first(there, number)) is not None:
                return found
            again = _as_repeat(posting, number, message)
            ts = await self._send(posting, location, again, more)
            copied = True
        if location.thread is None and not copied:
            self._index.mark_whole(location.channel, ts)
        return _Posted(ts, copied)

    async def _send(
        self, posting: Posting, location: CardLocation, message: SlackMessage, more: dict[str, Any]
    ) -> str:
        card = posting.card
        _, ts = await self._web.post(
            location.channel,
            location.thread,
            message,
            group=card.group,
            urgency=card.urgency,
            **more,
        )
        return ts

    async def _there(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        """Return what is there of the card already; nothing if Slack will not tell."""
        try:
            return await self._history.all_of(posting, location.channel, location.thread)
        except Refused as exc:
            log.warning("slack.cards_search_failed", extra={"why": str(exc)})
            return []

    async def _chat(self, posting: Posting) -> tuple[str, str | None]:
        channel, thread = read_chat(posting.jid)
        if not channel:
            raise CannotShow(f"group {posting.card.group} has no Slack address: set its chat.slack")
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
        if self._index.root_of(posting.session) in {p.ts for p in location.parts}:
            self._index.set_root(posting.session, None)
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
