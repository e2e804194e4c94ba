"""Let every message of a card show how the question ended, copies included."""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import zip_longest

from pynchy.channels.slack.ids import Place
from pynchy.channels.slack.marks import Marked
from pynchy.channels.slack.posting import Poster
from pynchy.channels.slack.render import Message
from pynchy.channels.slack.search import Posting
from pynchy.channels.slack.settled import render_settled, settled_remainder
from pynchy.channels.slack.web import Refused, Web
from pynchy.model import Ending

log = logging.getLogger(__name__)

# A person removed the message: there is nothing left to settle.
_GONE = {"message_not_found", "channel_not_found", "thread_not_found"}
# The workspace lets no message be changed, or none of that age.
_FIXED = {"edit_window_closed", "cant_update_message"}
_TOLD_MOST = 500


class Settler:
    """Changes what Slack shows; the same again changes nothing."""

    def __init__(self, web: Web, poster: Poster, here: str) -> None:
        self._web = web
        self._poster = poster
        self._here = here
        # What was said last below a card that must stay as it is.
        self._told: OrderedDict[tuple[str, str], Message] = OrderedDict()

    async def settle(self, posting: Posting, place: Place, ending: Ending) -> None:
        """Raise ChannelUnavailable if it has to be tried again."""
        card = posting.card
        made = render_settled(posting.request_id, posting.questions, card, ending, self._here)
        remainder = settled_remainder(card, ending, self._here)
        changed = [
            await self._update(place.channel, part.ts, message or remainder)
            for part, message in zip_longest(place.parts, made[: len(place.parts)])
        ]
        for marked in await self._copies(posting, place) if place.copied else ():
            number = marked.mark.part
            message = made[number] if 0 <= number < len(made) else remainder
            changed.append(await self._update(place.channel, marked.ts, message))
        if not all(changed):
            await self._tell_in_thread(place, made[0])

    async def _copies(self, posting: Posting, place: Place) -> list[Marked]:
        try:
            return await self._poster.copies(posting, place)
        except Refused as exc:
            log.warning("copies of a card could not be searched", extra={"why": str(exc)})
            return []

    async def _update(self, channel: str, ts: str, message: Message) -> bool:
        """Change a message. Return False if Slack lets nobody change it."""
        try:
            await self._web.update(channel, ts, message)
        except Refused as exc:
            if exc.error in _FIXED:
                return False
            if exc.error not in _GONE:
                raise
        return True

    async def _tell_in_thread(self, place: Place, message: Message) -> None:
        """Say how it ended below a card that must stay as it is."""
        where = (place.channel, place.parts[0].ts)
        if self._told.get(where) == message:
            return
        await self._web.post(place.channel, place.root, message)
        self._told[where] = message
        while len(self._told) > _TOLD_MOST:
            self._told.popitem(last=False)
