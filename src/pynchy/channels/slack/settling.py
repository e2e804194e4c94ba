"""Let every message of a card show how the question ended, copies included."""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import zip_longest

from pynchy.channels.slack.card_metadata import TaggedMessage
from pynchy.channels.slack.ids import CardLocation
from pynchy.channels.slack.posting import Poster
from pynchy.channels.slack.render import SlackMessage
from pynchy.channels.slack.search import Posting
from pynchy.channels.slack.settled import render_settled, settled_remainder
from pynchy.channels.slack.web import Refused, Web
from pynchy.model import Ending

log = logging.getLogger(__name__)

# A person removed the message: there is nothing left to settle.
_GONE = {"message_not_found", "channel_not_found", "thread_not_found"}
# The workspace lets no message be changed, or none of that age.
_FIXED = {"edit_window_closed", "cant_update_message"}
_MAX_TOLD = 500


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
            await self._tell_in_thread(location, made[0])

    async def _copies(self, posting: Posting, location: CardLocation) -> list[TaggedMessage]:
        try:
            return await self._poster.copies(posting, location)
        except Refused as exc:
            log.warning("copies of a card could not be searched", extra={"why": str(exc)})
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

    async def _tell_in_thread(self, location: CardLocation, message: SlackMessage) -> None:
        """Say how it ended below a card that must stay as it is."""
        where = (location.channel, location.parts[0].ts)
        if self._told.get(where) == message:
            return
        await self._web.post(location.channel, location.root, message)
        self._told[where] = message
        while len(self._told) > _MAX_TOLD:
            self._told.popitem(last=False)
