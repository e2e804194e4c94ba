"""An OpenCode server on loopback, of today or of an older kind, that does what a test says.

It is strict: a password that it wants must come, and every request is kept, so that a test sees
what was sent to whom.
"""

import asyncio
import base64
import itertools
import json
import time
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

OWN = "/srv/shop"

_PAGE = "<!doctype html><title>OpenCode</title>"


class OpenCodeStandIn:
    """One server. An `is_older` one has neither /permission nor /question, and answers a page."""

    def __init__(self, *, is_older: bool = False, password: str = "", port: int = 0) -> None:
        self.is_older = is_older
        self.password = password
        self.port = port
        self.sessions: dict[str, Json] = {}
        self.busy: set[str] = set()
        self.messages: dict[str, list[Json]] = {}
        self.todos: dict[str, list[Json]] = {}
        self.permissions: dict[str, Json] = {}
        self.questions: dict[str, Json] = {}
        self.requests: list[tuple[str, str, Json]] = []
        self.headers: list[dict[str, str]] = []
        self.replies: list[tuple[str, Json]] = []
        self.fail_with: int | None = None
        # What it fails at, and the folders that it was asked about.
        self.broken_folders: set[str] = set()
        self.broken_paths: set[str] = set()
        self.folders: list[str] = []
        self.rubbish: dict[str, bytes] = {}
        self.is_silent = False
        self.unanswered: list[str] = []
        self.redirect_to = ""
        self.take_none = False
        self.hang_after_taking = False
        self.failed_posts = 0
        self._numbers = itertools.count(1)
        self._streams: set[web.StreamResponse] = set()
        self._runner: web.AppRunner | None = None
        self._stopped = asyncio.Event()
        self._cut = asyncio.Event()

    @property
    def has_listener(self) -> bool:
        """True if somebody follows its events."""
        return bool(self._streams)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(middlewares=[self._guard])
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._stopped = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # noqa: SLF001

    async def stop(self) -> None:
        """End as a killed process does: every connection breaks."""
        self._stopped.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def cut(self) -> None:
        """Break every event stream that stands; another may be opened."""
        self._cut.set()
        self._cut = asyncio.Event()

    # What sessions do.

    def session(self, title: str = "Mend it", parent: str = "", directory: str = OWN) -> str:
        found = f"ses_{next(self._numbers):026d}"
        now = time.time() * 1_000
        self.sessions[found] = {
            "id": found,
            "title": title,
            "directory": directory,
            "time": {"created": now, "updated": now},
            **({"parentID": parent} if parent else {}),
        }
        self.messages[found] = [self._message(found, "user", [{"type": "text", "text": "Go"}])]
        return found

    def run_tool(
        self,
        session: str,
        tool: str,
        seconds_ago: float | None = 0.0,
        status: str = "running",
        **given: Any,
    ) -> str:
        """Let a session call a tool, since so many seconds; None: it does not say since when."""
        call = f"call_{next(self._numbers)}"
        start = None if seconds_ago is None else (time.time() - seconds_ago) * 1_000
        part = {
            "id": f"prt_{next(self._numbers):026d}",
            "type": "tool",
            "callID": call,
            "tool": tool,
            "state": {"status": status, "input": given, "time": {"start": start}},
        }
        if status == "completed":
            part["state"]["time"]["end"] = time.time() * 1_000  # type: ignore[index]
        self.messages[session].append(self._message(session, "assistant", [part]))
        self.touch(session)
        return call

    def complete(self, session: str, call: str) -> None:
        for message in self.messages[session]:
            for part in message["parts"]:
                if part.get("callID") == call:
                    part["state"]["status"] = "completed"
                    part["state"]["time"]["end"] = time.time() * 1_000
        self.touch(session)

    def say(self, session: str, role: str, text: str) -> None:
        part = {"type": "text", "text": text}
        self.messages[session].append(self._message(session, role, [part]))
        self.touch(session)

    def touch(self, session: str) -> None:
        self.sessions[session]["time"]["updated"] = time.time() * 1_000 + next(self._numbers)

    def ask_permission(self, session: str, command: str) -> str:
        found = f"per_{next(self._numbers):026d}"
        self.permissions[found] = {
            "id": found,
            "sessionID": session,
            "permission": "bash",
            "patterns": [command],
            "metadata": {"command": command},
            "always": ["*"],
        }
        self.busy.add(session)
        return found

    def ask(self, session: str, text: str, *labels: str) -> str:
        found = f"que_{next(self._numbers):026d}"
        options = [{"label": label, "description": ""} for label in labels]
        asked = {"question": text, "header": "H", "options": options}
        self.questions[found] = {"id": found, "sessionID": session, "questions": [asked]}
        self.busy.add(session)
        return found

    async def publish(self, kind: str, directory: str = "", **properties: Any) -> None:
        """Tell every stream of an event, in the server's own folder unless told otherwise."""
        event: Json = {"type": kind, "properties": properties}
        told = {"directory": directory, "payload": event} if directory else event
        await self.send(json.dumps(told).encode())

    async def send(self, data: bytes) -> None:
        """Put a line into every stream, whatever it is."""
        await self.send_raw(b"data: " + data + b"\n\n")

    async def send_raw(self, data: bytes) -> None:
        """Put bytes into every stream."""
        for stream in [*self._streams]:
            try:
                await stream.write(data)
            except ConnectionError:
                self._streams.discard(stream)

    def _message(self, session: str, role: str, parts: list[Json]) -> Json:
        number = f"msg_{next(self._numbers):026d}"
        return {"info": {"id": number, "sessionID": session, "role": role}, "parts": parts}

    # What it answers.

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        wanted = base64.b64encode(f"opencode:{self.password}".encode()).decode()
        if self.password and request.headers.get("Authorization") != f"Basic {wanted}":
            return web.Response(status=401)
        if self.is_silent:
            self.unanswered.append(request.path)
            await self._stopped.wait()
        if self.redirect_to:
            raise web.HTTPTemporaryRedirect(self.redirect_to + request.path)
        if self.fail_with is not None:
            self.failed_posts += request.method == "POST"
            return web.Response(status=self.fail_with, text="no")
        if request.path in self.rubbish:
            return web.Response(body=self.rubbish[request.path], content_type="application/json")
        reply: web.StreamResponse = await handler(request)
        return reply

    async def _handle(self, request: web.Request) -> web.StreamResponse:  # noqa: C901, PLR0912 - a table of routes
        body = await request.json() if request.can_read_body else {}
        self.requests.append((request.method, request.path, body))
        folder = request.query.get("directory", OWN)
        self.folders.append(folder)
        if folder in self.broken_folders or request.path in self.broken_paths:
            return web.Response(status=500, text="no")
        match request.method, request.path.strip("/").split("/"):
            case "GET", ["event"]:
                return await self._stream(request)
            case "GET", ["global", "event"] if not self.is_older:
                return await self._stream(request)
            case "GET", ["path"]:
                return web.json_response({"directory": OWN})
            case "GET", ["session"]:
                return web.json_response([*self.sessions.values()])
            case "GET", ["session", "status"]:
                busy = [name for name in self.busy if self._folder_of(name) == folder]
                return web.json_response({name: {"type": "busy"} for name in busy})
            case "GET", ["session", name, "message"]:
                limit = int(request.query.get("limit", "100"))
                return web.json_response(self.messages.get(name, [])[-limit:])
            case "GET", ["session", name, "message", number] if not self.is_older:
                found = [m for m in self.messages.get(name, []) if m["info"]["id"] == number]
                return web.json_response(found[0]) if found else web.Response(status=404)
            case "GET", ["session", name, "todo"]:
                return web.json_response(self.todos.get(name, []))
            case "POST", ["session", name, "prompt_async"]:
                self.replies.append((request.path, body))
                self.say(name, "user", body["parts"][0]["text"])
                return web.Response(status=204)
            case "GET", ["permission"] if not self.is_older:
                return web.json_response(self._in(folder, self.permissions))
            case "GET", ["question"] if not self.is_older:
                return web.json_response(self._in(folder, self.questions))
            case "POST", ["permission" | "question" as kind, name, "reply" | "reject"]:
                return await self._reply(request.path, kind, name, body, folder)
        if self.is_older:
            return web.Response(text=_PAGE, content_type="text/html")
        return web.Response(status=404)

    def _folder_of(self, session: str) -> str:
        return str(self.sessions.get(session, {}).get("directory", OWN))

    def _in(self, folder: str, asked: dict[str, Json]) -> list[Json]:
        """Return what is asked in one folder: nothing of another is told there."""
        return [one for one in asked.values() if self._folder_of(one["sessionID"]) == folder]

    async def _reply(
        self, path: str, kind: str, name: str, body: Json, folder: str
    ) -> web.Response:
        open_ones = self.permissions if kind == "permission" else self.questions
        if self.take_none or name not in {one["id"] for one in self._in(folder, open_ones)}:
            return web.Response(status=404)
        asked = open_ones.pop(name)
        self.replies.append((path, body))
        if self.hang_after_taking:
            await self._stopped.wait()
        await self.publish(f"{kind}.replied", sessionID=asked["sessionID"], requestID=name, **body)
        return web.json_response(data=True)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b'data: {"type":"server.connected","properties":{}}\n\n')
        self._streams.add(stream)
        ends = [asyncio.ensure_future(end.wait()) for end in (self._stopped, self._cut)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            self._streams.discard(stream)
        return stream
