"""What keeps Slack able to reach us: a socket (Socket Mode), or an HTTP endpoint of our own.

Either is tried until it works, watched, and started again when it fails.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from pynchy.channels.slack.web import TokenRefused, Web
from pynchy.errors import ChannelUnavailable
from pynchy.http_connections import Connection, HttpServer, bind

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_RETRY_MAX_SECONDS = 60.0

_CONNECT_SECONDS = 10.0
# Slack's library reconnects by itself; after so many looks without success it is restarted.
_LOOKS = 4
_DOUBT_SECONDS = 300.0
_TICKET = re.compile(r"(ticket=)[^&\s'\")]+")

PATH = "/slack/events"
_MAX_BODY_BYTES = 1024 * 1024
_NO_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_POLL_SECONDS = 60.0


class Link(ABC):
    """A way in for clicks and replies, for as long as `run` runs."""

    def __init__(self) -> None:
        self.problem: str | None = "not connected yet"
        # True while Slack refuses a token: nothing can work until someone changes it.
        self.refused = False

    @abstractmethod
    async def connect(self) -> None:
        """Open the way in. Raise ChannelUnavailable with what is wrong."""

    @abstractmethod
    async def watch(self) -> None:
        """Note what is wrong meanwhile. Raise ChannelUnavailable when it must be opened again."""

    @abstractmethod
    async def close(self) -> None:
        """Close it if it is open."""

    async def run(self) -> None:
        """Open, watch, and open again, for ever."""
        wait = _RETRY_SECONDS
        while True:
            try:
                await self.connect()
                self.note(None)
                wait = _RETRY_SECONDS
                await self.watch()
            except ChannelUnavailable as exc:
                self.note(exc)
            except Exception as exc:
                self.problem = f"the connection failed ({type(exc).__name__})"
                log.exception("slack.connection_failed")
            await self._close()
            await asyncio.sleep(wait)
            wait = min(wait * 2, _RETRY_MAX_SECONDS)

    def note(self, trouble: ChannelUnavailable | None) -> None:
        """Say what is wrong, or that nothing is any more."""
        self.refused = isinstance(trouble, TokenRefused)
        self.problem = None if trouble is None else str(trouble)
        if trouble is not None:
            log.warning("slack.disconnected", extra={"why": self.problem})

    async def _close(self) -> None:
        try:
            await self.close()
        except Exception:
            log.exception("slack.close_failed")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a link serves: `identify` checks the bot token, `arrived` hears of a connection."""

    identify: Callable[[], Awaitable[None]]
    arrived: Callable[[], None]


class Socket(Link):
    """Keeps one socket open."""

    def __init__(
        self, app: AsyncApp, web: Web, app_token: str, ping_seconds: float, owner: Owner
    ) -> None:
        super().__init__()
        self._app = app
        self._web = web
        self._app_token = app_token
        self._ping_seconds = ping_seconds
        self._owner = owner
        self._handler: AsyncSocketModeHandler | None = None

    async def connect(self) -> None:
        """See Link."""
        await self._owner.identify()
        await self._check_app_token()
        self._handler = handler = AsyncSocketModeHandler(
            self._app,
            self._app_token,
            logger=_discreet_logger(),
            web_client=self._web.client,
            ping_interval=self._ping_seconds,
        )
        handler.client.message_listeners.append(self._hear)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await handler.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError as exc:
            raise ChannelUnavailable("Slack's socket does not open") from exc

    async def watch(self) -> None:
        """See Link."""
        silent, quiet_seconds = 0, 0.0
        while silent < _LOOKS:
            await asyncio.sleep(self._ping_seconds)
            silent = 0 if await self._is_alive() else silent + 1
            quiet_seconds += self._ping_seconds
            if not silent and quiet_seconds >= _DOUBT_SECONDS:
                # A socket can look alive and bring nothing: see whether something was said.
                quiet_seconds = 0.0
                await self._doubt()
        raise ChannelUnavailable("the connection to Slack went silent; connecting again")

    async def _is_alive(self) -> bool:
        if self._handler is not None and await self._handler.client.is_connected():
            if not self.refused:
                self.problem = None
            return True
        self.problem = "the connection to Slack is interrupted; trying again"
        return False

    async def _doubt(self) -> None:
        """Look at the token, and for replies; a socket that works is kept whatever comes of it."""
        try:
            await self._owner.identify()
        except ChannelUnavailable as exc:
            self.note(exc)
        else:
            self.refused = False
            self._owner.arrived()

    async def close(self) -> None:
        """See Link."""
        handler, self._handler = self._handler, None
        if handler is not None:
            await handler.close_async()  # type: ignore[no-untyped-call]

    async def _check_app_token(self) -> None:
        """Look at the token first: connecting would try a wrong one for ever."""
        client = self._web.client
        try:
            await self._web.call(client.apps_connections_open, app_token=self._app_token)
        except TokenRefused as exc:
            raise TokenRefused(f"the app token (xapp-…) does not work: {exc}") from exc

    async def _hear(self, _client: object, message: dict[str, Any], _raw: object) -> None:
        if message.get("type") != "hello":
            return
        if (count := message.get("num_connections") or 1) > 1:
            log.warning("slack.several_sockets", extra={"count": count})
        self._owner.arrived()


class _Discreet(logging.Filter):
    """Keeps the socket's address out of the log: whoever has its ticket can listen to us."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TICKET.sub(r"\1…", record.getMessage()), None
        # A traceback ends in the same words, unaltered.
        record.exc_info = record.exc_text = None
        return True


def _discreet_logger() -> logging.Logger:
    """Return what Slack's library writes to about the socket."""
    made = logging.getLogger("slack_sdk.socket_mode")
    made.setLevel(logging.ERROR)
    if not any(isinstance(each, _Discreet) for each in made.filters):
        made.addFilter(_Discreet())
    return made


class _SlackConnection(Connection):
    """Slack makes few; whoever else makes them must leave the host enough."""

    share = 16


class Endpoint(Link):
    """Listens at an address of its own. Anybody may connect: only Slack can sign."""

    def __init__(self, app: AsyncApp, host: str, port: int, owner: Owner) -> None:
        super().__init__()
        self._app = app
        self._host = host
        self._port = port
        self._owner = owner
        self._server: HttpServer | None = None
        self._serving: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """See Link."""
        await self._owner.identify()
        try:
            socks = await asyncio.to_thread(_listen, self._host, self._port)
        except OSError as exc:
            where = f"{self._host}:{self._port}"
            raise ChannelUnavailable(f"cannot listen at {where}: {exc.strerror}") from exc
        app = Starlette(routes=[Route(PATH, self._take, methods=["POST"])])
        self._server = HttpServer(app, _SlackConnection)
        self._serving = asyncio.create_task(self._server.serve_on(*socks), name="slack endpoint")
        self._owner.arrived()

    async def watch(self) -> None:
        """See Link. Slack may call us though we cannot call it: go on listening."""
        while self._serving is not None:
            ended, _ = await asyncio.wait({self._serving}, timeout=_POLL_SECONDS)
            if ended:
                raise ChannelUnavailable("the endpoint for Slack has ended; opening it again")
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
        server, self._server = self._server, None
        serving, self._serving = self._serving, None
        if server is not None and serving is not None:
            server.should_exit = True
            await serving

    async def _take(self, request: Request) -> Response:
        """Hand the request to Slack's library, which looks at its signature first."""
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    return Response("too large", 413)
            asked = to_async_bolt_request(request, bytes(body))
        except (ClientDisconnect, UnicodeDecodeError):
            return Response("not a whole text in UTF-8", 400)
        return to_starlette_response(await self._app.async_dispatch(asked))


def _listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at each address of that name. Raise OSError if none can."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    socks: list[socket.socket] = []
    for address in addresses:
        try:
            socks.append(bind(address, port, one_family=len(addresses) > 1))
        except OSError as exc:
            # A name may stand for an address of a family that this machine does not have.
            if exc.errno in _NO_ADDRESS and (socks or address != addresses[-1]):
                continue
            for sock in socks:
                sock.close()
            raise
    return socks
