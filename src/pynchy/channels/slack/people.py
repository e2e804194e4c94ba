"""Who people are: names and workspaces, asked of Slack once, and ahead of the first answer.

No answer waits for a name that came with it, and none waits long for one that did not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from pynchy.channels.slack.blocks import one_line
from pynchy.channels.slack.payloads import SlackUser, dict_in
from pynchy.channels.slack.web import Web
from pynchy.errors import ChannelUnavailable

log = logging.getLogger(__name__)

_MAX_ENTRIES = 1_000
_MAX_AHEAD = 200
_SECONDS = 2.0
_RETRY_SECONDS = 60.0
_NAME = 80


@dataclass(frozen=True, slots=True)
class Profile:
    """What Slack says of a person; empty if it did not say, from that moment."""

    name: str = ""
    team: str = ""
    at: float = float("-inf")


class People:
    """Those who answered lately, and those who may answer."""

    def __init__(self, web: Web, ahead: Iterable[str] = ()) -> None:
        self._web = web
        self._ahead = sorted(ahead)[:_MAX_AHEAD]
        self._profiles: dict[str, Profile] = {}
        self._wanted: asyncio.Queue[str] = asyncio.Queue()

    async def name(self, person: SlackUser) -> str:
        """Return what to call the person; the id where nobody knows a name."""
        profile = self._known(person.user_id)
        if profile is None and person.name:
            self._wanted.put_nowait(person.user_id)
            return one_line(person.name, _NAME)
        profile = profile or await self._look_up(person.user_id)
        name = profile.name or person.name
        return one_line(name, _NAME) if name else person.user_id

    async def team(self, person: SlackUser) -> str:
        """Return the person's workspace; nothing if Slack does not say."""
        return (self._known(person.user_id) or await self._look_up(person.user_id)).team

    def look_ahead(self) -> None:
        """Let those be looked up who may answer."""
        for user_id in self._ahead:
            self._wanted.put_nowait(user_id)

    async def run(self) -> None:
        """Look people up before they are needed, for ever."""
        while True:
            user_id = await self._wanted.get()
            if self._known(user_id) is None:
                await self._look_up(user_id)

    def _known(self, user_id: str) -> Profile | None:
        profile = self._profiles.get(user_id)
        if profile is None or profile.name:
            return profile
        return profile if time.monotonic() - profile.at < _RETRY_SECONDS else None

    async def _look_up(self, user_id: str) -> Profile:
        try:
            async with asyncio.timeout(_SECONDS):
                profile = await self._ask(user_id)
        except (ChannelUnavailable, TimeoutError):
            log.info("slack.user_lookup_failed", extra={"user": user_id})
            profile = Profile(at=time.monotonic())
        if len(self._profiles) >= _MAX_ENTRIES:
            self._profiles.clear()
        self._profiles[user_id] = profile
        return profile

    async def _ask(self, user_id: str) -> Profile:
        found = await self._web.call(self._web.client.users_info, user=user_id)
        user = dict_in(found, "user")
        profile = dict_in(user, "profile")
        names = [profile.get("display_name"), profile.get("real_name"), user.get("name")]
        name = str(next(filter(None, names), user_id))
        return Profile(name, str(user.get("team_id") or ""))
