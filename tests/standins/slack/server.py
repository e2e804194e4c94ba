"""The stand-in itself: a server on loopback, in a thread of its own.

Everything public may be called from any thread. `go_away` closes the listener and cuts every
connection; `come_back` opens the same port with everything that was said before.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web
from tests.standins.slack.api import APP_TOKEN, BOT_TOKEN, Call, WebApi
from tests.standins.slack.callback import Callback
from tests.standins.slack.faults import Fault, Faults, RateLimit
from tests.standins.slack.person import Person, changed_event_of, event_of
from tests.standins.slack.sockets import REASONS, Delivery, Sockets
from tests.standins.slack.workspace import TEAM, Message, Workspace

_START_SECONDS = 10.0
_TURNS = 5
T = TypeVar("T")


class SlackStandIn:
    """Slack on loopback, with one workspace and one installed app."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.workspace = Workspace()
        self.faults = Faults()
        self._loop = asyncio.new_event_loop()
        self.sockets = Sockets(self._loop)
        self.api = WebApi(
            self.workspace, self.faults, self.sockets.ticket, self._posted, self._updated
        )
        self._people: dict[str, Person] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket

    @property
    def url(self) -> str:
        """The address that takes the place of https://slack.com/api/."""
        return f"http://127.0.0.1:{self.port}/api/"

    @property
    def bot_token(self) -> str:
        """The token of the installed bot."""
        return self.api.bot_token

    @property
    def app_token(self) -> str:
        """The app's token for Socket Mode."""
        return self.api.app_token

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        self._run(self._listen())
        return self

    def stop(self) -> None:
        """End for good."""
        self._run(self._unlisten())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def go_away(self) -> None:
        """Refuse connections and cut those that are open, until `come_back`."""
        self._run(self._unlisten())

    def come_back(self) -> None:
        """Be there again, on the same port, with the same messages."""
        if self._runner is None:
            self._run(self._listen())

    def person(self, user: str, team: str = TEAM) -> Person:
        """Return the person with this user id; somebody new joins the workspace."""
        if user not in self._people:
            known = self.workspace.users.get(user) or self.workspace.add_user(user, team=team)
            self._people[user] = Person(known, self.workspace, self.sockets)
        return self._people[user]

    def messages(self, channel: str) -> list[Message]:
        """Return the messages of the channel that are no replies, oldest first."""
        return self.workspace.top(channel)

    def thread(self, message: Message) -> list[Message]:
        """Return the replies to the message, oldest first."""
        return self.workspace.thread(message.channel, message.ts)

    def calls(self, method: str, error: str | None = None) -> list[Call]:
        """Return the calls of the method that ended so."""
        found = list(self.api.calls)
        return [call for call in found if call.method == method and call.error == error]

    def refused(self) -> list[Call]:
        """Return every call that was refused."""
        return [call for call in list(self.api.calls) if call.error is not None]

    def fail(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let the next calls of the method (`*`: of any) go wrong."""
        self.faults.add(method, fault, times)

    def limit_rate(self, per_second: float | None, burst: int = 1) -> None:
        """Take so many messages a second in each channel, and answer 429 to the rest."""
        self.api.rate_limit = RateLimit(per_second, burst)

    def disconnect(self, reason: str) -> None:
        """Send every client away with one of Slack's reasons."""
        if reason not in REASONS:
            raise ValueError(f"Slack knows {', '.join(REASONS)}")
        self.sockets.disconnect(reason)

    def fall_silent(self) -> None:
        """Leave every socket open that is so now, and do nothing more with it."""
        self._loop.call_soon_threadsafe(self.sockets.fall_silent)

    def call_back(self, url: str, signing_secret: str) -> None:
        """Post clicks and events to that address from now on, signed, instead of on a socket."""
        self.sockets.callback = Callback(url, signing_secret)

    def redeliver(self, delivery: Delivery) -> None:
        """Send the same envelope again."""
        self.sockets.send_again(delivery)

    @contextmanager
    def holding(self) -> Iterator[list[Delivery]]:
        """Keep envelopes back; at the end they go out in the order of the list."""
        held: list[Delivery] = []
        self.sockets.held = held
        try:
            yield held
        finally:
            self.sockets.held = None
            for delivery in held:
                self.sockets.send_again(delivery)

    def _posted(self, message: Message) -> None:
        self.sockets.send("events_api", event_of(self.workspace, message))

    def _updated(self, message: Message) -> None:
        self.sockets.send("events_api", changed_event_of(self.workspace, message))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_SECONDS)

    async def _listen(self) -> None:
        application = web.Application(client_max_size=2**22)
        application.router.add_route("*", "/api/{method}", self.api.handle)
        application.router.add_get("/link/", self.sockets.connect)
        self._runner = web.AppRunner(application, shutdown_timeout=0.0, access_log=None)
        await self._runner.setup()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        await web.SockSite(self._runner, self._listener).start()

    async def _unlisten(self) -> None:
        runner, self._runner = self._runner, None
        if runner is None:
            return
        # asyncio forgets a connection that it has accepted when its listener closes before the
        # connection is set up, which takes a few turns.
        self._loop.remove_reader(self._listener)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        for site in list(runner.sites):
            await site.stop()
        await self.sockets.close()
        if runner.server is not None:
            for connection in list(runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()
        await runner.cleanup()


__all__ = ["APP_TOKEN", "BOT_TOKEN", "SlackStandIn"]
