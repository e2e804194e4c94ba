"""Take what agents tell people without wanting an answer, and show it where that can be shown.

    tasks/<id>.json ─► event `announced` ─► channels that show announcements, and whoever follows

The event is the record: nothing is tried again, and nobody waits. What lay in the mailbox for long,
as while no host ran, is not shown any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta

from pynchy import wire
from pynchy.bridge.ledger import QuestionLedger
from pynchy.channels.base import Channel
from pynchy.config import Settings
from pynchy.errors import ChannelUnavailable
from pynchy.events import Announcement, Event, EventKind
from pynchy.model import GroupName, RequestId

log = logging.getLogger(__name__)

ANNOUNCE_PREFIX = "announce:"
_STALE = timedelta(minutes=10)


class Announcements:
    """Handles every request whose type begins with `announce:`."""

    def __init__(
        self, ledger: QuestionLedger, channels: Mapping[str, Channel], settings: Settings
    ) -> None:
        self._ledger = ledger
        self._channels = channels
        self._settings = settings
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Let what is shown be shown beside everything else: no group waits for a channel."""
        self._tasks = tasks

    async def handle(self, group: GroupName, envelope: wire.Envelope) -> None:
        """Record the announcement, and show it. Raise MalformedRequest."""
        request = wire.read_announcement(envelope)
        told, now = request.to_model(group), self._ledger.now()
        is_stale = request.at is not None and now - request.at > _STALE
        event = Event(
            EventKind.ANNOUNCED,
            now,
            group,
            RequestId(request.request_id),
            agent=told.agent,
            task=told.task,
            title=told.title,
            urgency=told.urgency,
            detail=told.text,
        )
        self._ledger.publish(event)
        if self._tasks is not None and not is_stale:
            routing = self._settings.group(group)
            for name in routing.channels:
                showing = self._show(name, routing.chat.get(name, ""), told)
                try:
                    self._tasks.create_task(showing)
                except RuntimeError:
                    showing.close()  # the host stops, and the event has told it

    async def _show(self, name: str, chat: str, told: Announcement) -> None:
        channel = self._channels.get(name)
        if channel is None:
            return
        try:
            async with asyncio.timeout(self._settings.send_timeout.total_seconds()):
                await channel.announce(chat, told)
        except (ChannelUnavailable, TimeoutError) as exc:
            log.info("announcement.not_shown", extra={"channel": name, "why": str(exc)})
        except Exception:
            log.exception("channel.failed", extra={"channel": name})
