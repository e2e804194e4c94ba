"""HTTP servers of ours, and connections that must not use up what all need.

Who connects and says nothing, or asks and takes nothing in, is sent home, and makes room for others
long before the host runs out of descriptors: its mailboxes need them more.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from heapq import nsmallest
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pynchy.errors import HostError

HEAD_SECONDS = 10.0
TAKE_SECONDS = 30.0
# In the scope of a request from somebody who may see everything.
KNOWN = "pynchy.known"
_BACKLOG = 2_048
# asyncio takes in so many at once before it looks at any of them.
_ACCEPT_AT_ONCE = 64
_MAX_CONNECTIONS = 1_200
# One in so many may be there besides.
_RESERVE = 4
# uvicorn ticks ten times a second.
_CUT_TICKS = 50


class Connection(H11Protocol):
    """uvicorn's connection, which must get to the point: say what it wants, and take the answer.

    Both whole and in time. Where there are too many, one that does neither makes room.
    """

    # It has one in so many of the descriptors that this process may have.
    share = 2

    _hurry: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    since = 0.0

    @classmethod
    def most(cls) -> int:
        """Return how many may be open."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 2 * _MAX_CONNECTIONS if files < 0 else min(2 * _MAX_CONNECTIONS, files)
        return most // cls.share

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time that a request has to arrive, and send the slowest one home."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._hurry_up()
        is_full = len(self.connections) > self.most()
        # uvicorn itself would count those who are on their way out, and refuse the wrong ones.
        self.limit_concurrency = 0 if is_full and not self._makes_room() else None

    def data_received(self, data: bytes) -> None:
        """Let a whole request take its time, and nothing else."""
        super().data_received(data)
        if self.is_incomplete:
            self._hurry_up()
        else:
            self._calm_down()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the times."""
        self._calm_down()
        self._is_taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the time to take in what was sent: there is more than is kept for anybody."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(TAKE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Let more be sent."""
        super().resume_writing()
        self._is_taken()

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

    @property
    def is_unread(self) -> bool:
        """True while something that was sent is not taken in, even if it is to be closed then."""
        return self.transport.get_write_buffer_size() > 0

    @property
    def is_gone(self) -> bool:
        """True once it is closed and nothing more is to be sent."""
        return self.transport.is_closing() and not self.is_unread

    @property
    def is_known(self) -> bool:
        """True if its last request was from somebody who may see everything."""
        return bool(self.scope and self.scope.get(KNOWN))

    def _is_taken(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _hurry_up(self) -> None:
        if self._hurry is None:
            self._hurry = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _calm_down(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def _makes_room(self) -> bool:
        """Send home whoever is too many. Return False if too few can go: then this one is refused.

        Who is just being answered cannot. Most of them are done in a moment, so a few more are let
        in: if not, a crowd could keep out everybody whose request comes in that moment.
        """
        ours: set[Any] = set(self.connections)
        here = [each for each in ours if not each.is_gone]
        slow = [each for each in here if each.is_incomplete or each.is_unread]
        over = len(here) - self.most()
        leaving = nsmallest(over, (each for each in slow if each is not self), key=_turn_to_go)
        for each in leaving:
            each.transport.abort()
        return over - len(leaving) <= self.most() // _RESERVE


def _turn_to_go(connection: Connection) -> tuple[bool, bool, float]:
    """Strangers go before those who may see everything, then who does not read, then by age."""
    return connection.is_known, not connection.is_unread, connection.since


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: the host decides when to stop."""

    def __init__(self, app: ASGIApp, connection: type[Connection] = Connection) -> None:
        self._leaving: set[Any] = set()
        super().__init__(
            uvicorn.Config(
                app,
                http=connection,
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                date_header=False,
                backlog=_ACCEPT_AT_ONCE,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=3,
                h11_max_incomplete_event_size=32 * 1024,
            )
        )

    async def serve_on(self, *socks: socket.socket) -> None:
        """Answer until told to exit. A host that nobody can reach is of no use: raise HostError."""
        await self.serve(list(socks))
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


def bind(host: str, port: int, *, one_family: bool = False) -> socket.socket:
    """Return a socket that listens there. Raise OSError if that cannot be.

    With `one_family` one for IPv6 leaves the port of IPv4 to another.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one_family and family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        # Two may bind with SO_REUSEADDR: only here is it known who has the port.
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
