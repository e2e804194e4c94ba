"""The daemon of a terminal's Codex, as codex-cli 0.166.0 is on its control socket.

It is strict: a client that speaks before it has introduced itself, answers what is not asked, or
uses what it has not declared is refused, and `refused` says so.
"""

import itertools
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

Json = dict[str, Any]
COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
INPUT = "item/tool/requestUserInput"
FLAGS = {INPUT: "waitingOnUserInput"}


@dataclass(eq=False)
class _Connection:
    socket: web.WebSocketResponse
    able: Json = field(default_factory=dict)
    is_known: bool = False
    is_begun: bool = False


@dataclass
class _Thread:
    id: str
    cwd: str
    asked: dict[int, Json] = field(default_factory=dict)
    followers: list[_Connection] = field(default_factory=list)
    items: list[Json] = field(default_factory=list)

    @property
    def status(self) -> Json:
        if not self.asked:
            return {"type": "idle"}
        flags = {FLAGS.get(one["method"], "waitingOnApproval") for one in self.asked.values()}
        return {"type": "active", "activeFlags": sorted(flags)}

    @property
    def told(self) -> Json:
        return {"id": self.id, "status": self.status, "cwd": self.cwd, "turns": []}


async def _send_all(connections: list[_Connection], message: Json) -> None:
    for connection in list(connections):
        with suppress(ConnectionError):  # it has gone, and that is not known here yet
            await connection.socket.send_json(message)


class CodexStandIn:
    """One daemon on a real socket. A stopped one can be started again: its requests are gone."""

    def __init__(self, home: Path) -> None:
        self.link = home / "app-server-control" / "app-server-control.sock"
        self.link.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        # As Codex does it: a path in a home may be longer than a socket's can be.
        self.socket = Path(tempfile.mkdtemp(prefix="codex-")) / "control"
        self.link.symlink_to(self.socket)
        self.answered: dict[int, Json] = {}
        self.steered: list[Json] = []
        self.refused: list[str] = []
        # What it says in place of the truth, by the method that it is asked for.
        self.instead: dict[str, Callable[[Json], Any]] = {}
        self.connected: list[_Connection] = []
        self._threads: dict[str, _Thread] = {}
        self._numbers = itertools.count()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        app = web.Application()
        app.router.add_get("/", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket)).start()

    async def stop(self) -> None:
        """End as a process does that is killed: the socket's file stays."""
        self._threads.clear()
        for connection in list(self.connected):
            transport = connection.socket._req.transport  # noqa: SLF001
            if transport is not None:
                transport.abort()
        if self._runner is not None:
            await self._runner.cleanup()

    async def remove(self) -> None:
        await self.stop()
        shutil.rmtree(self.socket.parent, ignore_errors=True)

    async def ask(self, thread: str = "t1", method: str = COMMAND, **params: Any) -> int:
        """Let the model of the thread want something; return what the daemon calls it."""
        number = next(self._numbers)
        common = {"threadId": thread, "turnId": "turn1", "itemId": f"call_{number}"}
        started = {} if method == INPUT else {"startedAtMs": 1_794_932_434_548 + number}
        request = {"method": method, "id": number, "params": {**common, **started, **params}}
        found = self._threads.setdefault(thread, _Thread(thread, "/srv/app"))
        found.asked[number] = request
        await _send_all(found.followers, request)
        await self._tell_status(found)
        return number

    async def ask_command(self, command: str = "touch made", **params: Any) -> int:
        told = {"command": f"/bin/bash -lc '{command}'", "cwd": "/srv/app", "reason": "Make it"}
        decisions = ["accept", {"acceptWithExecpolicyAmendment": {}}, "cancel"]
        more = {"kind": "command", "availableDecisions": decisions}
        return await self.ask(**{**told, **more, **params})

    def begin_item(self, item: Json, thread: str = "t1") -> None:
        self._threads.setdefault(thread, _Thread(thread, "/srv/app")).items.append(item)

    async def resolve(self, number: int) -> None:
        """Somebody has answered: the terminal, or a client."""
        [thread] = [one for one in self._threads.values() if number in one.asked]
        del thread.asked[number]
        told = {"threadId": thread.id, "requestId": number}
        await _send_all(thread.followers, {"method": "serverRequest/resolved", "params": told})
        await self._tell_status(thread)

    async def close_thread(self, thread: str) -> None:
        del self._threads[thread]
        await self._tell({"method": "thread/closed", "params": {"threadId": thread}})

    def followers(self, thread: str = "t1") -> int:
        return len(self._threads[thread].followers) if thread in self._threads else 0

    async def _tell_status(self, thread: _Thread) -> None:
        params = {"threadId": thread.id, "status": thread.status}
        await self._tell({"method": "thread/status/changed", "params": params})

    async def _tell(self, message: Json) -> None:
        await _send_all([one for one in self.connected if one.is_begun], message)

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        connection = _Connection(socket)
        self.connected.append(connection)
        try:
            async for message in socket:
                assert message.type is WSMsgType.TEXT
                await self._take(connection, json.loads(message.data))
        finally:
            self.connected.remove(connection)
            for thread in self._threads.values():
                if connection in thread.followers:
                    thread.followers.remove(connection)
        return socket

    async def _take(self, connection: _Connection, message: Json) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            await self._take_answer(message)
        elif method == "initialized":
            connection.is_begun = connection.is_known
        elif method != "initialize" and not connection.is_begun:
            await self._refuse(connection, number, "Not initialized")
        elif method in self.instead:
            told = self.instead[method](message)
            if told is not None:
                await connection.socket.send_str(
                    told if isinstance(told, str) else json.dumps(told)
                )
        else:
            await self._do(connection, method, number, message["params"])

    async def _take_answer(self, message: Json) -> None:
        number = message["id"]
        is_open = any(number in thread.asked for thread in self._threads.values())
        if not is_open or "result" not in message:
            self.refused.append(f"an answer to what is not asked: {message}")
            return
        self.answered[number] = message["result"]
        await self.resolve(number)

    async def _do(self, connection: _Connection, method: str, number: Any, params: Json) -> None:
        send = connection.socket.send_json
        thread = self._threads.get(str(params.get("threadId")))
        if method == "initialize":
            connection.able, connection.is_known = params["capabilities"], True
            await send(
                {"id": number, "result": {"userAgent": "codex-tui/0.166.0 (Debian; x86_64)"}}
            )
        elif method == "thread/loaded/list":
            await send({"id": number, "result": {"data": [*self._threads], "nextCursor": None}})
        elif thread is None:
            await self._refuse(connection, number, "no rollout found for thread id")
        elif method == "thread/read":
            await send({"id": number, "result": {"thread": thread.told}})
        elif method == "thread/unsubscribe":
            thread.followers.remove(connection)
            await send({"id": number, "result": {"status": "unsubscribed"}})
        elif method == "turn/steer":
            self.steered.append(params)
            await send({"id": number, "result": {"turnId": params["expectedTurnId"]}})
        elif method == "thread/resume":
            await self._resume(connection, number, thread, params)
        else:
            await self._refuse(connection, number, f"unknown method {method}")

    async def _resume(
        self, connection: _Connection, number: Any, thread: _Thread, params: Json
    ) -> None:
        result: Json = {"thread": thread.told, "cwd": thread.cwd, "initialTurnsPage": None}
        if "initialTurnsPage" in params:
            if not connection.able.get("experimentalApi"):
                await self._refuse(connection, number, "requires experimentalApi capability")
                return
            result["initialTurnsPage"] = {"data": [{"id": "turn1", "items": thread.items}]}
        if connection not in thread.followers:
            thread.followers.append(connection)
        await connection.socket.send_json({"id": number, "result": result})
        for request in thread.asked.values():
            await connection.socket.send_json(request)

    async def _refuse(self, connection: _Connection, number: Any, why: str) -> None:
        if "no rollout" not in why:
            self.refused.append(why)
        error = {"code": -32600, "message": why}
        await connection.socket.send_json({"id": number, "error": error})
