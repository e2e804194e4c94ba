"""Socket Mode: envelopes go out on any open socket, and each acknowledgement is noted.

A click that nobody acknowledges within three seconds is lost, and the person sees an error. An
event is sent once more. Neither is kept for a client that is not connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import threading
import time
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web
from tests.standins.slack.callback import Callback
from tests.standins.slack.limits import Json
from tests.standins.slack.workspace import APP

ACK_SECONDS = 3.0
MAX_SOCKETS = 10
REASONS = ("warning", "refresh_requested", "link_disabled", "too_many_websockets")


@dataclass(eq=False, slots=True)
class Delivery:
    """One envelope and what became of it; times are of the monotonic clock."""

    envelope: Json
    sent_at: list[float] = field(default_factory=list)
    acked_at: float | None = None
    reply: Json | None = None
    _acked: threading.Event = field(default_factory=threading.Event)

    @property
    def id(self) -> str:
        """The envelope's id."""
        return str(self.envelope["envelope_id"])

    @property
    def in_time(self) -> bool:
        """True if it was acknowledged within three seconds of being sent."""
        if self.acked_at is None or not self.sent_at:
            return False
        return self.acked_at - self.sent_at[0] <= ACK_SECONDS

    def wait(self, seconds: float = ACK_SECONDS + 1) -> bool:
        """Wait for the acknowledgement, and return whether it came in time."""
        self._acked.wait(seconds)
        return self.in_time

    def note_ack(self, reply: Json | None) -> None:
        """The client has it."""
        if self.acked_at is None:
            self.acked_at = time.monotonic()
            self.reply = reply
        self._acked.set()


class Sockets:
    """The open sockets of the app, in the server's loop; `send` may be called anywhere."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.deliveries: list[Delivery] = []
        self.held: list[Delivery] | None = None
        self.opened = 0
        self._known: dict[str, Delivery] = {}
        # Set: no ticket opens a socket.
        self.closed = False
        self._tickets: set[str] = set()
        self._open: list[web.WebSocketResponse] = []
        self._turn = itertools.count()
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        # With an address, envelopes are posted there instead, as without Socket Mode.
        self.callback: Callback | None = None

    @property
    def count(self) -> int:
        """How many sockets are open."""
        return len(self._open)

    def ticket(self) -> str:
        """Return a ticket for one connection."""
        ticket = secrets.token_hex(8)
        self._tickets.add(ticket)
        return ticket

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """Serve one socket for as long as it is open."""
        ticket = request.query.get("ticket", "")
        if self.closed or ticket not in self._tickets:
            return web.Response(status=403, text="this ticket is unknown or used")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        if len(self._open) >= MAX_SOCKETS:
            await socket.send_json(_disconnect("too_many_websockets"))
            await socket.close()
            return socket
        self._open.append(socket)
        self.opened += 1
        await socket.send_json(_hello(len(self._open)))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._receive(str(message.data))
        finally:
            with contextlib.suppress(ValueError):
                self._open.remove(socket)
        return socket

    def send(self, kind: str, payload: Json, *, accepts_response: bool = False) -> Delivery:
        """Send a new envelope, or keep it back while envelopes are held."""
        envelope = {
            "envelope_id": secrets.token_hex(16),
            "type": kind,
            "payload": payload,
            "accepts_response_payload": accepts_response,
        }
        if kind == "events_api":
            envelope |= {"retry_attempt": 0, "retry_reason": ""}
        delivery = Delivery(envelope)
        self.deliveries.append(delivery)
        self._known[delivery.id] = delivery
        if self.held is not None:
            self.held.append(delivery)
        else:
            self.send_again(delivery)
        return delivery

    def send_again(self, delivery: Delivery) -> None:
        """Put the envelope on a socket, also if it was sent before."""
        self._loop.call_soon_threadsafe(self._start, delivery)

    def disconnect(self, reason: str) -> None:
        """Tell every client to go, and close the sockets soon after."""
        self._loop.call_soon_threadsafe(self._spawn, self._dismiss(reason))

    async def close(self) -> None:
        """Cut every connection."""
        for socket in list(self._open):
            transport = socket._req.transport if socket._req else None  # noqa: SLF001 - cut, not closed
            if transport is not None:
                transport.abort()
        self._open.clear()
        for task in self._tasks:
            task.cancel()

    def _start(self, delivery: Delivery) -> None:
        self._spawn(self._deliver(delivery))

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        await self._put(delivery)
        if not delivery.sent_at or delivery.envelope["type"] != "events_api":
            return
        await asyncio.sleep(ACK_SECONDS)
        if delivery.acked_at is None:
            delivery.envelope |= {"retry_attempt": 1, "retry_reason": "timeout"}
            await self._put(delivery)

    def fall_silent(self) -> None:
        """Neither answer pings nor read what comes, on every socket that is open now."""
        for socket in self._open:
            transport = socket._req.transport if socket._req else None  # noqa: SLF001 - no other way
            if isinstance(transport, asyncio.Transport):
                transport.pause_reading()
        self._open.clear()

    async def _put(self, delivery: Delivery) -> None:
        if self.callback is not None:
            delivery.sent_at.append(time.monotonic())
            if await self.callback.send(delivery.envelope):
                delivery.note_ack(None)
            return
        if not self._open:
            return
        socket = self._open[next(self._turn) % len(self._open)]
        delivery.sent_at.append(time.monotonic())
        with contextlib.suppress(ConnectionError):
            await socket.send_json(delivery.envelope)

    def _receive(self, data: str) -> None:
        body = json.loads(data)
        delivery = self._known.get(body.get("envelope_id", ""))
        if delivery is not None:
            delivery.note_ack(body.get("payload"))

    async def _dismiss(self, reason: str) -> None:
        for socket in list(self._open):
            with contextlib.suppress(ConnectionError):
                await socket.send_json(_disconnect(reason))
            if reason != "warning":
                with contextlib.suppress(ValueError):
                    self._open.remove(socket)
                await socket.close()


def _hello(count: int) -> Json:
    return {
        "type": "hello",
        "num_connections": count,
        "connection_info": {"app_id": APP},
        "debug_info": {
            "host": "stand-in",
            "build_number": 1,
            "approximate_connection_time": 18_060,
        },
    }


def _disconnect(reason: str) -> Json:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "stand-in"}}
