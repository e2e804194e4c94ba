"""One OpenCode server over HTTP. It may hang, lie or flood: every reply has a limit."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from pynchy.sources.budget import EVENT_COST, EventBudget
from pynchy.sources.opencode.reading import WaitingPart, is_over, read_id

log = logging.getLogger(__name__)

CONNECTED = "server.connected"
MAX_DOUBLINGS = 5
_REPLY_SECONDS = 10.0
# To parse more would keep all others waiting, in a thread as well.
_MAX_REPLY = 1024 * 1024
# A larger one is left out: what it would have told is read at the next poll.
_MAX_EVENT = 64 * 1024
# So much of a stream is read in a second at most; the rest waits at the sender.
_STREAM_BYTES_PER_SECOND = 1024 * 1024
# So many lines are handled before others have their turn.
_LINES_AT_ONCE = 20
# For how long a server that floods is left alone, if it was only found.
_LEFT_ALONE_SECONDS = 300.0
# A stream says something every few seconds, and be it that it lives.
_STREAM_SILENCE_SECONDS = 60.0
_UNAUTHORIZED = 401
_NOT_FOUND = 404
_OK = range(200, 300)
_FEW_MESSAGES = 3
# What a model writes word by word: most of all events, and nothing that is looked at here.
_DELTA = b'"message.part.delta"'
_SYNC = b'"type":"sync"'
# Where half of a character may be.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class OpenCodeFailed(Exception):
    """The server did not do what it was asked; says why. `is_refused`: nobody listens there."""

    def __init__(self, why: str, *, is_refused: bool = False) -> None:
        super().__init__(why)
        self.is_refused = is_refused


class NotServed(OpenCodeFailed):
    """The server knows no such thing: it is of another version, or the thing is over."""


class ReplyTooLong(OpenCodeFailed):
    """The server says more than is read."""


class Flooded(OpenCodeFailed):
    """The server tells too much: it is not listened to for that long."""

    def __init__(self, rest_seconds: float) -> None:
        super().__init__("it floods its event stream, so it is only looked at now and then")
        self.rest_seconds = rest_seconds


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something that happened at the server, in one of its folders."""

    directory: str
    type: str
    properties: Mapping[str, Any]

    @property
    def session_id(self) -> str:
        """The session that it is about; empty if it does not say."""
        for holder in (self.properties, self.properties.get("part"), self.properties.get("info")):
            if isinstance(holder, dict) and (found := read_id(holder, "sessionID")):
                return found
        return ""

    @property
    def ids(self) -> set[str]:
        """The ids of what it says is over, whichever way it names them."""
        names = ("requestID", "permissionID", "id")
        return {read_id(self.properties, name) for name in names} - {""}

    @property
    def is_about_tools(self) -> bool:
        """False for what a model merely writes."""
        part = self.properties.get("part")
        return not isinstance(part, dict) or part.get("type") == "tool"


@dataclass(frozen=True, slots=True)
class Credential:
    """What a server wants to see before it answers."""

    user: str
    password: str = field(repr=False)

    def header(self) -> str:
        """Return it as HTTP carries it."""
        both = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(both).decode()}"


class OpenCodeServer:
    """The server at one address; one that is not trusted is left alone if it floods."""

    def __init__(
        self,
        url: str,
        http: aiohttp.ClientSession,
        credential: Credential | None = None,
        budget: EventBudget | None = None,
        *,
        is_trusted: bool = False,
    ) -> None:
        self.url = url
        self._http = http
        self._budget = budget or EventBudget()
        self._rest_seconds = 0.0 if is_trusted else _LEFT_ALONE_SECONDS
        self._headers = {"Authorization": credential.header()} if credential else {}

    async def get(self, path: str, **query: str) -> object:
        """Return what the server replies. Raise NotServed or OpenCodeFailed."""
        return await self._call("GET", path, query)

    async def post(self, path: str, body: object, **query: str) -> None:
        """Send it. Raise NotServed or OpenCodeFailed if the server does not take it."""
        await self._call("POST", path, query, body)

    async def tells_exactly(self) -> bool:
        """True if the server lists what its sessions wait for. Raise OpenCodeFailed."""
        try:
            return isinstance(await self.get("/permission"), list)
        except NotServed:
            await self.get("/session", limit="1")  # an older one has this at least
            return False

    async def list_of(self, path: str, directory: str = "") -> object:
        """Return what the server lists there; None if it knows no such list."""
        try:
            told = await self.get(path, directory=directory)
        except NotServed:
            return None
        return told if isinstance(told, list) else None

    async def messages(self, session_id: str, count: int) -> object:
        """Return the newest messages of a session: fewer if they are too long, none if each is."""
        for limit in dict.fromkeys((count, min(count, _FEW_MESSAGES), 1)):
            with suppress(ReplyTooLong):
                return await self.get(f"/session/{session_id}/message", limit=str(limit))
        return []

    async def has_ended(self, session_id: str, part: WaitingPart) -> bool:
        """True if the call is over that is said to wait."""
        if not part.message_id:
            return False
        with suppress(NotServed):
            message = await self.get(f"/session/{session_id}/message/{part.message_id}")
            return is_over(part, message)
        return False

    async def events(self) -> AsyncIterator[ServerEvent]:
        """Yield what happens at the server, in all of its folders if it can tell.

        The first is that the stream stands. Raise OpenCodeFailed when it ends.
        """
        path = "/global/event"
        try:
            async for event in self._stream(path):
                yield event
        except NotServed:
            async for event in self._stream("/event"):
                yield event
        raise OpenCodeFailed("its event stream has ended")

    async def _call(
        self, method: str, path: str, query: Mapping[str, str], body: object = None
    ) -> object:
        try:
            async with (
                asyncio.timeout(_REPLY_SECONDS),
                self._http.request(
                    method,
                    self.url + path,
                    params={name: value for name, value in query.items() if value},
                    json=body,
                    headers=self._headers,
                    allow_redirects=False,
                ) as reply,
            ):
                data = await _read(reply.content)
                return self._parsed(reply, data)
        except TimeoutError as exc:
            raise OpenCodeFailed("it does not answer") from exc
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise _failed(exc) from exc

    def _parsed(self, reply: aiohttp.ClientResponse, data: bytes) -> object:
        if reply.status == _NOT_FOUND:
            raise NotServed(f"{reply.url.path} is not there")
        if reply.status == _UNAUTHORIZED:
            raise OpenCodeFailed("it wants a password: see password_env in [sources.opencode]")
        if reply.status not in _OK:
            raise OpenCodeFailed(f"it answers {reply.status}")
        if not data or reply.method == "POST":
            return None
        try:
            return _parse(data)
        except ValueError as exc:
            # An older one answers what it does not know with a page for browsers.
            raise NotServed(f"{reply.url.path} is not JSON") from exc

    async def _stream(self, path: str) -> AsyncIterator[ServerEvent]:
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=_REPLY_SECONDS, sock_read=_STREAM_SILENCE_SECONDS
        )
        headers = {**self._headers, "Accept": "text/event-stream"}
        try:
            async with self._http.get(
                self.url + path, headers=headers, timeout=limits, allow_redirects=False
            ) as reply:
                if reply.status == _NOT_FOUND or reply.content_type != "text/event-stream":
                    raise NotServed(f"{path} is no event stream")
                if reply.status not in _OK:
                    raise OpenCodeFailed(f"it answers {reply.status}")
                count = 0
                async for line in _lines(reply.content):
                    if event := _event(line):
                        yield event
                    await self._pay(EVENT_COST if event else 1, is_turn=count == 0)
                    count = (count + 1) % _LINES_AT_ONCE
        except TimeoutError as exc:
            raise OpenCodeFailed("its event stream is silent") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise _failed(exc) from exc

    async def _pay(self, cost: int, *, is_turn: bool) -> None:
        """Wait if the server has told too much, and let others have their turn. Raise Flooded."""
        pause = self._budget.spend(cost)
        if self._budget.is_flooded:
            self._budget.begin_anew()
            raise Flooded(self._rest_seconds)
        if pause or is_turn:
            await asyncio.sleep(pause)


def new_http() -> aiohttp.ClientSession:
    """Return what the servers are spoken to with: no proxy, no cookies."""
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        connector=aiohttp.TCPConnector(limit_per_host=8, limit=64),
    )


async def _read(content: aiohttp.StreamReader) -> bytes:
    found = bytearray()
    async for chunk in content.iter_chunked(64 * 1024):
        found += chunk
        if len(found) > _MAX_REPLY:
            raise ReplyTooLong("its reply is too long")
    return bytes(found)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, slowly if it floods; a line that is too long is left out."""
    loop = asyncio.get_running_loop()
    buffer, is_skipping = bytearray(), False
    due = loop.time()
    async for chunk in content.iter_any():
        searched = len(buffer)
        buffer += chunk
        begin = 0
        while (end := buffer.find(b"\n", max(begin, searched))) >= 0:
            if not is_skipping and end - begin <= _MAX_EVENT:
                yield bytes(buffer[begin:end])
            begin, is_skipping = end + 1, False
        del buffer[:begin]
        if len(buffer) > _MAX_EVENT:
            buffer.clear()
            is_skipping = True
        # What was read too much is carried over to the next chunk.
        due = max(due, loop.time() - 1.0) + len(chunk) / _STREAM_BYTES_PER_SECOND
        if due > loop.time():
            await asyncio.sleep(due - loop.time())


def _event(line: bytes) -> ServerEvent | None:
    if not line.startswith(b"data:") or _DELTA in line[:400] or _SYNC in line[:400]:
        return None
    try:
        told = _parse(line[5:])
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    directory = told.get("directory")
    payload = told.get("payload", told)
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        return None
    properties = payload.get("properties")
    return ServerEvent(
        directory if isinstance(directory, str) else "",
        payload["type"],
        properties if isinstance(properties, dict) else {},
    )


def _parse(data: bytes) -> object:
    """Return the JSON value. Raise ValueError, also for one that is nested too deeply."""
    try:
        value = json.loads(data, parse_float=_number, parse_constant=_number)
        return _without_halves(value) if _HALF.search(data) else value
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _number(text: str) -> float | str:
    """Return the number; as it is written, where nothing can be written with it."""
    number = float(text)
    return number if math.isfinite(number) else text


def _without_halves(value: object) -> object:
    """Return the value without halves of characters, which nothing can be written with."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case list():
            return [_without_halves(item) for item in value]
        case dict():
            return {str(_without_halves(k)): _without_halves(v) for k, v in value.items()}
    return value


def _failed(exc: Exception) -> OpenCodeFailed:
    if isinstance(exc, OpenCodeFailed):
        return exc
    if isinstance(exc, aiohttp.ClientConnectorError):
        is_refused = exc.os_error.errno == errno.ECONNREFUSED
        why = "nobody listens there" if is_refused else "it cannot be reached"
        return OpenCodeFailed(why, is_refused=is_refused)
    return OpenCodeFailed(type(exc).__name__)


class EventListener:
    """Hands on what a server tells, and leaves one that floods.

    `problem` says that it is not listened to just now.
    """

    def __init__(
        self, server: OpenCodeServer, pause_seconds: float, hear: Callable[[ServerEvent], None]
    ) -> None:
        self.problem: str | None = None
        self._server = server
        self._pause_seconds = pause_seconds
        self._hear = hear
        self._failures = 0

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            rest_seconds = await self._listen()
            self._failures += 1
            pause = self._pause_seconds * 2 ** min(self._failures, MAX_DOUBLINGS)
            await asyncio.sleep(max(rest_seconds, pause))
            self.problem = None

    async def _listen(self) -> float:
        """Listen until the stream ends. Return for how long the server is left alone."""
        try:
            async for event in self._server.events():
                if event.type == CONNECTED:
                    self._failures = 0
                self._hear(event)
        except Flooded as exc:
            self.problem = f"OpenCode at {self._server.url}: {exc}"
            log.warning("opencode.flooded", extra={"url": self._server.url})
            return exc.rest_seconds
        except OpenCodeFailed as exc:
            log.debug("opencode.stream_ended", extra={"url": self._server.url, "why": str(exc)})
        except Exception:  # a stream of rubbish costs nothing but itself
            log.exception("opencode.stream_unreadable", extra={"url": self._server.url})
        return 0.0
