"""A real OpenCode server, and what its own clients do to it."""

import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.support import Json
from tests.agents.support import Stage
from tests.waiting import until

ROOT = Path(__file__).parents[2]
_START_SECONDS = 240.0


class OpenCode:
    """`opencode serve` in a folder of the stage."""

    def __init__(self, stage: Stage, folder: str = "work", **env: str) -> None:
        self.stage = stage
        self.work = stage.work.parent / folder
        self.work.mkdir(exist_ok=True)
        self.port = _free_port()
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, env: dict[str, str]) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "permission": {"bash": "ask", "edit": "ask"},
            "mcp": {
                "notify": {
                    "type": "local",
                    "command": [sys.executable, "-m", "tests.standins.notify"],
                    "environment": {"PYTHONPATH": str(ROOT)},
                }
            },
        }
        command = ["opencode", "serve", "--port", str(self.port), "--hostname", "127.0.0.1"]
        with (self.work.parent / f"{self.work.name}.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
                command,
                cwd=self.work,
                env={**env, "OPENCODE_CONFIG_CONTENT": json.dumps(settings), **self._env},
                stdout=log,
                stderr=log,
            )
        await until(self._answers, "OpenCode's server to answer", _START_SECONDS)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def call(
        self, method: str, path: str, body: Any = None, *, ok: bool = True, seconds: float = 60.0
    ) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            data = reply.read()
            assert not ok or reply.status < 300, (reply.status, data)
            return json.loads(data) if data and reply.status < 300 else reply.status
        finally:
            connection.close()

    def new_session(self) -> str:
        return str(self.call("POST", "/session", {})["id"])

    def prompt(self, session_id: str, text: str = "Go on") -> None:
        body = {"parts": [{"type": "text", "text": text}]}
        self.call("POST", f"/session/{session_id}/prompt_async", body)

    def permissions(self) -> list[Json]:
        return list(self.call("GET", "/permission"))

    def questions(self) -> list[Json]:
        return list(self.call("GET", "/question"))

    def reply(self, question_id: str, label: str, *, ok: bool = True) -> None:
        """Answer a question as somebody in OpenCode's own terminal does."""
        self.call("POST", f"/question/{question_id}/reply", {"answers": [[label]]}, ok=ok)

    def is_busy(self, session_id: str) -> bool:
        return session_id in self.call("GET", "/session/status")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "OpenCode's server has ended"
        try:
            # What comes while it starts is never answered.
            return bool(self.call("GET", "/path", seconds=2.0))
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
