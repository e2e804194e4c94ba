"""Run the HTTP interface on a socket of its own, and stop it in order.

Who connects and says nothing is sent home, and makes room for others long before the host runs out
of descriptors: its mailboxes need them more.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pynchy.config import HttpSettings
from pynchy.errors import HostError
from pynchy.http.auth import host_name

log = logging.getLogger(__name__)

HEAD_SECONDS = 10.0
_BACKLOG = 2_048
# asyncio takes in so many at once before it looks at any of them.
_ACCEPT_AT_ONCE = 64
_MAX_CONNECTIONS = 1_200
# uvicorn ticks ten times a second.
_CUT_TICKS = 50


class Connection(H11Protocol):
    """uvicorn's connection, which must get to the point: say what it wants, whole and in time."""

    _hurry: asyncio.TimerHandle | None = None
    since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time that a request has to arrive, and send the slowest one home."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._hurry_up()
        if len(self.connections) > most_connections():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Let a whole request take its time, and nothing else."""
        super().data_received(data)
        if self.is_incomplete:
            self._hurry_up()
        else:
            self._calm_down()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time."""
        self._calm_down()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse rubbish. Whatever was being answered before it has nobody left to hear it."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        with suppress(h11.LocalProtocolError):  # a response had begun already
            super().send_400_response(msg)
        self.transport.close()

    @property
    def is_idle(self) -> bool:
        """True while it is open and no request is being answered."""
        answers = self.cycle is not None and not self.cycle.response_complete
        return not answers and not self.transport.is_closing()

    @property
    def is_incomplete(self) -> bool:
        """True while it is open and nothing, or only a part, of a request has come."""
        comes = self.cycle is not None and self.cycle.more_body and not self.transport.is_closing()
        return self.is_idle or comes

    def _hurry_up(self) -> None:
        if self._hurry is None:
            self._hurry = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _calm_down(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def _make_room(self) -> None:
        others: set[Any] = self.connections - {self}
        if slow := [connection for connection in others if connection.is_incomplete]:
            min(slow, key=lambda connection: connection.since).transport.abort()


def most_connections() -> int:
    """Return how many may be open: at most half of the descriptors that this process may have."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if files < 0 else min(_MAX_CONNECTIONS, files // 2)


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: the host decides when to stop."""

    def __init__(self, app: ASGIApp) -> None:
        self._leaving: set[Any] = set()
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                backlog=_ACCEPT_AT_ONCE,
                limit_concurrency=most_connections() + 1,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=3,
                h11_max_incomplete_event_size=32 * 1024,
            )
        )

    async def serve_on(self, sock: socket.socket) -> None:
        """Answer until told to exit. A host that nobody can reach is of no use: raise HostError."""
        await self.serve([sock])
        if not self.should_exit:
            raise HostError("the HTTP interface has ended by itself")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept, and let more of them queue than are taken in at once."""
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(_BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        """Cut off, now and then, whoever is to go and does not take in what was sent last."""
        if counter % _CUT_TICKS == 0:
            leaving = {c for c in self.server_state.connections if c.transport.is_closing()}
            for connection in leaving & self._leaving:
                connection.transport.abort()
            self._leaving = leaving
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def listen(http: HttpSettings) -> socket.socket:
    """Return a listening socket at the port; at a free one if nobody chose it and it is taken.

    Raise HostError if the address is not one of this machine, or a port that was chosen is taken.
    """
    try:
        return _bind(http.host, http.port)
    except OSError as exc:
        if http.port == 0 or exc.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc
        if "port" in http.model_fields_set:
            why = "is taken" if exc.errno == errno.EADDRINUSE else "is not for this user"
            raise HostError(
                f"port {http.port} of {http.host} {why}: stop what listens there, or choose "
                "another with --port or http.port in the settings (0: any free one)"
            ) from exc
    log.warning("http.port_taken", extra={"port": http.port})
    try:
        return _bind(http.host, 0)
    except OSError as exc:
        raise HostError(f"http.host: {http.host} cannot be used ({exc.strerror})") from exc


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        # Two may bind with SO_REUSEADDR: only here is it known who has the port.
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def url_of(sock: socket.socket) -> str:
    """Return the address under which the socket is reached from this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def names_of(sock: socket.socket, http: HttpSettings) -> list[str]:
    """Return the names under which a request may ask for us: anything else is refused."""
    bound = str(sock.getsockname()[0])
    bound = f"[{bound}]" if ":" in bound else bound
    public = host_name(urlsplit(http.public_url).netloc)
    return ["127.0.0.1", "localhost", "[::1]", bound, public or bound, *http.allowed_hosts]
