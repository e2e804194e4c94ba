"""`pynchy doctor --gate`: see whether a call waits in the Claude Code that is installed.

The program itself runs in a terminal of its own, with an empty home and a model of ours on this
machine: no account is used, and no session is left behind. Its environment says that a call goes
to the background after a moment. What the person's settings say must win over that, and the
model's next word must be the person's answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy.aio import finish
from pynchy.cli.connect.programs import CLAUDE, write_entry
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.demo.agent import PYNCHY
from pynchy.demo.processes import Stage
from pynchy.demo.script import GROUP, DemoFailed
from pynchy.errors import PynchyError

# After so long the environment sends a call to the background, and so long the person takes.
_BACKGROUND_MILLISECONDS = 3_000
_PERSON_SECONDS = 8.0
_ASK_SECONDS = 90.0
_HEAR_SECONDS = 30.0
_POLL_SECONDS = 0.1
_KEY = "sk-ant-doctor"
_NOWHERE = "http://127.0.0.1:9"
_PROMPT = "Ask the person whether to go on."
# What the model says.
_ASK = "ask_user"
_CALL = "toolu_gate"
_USAGE = {"input_tokens": 1, "output_tokens": 1}
_PAUSE_SECONDS = 0.5

Json = dict[str, Any]


class NotTried(Exception):
    """The trial could not be made; it says why."""


@dataclass(frozen=True, slots=True)
class GateTrial:
    """One run of the program. `setting` is what its settings say of the background, if anything."""

    program: str
    setting: object = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def holds(self) -> bool:
        """Return whether the model waited for the person's answer, and got it. Raise NotTried."""
        try:
            with TemporaryDirectory(prefix="pynchy-gate-") as folder:
                return asyncio.run(self._run(Path(folder)))
        except (DemoFailed, PynchyError, OSError) as exc:
            raise NotTried(str(exc)) from exc

    async def _run(self, folder: Path) -> bool:
        data = DataFolder(folder / "data")
        answer = f"Yes, {secrets.token_hex(4)}"
        async with Stage(data, folder) as host:
            await host.start_host()
            with ScriptedModel(answer) as model:
                environ = self._prepare(folder, data, model.url)
                async with in_terminal([self.program, _PROMPT], folder / "work", environ) as ended:
                    return await _see(HostClient.of(data), model, answer, ended)

    def _prepare(self, folder: Path, data: DataFolder, url: str) -> dict[str, str]:
        """Write what the program finds at its start. Return its environment."""
        home, work = folder / "home", folder / "work"
        (home / ".claude").mkdir(parents=True)
        work.mkdir()
        (work / "README").write_text("A trial of pynchy doctor.\n")
        server = [*PYNCHY, "mcp", "--data-dir", str(data.path), "--group", GROUP]
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [_KEY], "rejected": []},
            "projects": {str(work): {"hasTrustDialogAccepted": True}},
            "mcpServers": {"pynchy": write_entry(CLAUDE, server)},
        }
        settings: dict[str, Any] = {
            "permissions": {"allow": ["mcp__pynchy"], "defaultMode": "default"}
        }
        if self.setting is not None:
            settings["env"] = {BACKGROUND_VARIABLE: self.setting}
        (home / ".claude.json").write_text(json.dumps(known))
        (home / ".claude" / "settings.json").write_text(json.dumps(settings))
        return _environment(self.environ, home, url)


async def _see(client: HostClient, model: ScriptedModel, answer: str, ended: asyncio.Event) -> bool:
    """Answer as a person who takes a moment. Return whether the model has waited for it."""
    question = await _asked(client, ended)
    with suppress(TimeoutError):
        async with asyncio.timeout(_PERSON_SECONDS):
            await model.heard.wait()
            return False  # before anybody has said a word
    body = {"values": [answer], "by": "doctor"}
    await asyncio.to_thread(client.reply, GROUP, question, "answer", body)
    try:
        async with asyncio.timeout(_HEAR_SECONDS):
            await model.heard.wait()
    except TimeoutError:
        raise NotTried("the model did not hear of the answer in time") from None
    return answer in model.result


async def _asked(client: HostClient, ended: asyncio.Event) -> str:
    """Return the id of the question that the program asks."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            while not (listed := await asyncio.to_thread(client.pending)):
                if ended.is_set():
                    raise NotTried("it ended without having asked")
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise NotTried(f"it asked nothing in {_ASK_SECONDS:g} s") from None
    return str(listed[0]["request_id"])


@asynccontextmanager
async def in_terminal(
    command: list[str], work: Path, environ: Mapping[str, str]
) -> AsyncIterator[asyncio.Event]:
    """Run the program in a terminal that nobody looks at. Yield what tells of its end."""
    ours, theirs = pty.openpty()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=work,
                env=dict(environ),
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        loop.add_reader(ours, _swallow, loop, ours, ended)
        try:
            yield ended
        finally:
            # However the trial ends: nothing of it is left behind.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await finish(process.wait())
    finally:
        loop.remove_reader(ours)
        os.close(ours)


def _swallow(loop: asyncio.AbstractEventLoop, terminal: int, ended: asyncio.Event) -> None:
    """Read what is drawn: a program that nobody reads stands still."""
    try:
        drawn = os.read(terminal, 65_536)
    except OSError:
        drawn = b""  # so a terminal says that its last program has left
    if not drawn:
        loop.remove_reader(terminal)
        ended.set()


def _environment(environ: Mapping[str, str], home: Path, url: str) -> dict[str, str]:
    """Return what the program needs, nothing of the person's, and no way out of this machine."""
    return {
        "PATH": environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        BACKGROUND_VARIABLE: str(_BACKGROUND_MILLISECONDS),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
    }


class ScriptedModel:
    """A model on this machine that asks a person one question, and tells what it heard of it.

    It serves on loopback while it is entered, and speaks as much of Anthropic's Messages API as
    Claude Code needs for that. Until the program offers our tool, which may take a moment, the
    model reads a file. `heard` is set when it knows what became of its call. `answer` is what the
    person may choose.
    """

    def __init__(self, answer: str) -> None:
        self.heard = asyncio.Event()
        self.result = ""
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._pause = threading.Event()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self.reply_to))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pause.set()
        self._server.shutdown()
        self._server.server_close()

    def reply_to(self, body: Json) -> Json:
        """Return the block that the model says next."""
        names = [str(tool.get("name", "")) for tool in body.get("tools") or ()]
        ask = next((n for n in names if n.startswith("mcp__") and n.endswith(f"__{_ASK}")), None)
        result = _result(body)
        if result is not None:
            self._hear(result)
            return {"type": "text", "text": "Thank you."}
        if ask is not None:
            question = {"question": "Go on?", "options": [self._answer, "No"]}
            return _call(_CALL, ask, {"questions": [question]})
        if "Read" in names:
            self._pause.wait(_PAUSE_SECONDS)
            return _call(f"toolu_{len(body['messages'])}", "Read", {"file_path": "README"})
        return {"type": "text", "text": "Well."}

    def _hear(self, result: str) -> None:
        if not self.result:
            self.result = result or "(nothing)"
            self._loop.call_soon_threadsafe(self.heard.set)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a program that was ended in the middle of a request."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, reply_to: Callable[[Json], Json], *args: Any) -> None:  # noqa: ANN401 - passed on
        self._reply_to = reply_to
        super().__init__(*args)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send(json.dumps({"input_tokens": 1}).encode(), "application/json")
        elif path == "/v1/messages":
            events = b"".join(_events(self._reply_to(json.loads(data))))
            self._send(events, "text/event-stream")
        else:
            self.do_GET()

    def do_GET(self) -> None:
        self._send(b"{}", "application/json", HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: it is not the person's concern."""


def _result(body: Json) -> str | None:
    """Return what the program says of our call; None if it says nothing of it."""
    for message in body.get("messages") or ():
        blocks = message.get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if block.get("type") == "tool_result" and block.get("tool_use_id") == _CALL:
                return json.dumps(block.get("content"), ensure_ascii=False)
    return None


def _call(call_id: str, tool: str, arguments: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def _events(block: Json) -> Iterator[bytes]:
    """Write the block as a streamed message."""
    message: Json = {
        "id": "msg_gate",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield _event("message_start", message=message)
    begun, delta = dict(block), {"type": "text_delta", "text": block.get("text", "")}
    if block["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        begun["input"] = {}
    else:
        begun["text"] = ""
    yield _event("content_block_start", index=0, content_block=begun)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=_USAGE)
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
