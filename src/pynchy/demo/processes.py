"""The folder and the processes of a demo. Whatever happens, `close` leaves none of them behind.

The host and the agent run in sessions of their own: Ctrl-C reaches the demo alone, which then
ends them in order.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pynchy.data_dir import DataFolder
from pynchy.demo.agent import PYNCHY
from pynchy.demo.script import GROUP, DemoFailed, Utterance

AGENT = (sys.executable, "-P", "-m", "pynchy.demo.agent")

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0
_LOG_LINES = 8


class Stage:
    """One demo's processes, as an async context manager.

    `agent` and `launcher` are the commands that start the agent and that resume it.
    """

    def __init__(
        self,
        data: DataFolder,
        scratch: Path,
        *,
        agent: tuple[str, ...] = AGENT,
        launcher: tuple[str, ...] = (*AGENT, "--initial", "{initial}"),
    ) -> None:
        self.data = data
        self._scratch = scratch
        self._agent_command = agent
        self._launcher = launcher
        self._host: asyncio.subprocess.Process | None = None
        self._agent: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end_agent()
        await self._stop_host()
        await asyncio.to_thread(self._wait_for_runners)

    async def start_host(self) -> None:
        """Start `pynchy serve`. Raise DemoFailed if it does not get ready."""
        settings = self._scratch / "pynchy.toml"
        settings.write_text(self._settings(), encoding="utf-8")
        with self._host_log.open("wb") as log:
            self._host = await asyncio.create_subprocess_exec(
                *PYNCHY,
                "serve",
                *("--data-dir", str(self.data.path), "--config", str(settings), "--port", "0"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=_environment(),
            )
        line = await _first_line(self._host)
        if b"http://" not in line:
            raise DemoFailed(f"the host did not start{self._last_words()}")

    async def start_agent(self) -> None:
        """Start the agent, which starts its MCP server itself."""
        self._agent = await asyncio.create_subprocess_exec(
            *self._agent_command,
            *("--data-dir", str(self.data.path)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # The server inherits it too: the pipe ends when both have ended.
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=_environment(),
        )

    async def utterance(self) -> Utterance:
        """Return what the agent says next. Raise DemoFailed if it has ended."""
        line = await self._agent_output.readline()
        if not line:
            raise DemoFailed("the agent has ended before its time")
        return Utterance.from_line(line.decode(errors="replace").rstrip("\n"))

    async def kill_agent(self) -> None:
        """Kill the agent and its MCP server, and return when neither is left."""
        if self._agent is None or self._agent.returncode is not None:
            raise DemoFailed("the agent has ended by itself; there is nothing to kill")
        os.killpg(self._agent.pid, signal.SIGKILL)
        await self._agent_output.read()
        if await self._agent.wait() != -signal.SIGKILL:
            raise DemoFailed(f"the agent ended with {self._agent.returncode}, not by SIGKILL")

    def resumed(self, request_id: str) -> list[Utterance]:
        """Return what the agents that were resumed with this answer have printed."""
        logs = sorted((self.data.path / "runners" / GROUP).glob(f"{request_id}.*.log"))
        lines = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()]
        return [Utterance.from_line(line) for line in lines]

    @property
    def _agent_output(self) -> asyncio.StreamReader:
        if self._agent is None or self._agent.stdout is None:
            raise DemoFailed("the agent was not started")
        return self._agent.stdout

    @property
    def _host_log(self) -> Path:
        return self._scratch / "host.log"

    def _last_words(self) -> str:
        lines = self._host_log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:]
        return "".join(f"\n  {line}" for line in lines)

    def _settings(self) -> str:
        # A JSON string without escapes for what is not ASCII is a TOML string too.
        command = json.dumps(list(self._launcher), ensure_ascii=False)
        return (
            f'wait_timeout = "1d"\n\n[groups.{GROUP}.launcher]\ncommand = {command}\n'
            'timeout = "20s"\nterm_grace = "1s"\nattempts = 1\n'
        )

    async def _end_agent(self) -> None:
        if self._agent is None:
            return
        if self._agent.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._agent.pid, signal.SIGKILL)
        # An agent that ended by itself closed its server's stdin, which ends the server.
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._agent_output.read()
        await self._agent.wait()

    async def _stop_host(self) -> None:
        if self._host is None:
            return
        with suppress(ProcessLookupError):
            self._host.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._host.communicate()
        except TimeoutError:
            self._host.kill()
            await self._host.communicate()

    def _wait_for_runners(self) -> None:
        """Runners outlive a host by design; the launcher's cap ends them."""
        for path in (self.data.path / "runners").glob("*/*.lock"):
            with path.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)


async def _first_line(host: asyncio.subprocess.Process) -> bytes:
    if host.stdout is None:
        return b""
    try:
        async with asyncio.timeout(_START_SECONDS):
            return await host.stdout.readline()
    except TimeoutError:
        return b""


def _environment() -> dict[str, str]:
    """Our environment without what would lead the demo's processes to another host."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYNCHY_")}
