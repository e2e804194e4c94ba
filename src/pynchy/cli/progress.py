"""Tell whoever runs `pynchy ask` how to answer and how long it has waited, on stderr."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from typing import Self

import click

from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.text import duration
from pynchy.client import StreamMessage
from pynchy.data_dir import DataFolder

_TICK_SECONDS = 1.0
_WIPE = "\r\x1b[2K"


class Progress:
    """The lines on stderr while a question waits, as an async context manager.

    The short id is the host's to give: it comes with the event that tells of the question.
    """

    def __init__(self, data: DataFolder, request_id: str, *, show_ticks: bool) -> None:
        self._follower = EventFollower(data, self._on_message, self._on_link)
        self._option = data.option
        self._request_id = request_id
        self._show_ticks = show_ticks
        self._link = HostLink.UP
        self._started = time.monotonic()
        self._ticking: asyncio.Task[None] | None = None
        self.short_id = ""

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._follower.__enter__)
        if self._show_ticks:
            self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
            self._write(_WIPE)
        await asyncio.to_thread(self._follower.__exit__)

    def stays_open(self) -> str:
        """Say that the question is still there, and under which id."""
        target = self.short_id or self._request_id
        how = f"pynchy answer{self._option} {target} VALUE"
        return f"The question stays open as {target}; answer it with: {how}"

    def _on_message(self, message: StreamMessage) -> None:
        """Runs in the follower's thread."""
        event = message.data
        asked = event.get("type") == "asked" and event.get("id") == self._request_id
        if asked and not self.short_id:
            self.short_id = str(event.get("short_id", ""))
            how = f"pynchy answer{self._option} {self.short_id} VALUE"
            self._say(f"Asked as {self.short_id}; answer with: {how}")

    def _on_link(self, link: HostLink) -> None:
        """Runs in the follower's thread."""
        if self._link is not link:
            gone = "The host is gone; still waiting. The question is kept."
            self._say(gone if link is HostLink.GONE else "The host is back.")
        self._link = link

    async def _tick(self) -> None:
        while True:
            waited = duration(time.monotonic() - self._started)
            self._write(f"{_WIPE}waiting for a person ({waited}; Ctrl-C stops waiting)")
            await asyncio.sleep(_TICK_SECONDS)

    def _say(self, text: str) -> None:
        self._write(f"{_WIPE if self._show_ticks else ''}{text}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            click.echo(text, nl=False, err=True)
            sys.stderr.flush()
