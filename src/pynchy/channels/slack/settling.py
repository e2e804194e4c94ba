"""Let every message of a card show how the question ended, copies included.

What was asked stays, how it ended is said, controls are gone.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from itertools import zip_longest

from pynchy.channels.slack import blocks, limits
from pynchy.channels.slack.blocks import CardLocation, clip, one_line
from pynchy.channels.slack.card_history import Posting
from pynchy.channels.slack.card_index import TaggedMessage
from pynchy.channels.slack.limits import Block, Role
from pynchy.channels.slack.posting import Poster
from pynchy.channels.slack.render import SlackMessage, frame, layout
from pynchy.channels.slack.web import Refused, Web
from pynchy.channels.text import describe
from pynchy.model import Answer, Card, Ending, Question, RequestId

# How much of the answers is shown, the more the better.
_ANSWERS = (2_000, 600, 120)
_BRIEF = 300

log = logging.getLogger(__name__)

# A person removed the message: there is nothing left to settle.
_GONE = {"message_not_found", "channel_not_found", "thread_not_found"}
# The workspace lets no message be changed, or none of that age.
_FIXED = {"edit_window_closed", "cant_update_message"}
_MAX_TOLD = 500


def render_settled(
    request_id: RequestId, questions: tuple[Question, ...], card: Card, ending: Ending, here: str
) -> tuple[SlackMessage, ...]:
    """Return what each message of the card becomes; `here` is the name of this channel."""
    headline = describe(ending, here, one_line)
    text = blocks.fallback(f"{headline} ({card.short_id})")
    pages = layout(request_id, questions, card)
    first = SlackMessage(
        text, _first(questions, card, ending, headline, pages[0].blocks(Role.ASKED))
    )
    more = [SlackMessage(text, _later(headline, page.blocks(Role.ASKED))) for page in pages[1:]]
    return (first, *more)


def settled_remainder(card: Card, ending: Ending, here: str) -> SlackMessage:
    """Return what a message of the card becomes that nothing is known of but that it is ours."""
    headline = describe(ending, here, one_line)
    return SlackMessage(blocks.fallback(f"{headline} ({card.short_id})"), _later(headline, []))


def _first(
    questions: tuple[Question, ...], card: Card, ending: Ending, headline: str, asked: list[Block]
) -> list[Block]:
    """Return the question, whole, with as much of the answer as there is room for."""
    top = frame(questions, card)
    made: list[Block] = []
    for most in _ANSWERS:
        made = [*_result(questions, ending, headline, most), *_delivery(card, most)]
        if _fit([*top, *asked, *made]):
            return [*top, *asked, *made]
    while asked and not _fit([*top, *asked, *made]):
        asked = asked[:-1]
    return [*top, *asked, *made]


def _fit(made: list[Block]) -> bool:
    return len(made) <= limits.BLOCKS and sum(map(limits.block_size, made)) <= limits.BUDGET


def _later(headline: str, asked: list[Block]) -> list[Block]:
    return [*asked, blocks.context(headline)]


def _result(
    questions: tuple[Question, ...], ending: Ending, headline: str, most: int
) -> Iterator[Block]:
    yield blocks.section(headline)
    if len(ending.answers) == 1 and len(_said(ending.answers[0])) > _BRIEF:
        yield blocks.section(clip(_said(ending.answers[0]), most))
    if len(ending.answers) > 1:
        for question, answer in zip(questions, ending.answers, strict=False):
            said = clip(_said(answer), most // len(questions))
            asked = one_line(question.text, min(most, _BRIEF))
            yield blocks.section(f"{asked}\n→ {said}")


def _delivery(card: Card, most: int) -> list[Block]:
    return [blocks.context(clip(card.delivery, most))] if card.delivery else []


def _said(answer: Answer) -> str:
    return answer.describe()


class Settler:
    """Changes what Slack shows; the same again changes nothing."""

    def __init__(self, web: Web, poster: Poster, here: str) -> None:
        self._web = web
        self._poster = poster
        self._here = here
        # What was said last below a card that must stay as it is.
        self._told: OrderedDict[tuple[str, str], SlackMessage] = OrderedDict()

    async def settle(self, posting: Posting, location: CardLocation, ending: Ending) -> None:
        """Raise ChannelUnavailable if it has to be tried again."""
        card = posting.card
        made = render_settled(posting.request_id, posting.questions, card, ending, self._here)
        remainder = settled_remainder(card, ending, self._here)
        changed = [
            await self._update(location.channel, part.ts, message or remainder)
            for part, message in zip_longest(location.parts, made[: len(location.parts)])
        ]
        for tagged in await self._copies(posting, location) if location.copied else ():
            number = tagged.mark.part
            message = made[number] if 0 <= number < len(made) else remainder
            changed.append(await self._update(location.channel, tagged.ts, message))
        if not all(changed):
            await self._tell_in_thread(posting, location, made[0])

    async def _copies(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        try:
            return await self._poster.copies(posting, location)
        except Refused as exc:
            log.warning("slack.copies_search_failed", extra={"why": str(exc)})
            return []

    async def _update(self, channel: str, ts: str, message: SlackMessage) -> bool:
        """Change a message. Return False if Slack lets nobody change it."""
        try:
            await self._web.update(channel, ts, message)
        except Refused as exc:
            if exc.error in _FIXED:
                return False
            if exc.error not in _GONE:
                raise
        return True

    async def _tell_in_thread(
        self, posting: Posting, location: CardLocation, message: SlackMessage
    ) -> None:
        """Say how it ended below a card that must stay as it is."""
        where = (location.channel, location.parts[0].ts)
        if self._told.get(where) == message:
            return
        await self._web.post(location.channel, location.root, message, group=posting.card.group)
        self._told[where] = message
        while len(self._told) > _MAX_TOLD:
            self._told.popitem(last=False)
