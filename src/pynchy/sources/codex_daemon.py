"""The daemon that runs the sessions of a terminal's Codex: a second client of it, and its requests.

Whoever listens on its socket could make the host's people answer for it, and hear what they say. So
it must be a process of our own user, on a socket that only our own user can have put there.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import socket
import stat
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_runner.codex_calls import INPUT, decide, is_described, read_call
from pynchy import wire
from pynchy.aio import first_in
from pynchy.calls import ToolCall
from pynchy.errors import MalformedRequest
from pynchy.model import GroupName, Kind, PendingQuestion, RequestId, SessionId
from pynchy.outcome_text import words_beside
from pynchy.permissions.card import is_granted
from pynchy.sources.base import SourceQuestion
from pynchy.sources.budget import EVENT_COST, EventBudget
from pynchy.sources.websocket import WebSocket, WebSocketError

log = logging.getLogger(__name__)

PROGRAM = "codex"
# The one that our tests run in a terminal.
TESTED_CODEX = "0.166.0"
CALL_SECONDS = 30.0
_SOCKET = Path("app-server-control") / "app-server-control.sock"
_VERSION = re.compile(r"/(\d{1,9}\.\d{1,9}\.\d{1,9})\b")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MAX_ERROR = 300
# What is larger is read in a thread: reading it takes the loop's time.
_LARGE_BYTES = 64 * 1024
# So many bytes cost as much as a frame does.
_BYTES_PER_COST = 4_096
# So many frames are read before others have their turn.
_FRAMES_AT_ONCE = 32
# xucred of macOS: its version, the user, and more that is not ours to know.
_MAC_PEER = (0, 1, 76)
# What comes many times a second, and says nothing of who waits.
_UNWANTED = (
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/tokenUsage/updated",
)

Listener = Callable[[wire.CodexMessage], None]


class DaemonMissing(Exception):
    """No daemon runs: what it was asking is over."""


class DaemonFailed(Exception):
    """The daemon cannot be spoken to as things are; what it asks may still be open."""


class CallRefused(Exception):
    """The daemon has answered a call with an error."""


def codex_home(home: Path | None, environ: Mapping[str, str]) -> Path:
    """Return where Codex keeps what is its own."""
    own = environ.get("CODEX_HOME")
    return home or (Path(own) if own else Path.home() / ".codex")


class DaemonPace:
    """How fast a daemon is listened to. One that goes on telling too much is left."""

    def __init__(self, budget: EventBudget | None = None) -> None:
        self._budget = budget or EventBudget()
        self._frames = 0

    async def pay_frame(self, size: int) -> None:
        """Wait if it has told too much; give others their turn. Raise WebSocketError."""
        self._frames = (self._frames + 1) % _FRAMES_AT_ONCE
        await self._pay(1 + size / _BYTES_PER_COST, is_turn=self._frames == 0)

    async def pay_message(self) -> None:
        """The same for what is looked at."""
        await self._pay(EVENT_COST, is_turn=False)

    async def _pay(self, cost: float, *, is_turn: bool) -> None:
        pause = self._budget.spend(cost)
        if self._budget.is_flooded:
            raise WebSocketError("it tells more than can be listened to")
        if pause or is_turn:
            await asyncio.sleep(pause)


class CodexDaemon:
    """One connection to the daemon. Each message that is no response goes to the listener."""

    def __init__(self, stream: WebSocket, listener: Listener, pace: DaemonPace) -> None:
        self._stream = stream
        self._listener = listener
        self._pace = pace
        self._numbers = itertools.count(1)
        self._calls: dict[int, asyncio.Future[wire.CodexMessage]] = {}
        self.version = ""

    async def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result. Raise CallRefused, or DaemonFailed where none comes."""
        number = next(self._numbers)
        answer: asyncio.Future[wire.CodexMessage] = asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(CALL_SECONDS):
                message = await answer
        except TimeoutError as exc:
            raise DaemonFailed(f"it does not answer {method}") from exc
        finally:
            self._calls.pop(number, None)
        if message.result is None:
            raise CallRefused(str((message.error or {}).get("message", ""))[:_MAX_ERROR])
        return message.result

    async def respond(self, rpc_id: int | str, result: Mapping[str, Any]) -> None:
        """Answer one of its requests. Raise DaemonFailed."""
        await self._send({"id": rpc_id, "result": result})

    async def begin(self) -> None:
        """Introduce ourselves. Raise DaemonFailed."""
        client = {"name": "pynchy", "title": "pynchy", "version": "1"}
        able = {"experimentalApi": True, "optOutNotificationMethods": _UNWANTED}
        try:
            told = await self.call("initialize", {"clientInfo": client, "capabilities": able})
        except CallRefused as exc:
            raise DaemonFailed(f"it refuses us: {exc}") from exc
        found = _VERSION.search(str(told.get("userAgent", ""))[:_MAX_ERROR])
        self.version = found[1] if found else ""
        await self._send({"method": "initialized"})

    async def listen(self) -> None:
        """Pass on what it says until it ends. Raise DaemonFailed then."""
        while True:
            try:
                data = await self._stream.receive()
                await self._pace.pay_message()
                message = await _read(data)
            except WebSocketError as exc:
                raise DaemonFailed(str(exc)) from exc
            except MalformedRequest as exc:
                log.warning("codex.unreadable", extra={"why": exc.reason})
                continue
            if message.method:
                self._listener(message)
            elif isinstance(message.id, int):
                answer = self._calls.get(message.id)
                if answer is not None and not answer.done():
                    answer.set_result(message)

    async def _send(self, message: Mapping[str, Any]) -> None:
        try:
            await self._stream.send(json.dumps(message).encode())
        except WebSocketError as exc:
            raise DaemonFailed(str(exc)) from exc


@asynccontextmanager
async def joined(home: Path, listener: Listener) -> AsyncIterator[CodexDaemon]:
    """Be a client of the daemon; the context is cancelled when the connection ends.

    Raise DaemonMissing where there is none, DaemonFailed where it cannot be spoken to.
    """
    reader, writer = await asyncio.open_unix_connection(sock=await _connect(home))
    pace = DaemonPace()
    stream = WebSocket(reader, writer, pace.pay_frame)
    try:
        await _shake_hands(stream)
        async with asyncio.TaskGroup() as tasks:
            daemon = CodexDaemon(stream, listener, pace)
            listening = tasks.create_task(daemon.listen(), name="codex-listen")
            await daemon.begin()
            yield daemon
            listening.cancel()
    except ExceptionGroup as group:
        raise first_in(group) from group
    finally:
        writer.transport.abort()


async def _read(data: bytes) -> wire.CodexMessage:
    if len(data) <= _LARGE_BYTES:
        return wire.read_codex_message(data)
    return await asyncio.to_thread(wire.read_codex_message, data)


async def find_codex(home: Path) -> str:
    """Return the version of the daemon that runs. Raise DaemonMissing or DaemonFailed."""
    async with joined(home, lambda _: None) as daemon:
        return daemon.version


async def _shake_hands(stream: WebSocket) -> None:
    try:
        async with asyncio.timeout(CALL_SECONDS):
            await stream.shake_hands()
    except TimeoutError as exc:
        raise DaemonFailed("it does not answer") from exc
    except WebSocketError as exc:
        raise DaemonFailed(str(exc)) from exc


async def _connect(home: Path) -> socket.socket:
    """Return a socket to a daemon of our own user."""
    path = await asyncio.to_thread(find_socket, home)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)  # noqa: FBT003 - the name of the function says it
    try:
        async with asyncio.timeout(CALL_SECONDS):
            await asyncio.get_running_loop().sock_connect(sock, str(path))
        _check_peer(sock, path)
    except (FileNotFoundError, ConnectionRefusedError) as exc:
        sock.close()
        raise DaemonMissing(f"{path}: nobody listens there") from exc
    except OSError as exc:  # TimeoutError is one
        sock.close()
        raise DaemonFailed(f"{path}: {exc.strerror or 'it does not answer'}") from exc
    except BaseException:
        sock.close()
        raise
    return sock


def find_socket(home: Path) -> Path:
    """Return where the daemon listens.

    Raise DaemonMissing if there is no socket, DaemonFailed if another user may have put it there.
    Codex makes its socket elsewhere and leaves a link to it: both are looked at.
    """
    link = home / _SOCKET
    try:
        path = Path(os.path.realpath(link, strict=True))
        for entry in (link, path):
            _check_ours(entry.parent, "folder", stat.S_ISDIR)
        _check_ours(link, "link", lambda mode: stat.S_ISLNK(mode) or stat.S_ISSOCK(mode))
        _check_ours(path, "socket", stat.S_ISSOCK)
    except FileNotFoundError as exc:
        raise DaemonMissing(f"{link}: there is none") from exc
    except OSError as exc:
        raise DaemonFailed(f"{link}: {exc.strerror}") from exc
    return path


def _check_ours(path: Path, what: str, is_right: Callable[[int], bool]) -> None:
    found = path.stat() if what == "folder" else path.lstat()
    if not is_right(found.st_mode):
        raise DaemonFailed(f"{path}: this is no {what}, so it is not spoken to")
    if found.st_uid != os.geteuid():
        raise DaemonFailed(f"{path}: this {what} belongs to another user; it is not spoken to")
    if what == "folder" and found.st_mode & _OTHERS_WRITE:
        raise DaemonFailed(f"{path}: others can write into this folder; it is not spoken to")


def _check_peer(sock: socket.socket, path: Path) -> None:
    if _peer(sock) != os.geteuid():
        raise DaemonFailed(f"{path}: another user listens there, so it is not spoken to")


def _peer(sock: socket.socket) -> int:
    """Return the user of the process at the other end."""
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", told)[1])
    return int(struct.unpack_from("2I", sock.getsockopt(*_MAC_PEER))[1])


@dataclass(slots=True)
class CodexRequest:
    """One request of the daemon that is for people. `resolved`: somebody has answered it."""

    rpc_id: int | str
    method: str
    params: Mapping[str, Any]
    asked: wire.CodexAsked
    resolved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def request_id(self) -> RequestId:
        """The same each time that the daemon shows it, also to another host."""
        return RequestId(f"x{self.asked.digest(self.method, self.rpc_id)[:24]}")

    @property
    def can_be_allowed_once(self) -> bool:
        """False for what could only be allowed for good."""
        decisions = self.asked.availableDecisions
        return decisions is None or "accept" in decisions

    def is_described(self, changes: list[Mapping[str, Any]]) -> bool:
        """False for what nobody could be shown: `changes` are those of the files in question."""
        return is_described(self.method, self.params, changes)

    def questions(self, group: GroupName, task: str) -> SourceQuestion | None:
        """Return its questions; None for secrets, which belong in no chat.

        Raise MalformedRequest.
        """
        put = self._put()
        if any(one.isSecret for one in put):
            return None
        return SourceQuestion(
            group,
            self.request_id,
            tuple(one.to_model() for one in put),
            agent=PROGRAM,
            task=task,
            session_id=SessionId(self.asked.threadId),
        )

    def permission(
        self, group: GroupName, task: str, cwd: str, changes: list[Mapping[str, Any]]
    ) -> SourceQuestion:
        """Return the permission that it asks for; `changes` are those of the files in question."""
        tool, given = read_call(self.method, self.params, changes)
        return SourceQuestion(
            group,
            self.request_id,
            (),
            kind=Kind.PERMISSION,
            agent=PROGRAM,
            task=task,
            session_id=SessionId(self.asked.threadId),
            call=ToolCall(PROGRAM, tool, given, self.asked.cwd or cwd),
        )

    def answer(self, ended: PendingQuestion) -> Mapping[str, Any]:
        """Return what Codex is told. "Always" of Codex is never chosen."""
        if self.method != INPUT:
            return decide(self.method, self.params, is_allowed=is_granted(ended))
        answers = ended.ending.answers if ended.ending else ()
        told = {
            one.id: {"answers": [*answer.selected, *([answer.text] if answer.text else [])]}
            for one, answer in zip(self._put(), answers, strict=False)
        }
        return {"answers": told}

    def words(self, ended: PendingQuestion) -> str:
        """Return what a person has said beside a "no", for the model and the terminal."""
        ending = ended.ending
        if ending is None or self.method == INPUT or is_granted(ended):
            return ""
        said = words_beside(ending)
        return f"{ending.by or 'A person'} did not allow this. They say: {said}" if said else ""

    def _put(self) -> list[wire.CodexQuestion]:
        return wire.read_codex(wire.CodexQuestions, dict(self.params)).questions
