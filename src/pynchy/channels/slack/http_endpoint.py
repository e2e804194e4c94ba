"""The other way to be reached by Slack: an HTTP endpoint behind a public address.

Only what carries Slack's own signature, and is not older than five minutes, gets through.
"""

from __future__ import annotations

import asyncio

from aiohttp import web
from slack_bolt.app.async_server import AsyncSlackAppServer
from slack_bolt.async_app import AsyncApp

from pynchy.channels.slack.connection import Owner
from pynchy.channels.slack.link import Link
from pynchy.errors import ChannelUnavailable

PATH = "/slack/events"
_POLL_SECONDS = 60.0


class Endpoint(Link):
    """Listens at an address of its own."""

    def __init__(self, app: AsyncApp, host: str, port: int, owner: Owner) -> None:
        super().__init__()
        self._app = app
        self._host = host
        self._port = port
        self._owner = owner
        self._runner: web.AppRunner | None = None

    async def connect(self) -> None:
        """See Link."""
        await self._owner.identify()
        server = AsyncSlackAppServer(self._port, PATH, self._app, self._host)
        self._runner = web.AppRunner(server.web_app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as exc:
            where = f"{self._host}:{self._port}"
            raise ChannelUnavailable(f"cannot listen at {where}: {exc.strerror}") from exc
        self._owner.arrived()

    async def watch(self) -> None:
        """See Link. Slack may call us though we cannot call it: go on listening."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                await self._owner.identify()
            except ChannelUnavailable as exc:
                self.note(exc)
            else:
                self._recovered()

    def _recovered(self) -> None:
        if self.problem is not None:
            self.note(None)
            # What was said meanwhile may have been lost.
            self._owner.arrived()

    async def close(self) -> None:
        """See Link."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
