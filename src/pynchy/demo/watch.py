"""What the host tells of a question: its events as they happen, and how it ended.

The events are read in a thread and cross to the loop in one place. Trouble is never passed over:
waiting for an event raises DemoFailed when a bad one comes instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pynchy.client import EventStream, HostClient
from pynchy.data_dir import DataFolder
from pynchy.demo.errors import DemoFailed
from pynchy.events import EventKind

ENDED = (EventKind.ANSWERED, EventKind.DECLINED)
_TROUBLE = frozenset(
    {
        EventKind.REJECTED,
        EventKind.SHOW_FAILED,
        EventKind.UNDELIVERABLE,
        EventKind.RESUME_FAILED,
        EventKind.UNDELIVERED,
        EventKind.EXPIRED,
        EventKind.WITHDRAWN,
    }
)


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One thing that happened, as far as the story needs it."""

    kind: EventKind
    group: str
    request_id: str
    short_id: str
    by: str
    detail: str


@dataclass(frozen=True, slots=True)
class DemoEnding:
    """How the host says that a question ended: its outcome, and what was chosen and written."""

    outcome: str
    words: tuple[str, ...]


class HostWatch:
    """The host's events, in order, none left out."""

    def __init__(self, client: HostClient) -> None:
        self._client = client
        self._events: asyncio.Queue[HostEvent | None] = asyncio.Queue()
        self._passed: list[HostEvent] = []

    @classmethod
    @asynccontextmanager
    async def of(cls, data: DataFolder) -> AsyncIterator[HostWatch]:
        """Watch the folder's host for as long as the context lasts."""
        client = HostClient.of(data)
        watch = cls(client)
        stream = await asyncio.to_thread(client.events, 0)
        reading = asyncio.create_task(
            asyncio.to_thread(watch.read, stream, asyncio.get_running_loop())
        )
        try:
            yield watch
        finally:
            stream.stop()
            await asyncio.wait([reading])

    async def until(self, *kinds: EventKind) -> HostEvent:
        """Return the next event of these kinds. Raise DemoFailed if trouble comes first.

        Others are kept for whoever asks next: one question may be shown before the last is
        known to have arrived.
        """
        for passed in self._passed:
            if passed.kind in kinds:
                self._passed.remove(passed)
                return passed
        while (event := await self._events.get()) is not None:
            if event.kind in kinds:
                return event
            self._passed.append(event)
            if event.kind in _TROUBLE:
                raise DemoFailed(f"the host says {event.kind} of {event.short_id}: {event.detail}")
        raise DemoFailed("the host has stopped telling what happens")

    async def ending(self, event: HostEvent) -> DemoEnding:
        """Return how the event's question ended, as the host has it on record."""
        view = await asyncio.to_thread(self._client.question_of, event.group, event.request_id)
        ending = view["ending"]
        words = [[*answer["selected"], answer["text"]] for answer in ending["answers"]]
        return DemoEnding(ending["outcome"], tuple(word for some in words for word in some if word))

    def read(self, stream: EventStream, loop: asyncio.AbstractEventLoop) -> None:
        """Run in a thread: hand every event to the loop, and None when the stream has ended."""
        try:
            for message in stream:
                loop.call_soon_threadsafe(self._events.put_nowait, _event(message.data))
        finally:
            stream.close()
            loop.call_soon_threadsafe(self._events.put_nowait, None)


def _event(fields: dict[str, object]) -> HostEvent:
    return HostEvent(
        EventKind(str(fields["type"])),
        str(fields.get("group") or ""),
        str(fields.get("id") or ""),
        str(fields.get("short_id", "")),
        str(fields.get("by", "")),
        str(fields.get("detail", "")),
    )
