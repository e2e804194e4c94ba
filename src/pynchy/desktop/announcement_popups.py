"""Popups of what wants no answer: a few of each group, and not many at a time.

However many come at once, and whatever the service does, a group has at most so many of them on the
screen.
"""

from __future__ import annotations

from collections import deque

from pynchy.aio import LockMap, Rate
from pynchy.desktop.backend import Backend
from pynchy.desktop.popup import announcement_of
from pynchy.errors import NotShown
from pynchy.events import Announcement
from pynchy.model import GroupName

MAX_ANNOUNCEMENTS_OF_GROUP = 2
# One that replaces another catches the eye, too.
_PER_SECOND = 0.5
_BURST = 10


class AnnouncementPopups:
    """Shows announcements in one notification service."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._locks: LockMap[GroupName] = LockMap()
        self._rates: dict[GroupName, Rate] = {}
        self._shown: dict[GroupName, deque[str]] = {}

    async def show(self, told: Announcement) -> None:
        """Show it, in place of the group's oldest. Raise ChannelUnavailable."""
        rate = self._rates.setdefault(told.group, Rate(_PER_SECOND, _BURST))
        if not rate.take_now():
            raise NotShown(f"{told.group} announces more than anybody reads")
        # One after another: who is shown meanwhile would take the same place.
        async with self._locks.of(told.group):
            ids = self._shown.setdefault(told.group, deque())
            oldest = ids[0] if len(ids) >= MAX_ANNOUNCEMENTS_OF_GROUP else ""
            shown = await self._backend.show(announcement_of(told), oldest)
            if oldest:
                ids.popleft()
            ids.append(shown)
