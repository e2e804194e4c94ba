"""From clicks and replies to the reply handler, and from its refusals back to the person alone.

Slack has been thanked before anything here begins. The threads of open cards are read after each
connection: a reply may have come while there was none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pynchy.channels.base import ReplyHandler
from pynchy.channels.slack import blocks
from pynchy.channels.slack.blocks import clip
from pynchy.channels.slack.card_history import CardHistory
from pynchy.channels.slack.card_index import CardIndex, Identity, PostedCard
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.payloads import (
    Click,
    Payload,
    SlackUser,
    ThreadReply,
    read_click,
    read_thread_reply,
)
from pynchy.channels.slack.people import People
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.replies import (
    AmbiguousReplies,
    AmbiguousReply,
    Author,
    from_click,
    from_words,
    is_word_and_id,
    without_short_id,
)
from pynchy.channels.slack.web import Refused, Web
from pynchy.channels.text import FAILED, noted, refusal
from pynchy.errors import AlreadyOver, ChannelUnavailable, InvalidReply, NotAllowed, ReplyRejected
from pynchy.model import PendingQuestion, Reply, RequestId

log = logging.getLogger(__name__)

_REMEMBERED = 5_000
_TOLD = 2_500
_ANSWERING = (blocks.PICK, blocks.OTHER, blocks.SUBMIT, blocks.DECLINE, blocks.MEANT)
_FORGOTTEN = "this copy of the card does not count; look for a newer one, or reply in its thread"
_TAKEN, _REFUSED = "white_check_mark", "warning"

_RETRY_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class SlackContext:
    """The parts of the channel that handling a reply needs."""

    web: Web
    index: CardIndex
    history: CardHistory
    people: People
    identity: Identity


class InboundHandler:
    """Takes everything that people do in Slack."""

    def __init__(self, name: str, handler: ReplyHandler, context: SlackContext) -> None:
        self._name = name
        self._handler = handler
        self._index = context.index
        self._history = context.history
        self._web = context.web
        self._people = context.people
        self._identity = context.identity
        self._ambiguous = AmbiguousReplies()
        self._seen: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def clicked(self, payload: Payload) -> None:
        """Take a click; a toggle, which changes nothing yet, is none."""
        click = read_click(payload)
        if click is None or not click.action_id.startswith(_ANSWERING):
            return
        if click.happened and self._is_known(click.person.user_id, click.ts, click.happened):
            return
        async with self._working():
            try:
                await self._check_team(click.person)
                pending = await self._take_click(click)
            except ReplyRejected as exc:
                await self.tell(click.person, click.channel, click.thread, refusal(exc))
            except Exception:
                log.exception("slack.click_failed")
                await self.tell(click.person, click.channel, click.thread, FAILED)
            else:
                await self._note(click, pending)

    async def said(self, event: Payload) -> None:
        """Take a message; only a person's reply in the thread of a card is meant for us."""
        said = read_thread_reply(event)
        if said is None or self._identity.bot_user_id in {said.person.user_id, *said.seen_by}:
            return
        async with self._working():
            is_whole = await self._history.thread_of(said)
            # What was said in a thread before the card came is not about it.
            held = self._index.in_thread(said.channel, said.thread)
            cards = [posted for posted in held if posted.since < float(said.ts)]
            if cards and not self._is_known(said.channel, said.ts):
                await self._hear(said, cards, is_whole=is_whole)

    async def tell(
        self, person: SlackUser, channel: str, thread: str | None, text: str, *more: Block
    ) -> None:
        """Tell something to one person alone; it is no loss if that does not work."""
        try:
            await self._web.call(
                self._web.client.chat_postEphemeral,
                channel=channel,
                user=person.user_id,
                thread_ts=thread,
                text=blocks.fallback(text),
                blocks=[blocks.section(clip(text, _TOLD)), *more],
            )
        except ChannelUnavailable as exc:
            log.warning("slack.tell_failed", extra={"why": str(exc)})

    async def drain(self) -> None:
        """Return when nothing is being taken any more."""
        await self._idle.wait()

    async def _take_click(self, click: Click) -> PendingQuestion:
        if click.action_id == blocks.MEANT:
            return await self._take_meant(click)
        posted = await self._find(click)
        sender = await self._sender(click.person)
        if click.action_id == blocks.DECLINE:
            return await self._handler.decline(sender.reply(posted))
        if posted.questions:
            return await self._handler.answer(from_click(sender, posted, click))
        try:
            # Without a value this cannot answer, but it says how the question ended.
            return await self._handler.answer(sender.reply(posted))
        except InvalidReply as exc:
            raise InvalidReply(_FORGOTTEN) from exc

    async def _take_meant(self, click: Click) -> PendingQuestion:
        """Take an earlier reply for the question that the person has now named."""
        said = self._ambiguous.said(click)
        posted = self._ambiguous.resolve(click, self._index.in_thread(said.channel, said.thread))
        if posted is None:
            raise InvalidReply(_FORGOTTEN)
        sender = await self._sender(click.person)
        reply = _reply(sender, posted, said, said.text, is_aimed=True)
        pending = await self._handler.answer(reply)
        await self._mark(said, _TAKEN)
        return pending

    async def _find(self, click: Click) -> PostedCard:
        """Return the card. Raise InvalidReply if the message shows none of ours."""
        request_id = blocks.request_of(click.block_id)
        posted = self._index.find(click.channel, click.ts)
        if request_id is not None and (posted is None or not posted.questions):
            await self._index.posted(request_id)
            posted = self._index.find(click.channel, click.ts)
        if posted is None and request_id is not None:
            posted = await self._look_up(click, request_id)
        if posted is None or posted.request_id != request_id:
            raise InvalidReply("this copy of the card does not count; look for a newer one")
        return posted

    async def _look_up(self, click: Click, request_id: RequestId) -> PostedCard | None:
        """Return the card of a message that is in no record, by what Slack knows of it."""
        try:
            return await self._history.card_of(click)
        except Refused:
            return None
        except ChannelUnavailable as exc:
            log.warning("slack.card_lookup_failed", extra={"why": str(exc)})
        asking = self._index.asking(request_id)
        here = [posted for posted in asking if posted.location.channel == click.channel]
        return here[0] if len(here) == 1 else None

    async def _hear(self, said: ThreadReply, cards: list[PostedCard], *, is_whole: bool) -> None:
        posted = cards[-1]
        try:
            await self._check_team(said.person)
            posted, text = self._addressed(said, cards, is_whole=is_whole)
            sender = await self._sender(said.person)
            pending = await self._handler.answer(_reply(sender, posted, said, text))
        except ReplyRejected as exc:
            await self._refuse(said, posted, exc)
        except Exception:
            log.exception("slack.reply_failed")
            self._seen.pop((said.channel, said.ts), None)
            await self.tell(said.person, said.channel, said.thread, FAILED)
        else:
            await self._mark(said, _TAKEN)
            await self._note(said, pending)

    def _addressed(
        self, said: ThreadReply, cards: list[PostedCard], *, is_whole: bool
    ) -> tuple[PostedCard, str]:
        """Return which card the reply is for, open or over, and what it says.

        Where a thread has held several, a reply without an id may be a late one to another.
        """
        for posted in cards:
            text = without_short_id(said.text, posted.short_id)
            if text is not None:
                return posted, text
            if is_word_and_id(said.text, posted.short_id):
                return posted, said.text
        waiting = [posted for posted in cards if self._index.is_open(posted)]
        if not waiting or (len(cards) == 1 and is_whole):
            return cards[-1], said.text
        why = "this thread has held several questions"
        raise AmbiguousReply(
            why if is_whole else "Slack does not say what this thread has held", waiting
        )

    async def _refuse(self, said: ThreadReply, posted: PostedCard, exc: ReplyRejected) -> None:
        if isinstance(exc, AlreadyOver | NotAllowed):
            # People go on talking in a thread; nobody is told the same thing twice there.
            if said.person.user_id in posted.told:
                return
            posted.told.add(said.person.user_id)
        else:
            await self._mark(said, _REFUSED)
        offered = (
            self._ambiguous.offer(said, exc.waiting) if isinstance(exc, AmbiguousReply) else ()
        )
        await self.tell(said.person, said.channel, said.thread, refusal(exc), *offered)

    async def _note(self, said: Click | ThreadReply, pending: PendingQuestion) -> None:
        """Say what is still needed: to who answered a part alone, and to all who has approved."""
        if pending.ending is not None:
            return
        text = noted(pending)
        if pending.approvals_needed == 1:
            await self.tell(said.person, said.channel, said.thread, text)
            return
        message = SlackMessage(blocks.fallback(text), [blocks.section(clip(text, _TOLD))])
        try:
            thread = said.thread or said.ts
            await self._web.post(said.channel, thread, message, group=pending.group)
        except ChannelUnavailable as exc:
            log.warning("slack.tell_failed", extra={"why": str(exc)})

    async def _mark(self, said: ThreadReply, name: str) -> None:
        """Leave a sign on the reply, which also tells a restarted host that it was taken."""
        add = self._web.client.reactions_add
        try:
            await self._web.call(add, channel=said.channel, timestamp=said.ts, name=name)
        except ChannelUnavailable as exc:
            log.info("slack.reaction_failed", extra={"why": str(exc)})

    async def _sender(self, person: SlackUser) -> Author:
        return Author(await self._people.name(person), person.user_id, self._name)

    async def _check_team(self, person: SlackUser) -> None:
        teams = person.teams or {await self._people.team(person)}
        if teams != {self._identity.team_id or None}:
            raise NotAllowed("you are not known to be of this workspace, and may not answer this")

    def _is_known(self, *what: str) -> bool:
        """True for a second delivery of the same thing."""
        known = what in self._seen
        self._seen[what] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return known

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        self._busy += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()


def _reply(
    sender: Author, posted: PostedCard, said: ThreadReply, text: str, *, is_aimed: bool = False
) -> Reply:
    if not posted.questions:
        return sender.reply(posted, values=(text,))
    part, is_aimed = posted.part(said.thread), is_aimed or text != said.text
    return from_words(sender, posted, text, part.question if part else None, is_aimed=is_aimed)


class CatchUp:
    """Reads when it is told that there may be something new."""

    def __init__(self, web: Web, index: CardIndex, inbound: InboundHandler) -> None:
        self._web = web
        self._index = index
        self._inbound = inbound
        self._wanted = asyncio.Event()

    def wanted(self) -> None:
        """Read again soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Read whenever it is wanted, for ever; what fails is tried again."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                for (channel, thread), since in self._threads().items():
                    await self._read(channel, thread, since)
            except ChannelUnavailable as exc:
                log.warning("slack.threads_failed", extra={"why": str(exc)})
                await asyncio.sleep(_RETRY_SECONDS)
                self._wanted.set()

    def _threads(self) -> dict[tuple[str, str], str]:
        """Return the threads of open cards, each once, with where to begin."""
        found: dict[tuple[str, str], str] = {}
        for posted in sorted(self._index.opened(), key=lambda posted: posted.since):
            location = posted.location
            for thread in (
                [location.thread] if location.thread else [part.ts for part in location.parts]
            ):
                found.setdefault((location.channel, thread), location.parts[0].ts)
        return found

    async def _read(self, channel: str, thread: str, since: str) -> None:
        method = self._web.client.conversations_replies
        where = {"channel": channel, "ts": thread, "oldest": since}
        try:
            async for message in self._web.messages(method, None, **where):
                await self._inbound.said({**message, "channel": channel})
        except Refused as exc:
            # A person removed the message or the bot; the other cards are read all the same.
            log.warning("slack.thread_unreadable", extra={"why": str(exc)})
        except ChannelUnavailable:
            raise
        except Exception:
            log.exception("slack.thread_failed")
