"""The one popup that counts the questions which have none of their own.

It is shown again when the count changes, and not for each question: a hundred that come at once are
one change.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from pynchy.aio import finish
from pynchy.desktop.backend import Backend
from pynchy.desktop.places import PopupPlaces
from pynchy.desktop.popup import PopupKey, summary_of
from pynchy.desktop.popup_ids import PopupIds
from pynchy.model import GroupName, RequestId

# No question's key.
_KEY: PopupKey = (GroupName(""), RequestId("summary"))


class SummaryPopup:
    """Shows in one notification service how many wait."""

    def __init__(self, backend: Backend, ids: PopupIds, places: PopupPlaces) -> None:
        self._backend = backend
        self._ids = ids
        self._places = places
        self._lock = asyncio.Lock()
        self._told: Counter[GroupName] | None = None
        self._forgotten = 0
        self.popup_id = ""

    def restore(self, kept: dict[PopupKey, str]) -> None:
        """Know its popup from before a restart, and take it out of the others' ids."""
        self.popup_id = kept.pop(_KEY, "")

    def forget(self) -> None:
        """Tell it anew: the service shows nothing of ours any more."""
        self._told = None
        self._forgotten += 1

    async def tell(self) -> str:
        """Show how many wait, or take it away; return its id. Raise ChannelUnavailable."""
        async with self._lock:
            waiting, forgotten = self._places.waiting(), self._forgotten
            if waiting != self._told:
                await (self._show(waiting) if waiting else self._take_away())
                # Unless the service has come back meanwhile, without it.
                self._told = waiting if forgotten == self._forgotten else None
            return self.popup_id

    async def _show(self, waiting: Counter[GroupName]) -> None:
        before = self.popup_id
        self.popup_id = await self._backend.show(
            summary_of(waiting, self._backend.abilities), before
        )
        if self.popup_id != before:
            await finish(asyncio.to_thread(self._ids.keep, _KEY, self.popup_id))

    async def _take_away(self) -> None:
        if not self.popup_id:
            return
        if self._backend.is_current(self.popup_id):
            await self._backend.close(self.popup_id)
        self.popup_id = ""
        await asyncio.to_thread(self._ids.forget, _KEY)
