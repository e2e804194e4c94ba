"""What `pynchy ask` says on stderr while its question waits."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from typing import Self

import click

from agent_runner.asking import Request
from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.text import duration
from pynchy.client import StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.own_program import own_call

_TICK_SECONDS = 1.0
_WIPE = "\r\x1b[2K"


class Progress:
    """The lines on stderr while a question waits, as an async context manager.

    The short id is the host's to give: it comes with the event that tells of the question.
    """

    def __init__(self, data: DataFolder, request: Request, *, show_ticks: bool) -> None:
        self._follower = EventFollower(data, self._on_message, self._on_link)
        self._option = data.option
        self._request_id = request.request_id
        self._is_approval = request.approval is not None
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
        how = self._how(target)
        return f"The question stays open as {target}; answer it with: {how}"

    def _how(self, target: str) -> str:
        if self._is_approval:
            return f"{own_call()} approve{self._option} {target} (or deny)"
        return f"{own_call()} answer{self._option} {target} VALUE"

    def _on_message(self, message: StreamMessage) -> None:
        """Runs in the follower's thread."""
        event = message.data
        asked = event.get("type") == "asked" and event.get("id") == self._request_id
        if asked and not self.short_id:
            self.short_id = str(event.get("short_id", ""))
            self._say(f"Asked as {self.short_id}; answer with: {self._how(self.short_id)}")

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
