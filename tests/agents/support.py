"""A stage for one agent program: a scripted model, a real host, a home of its own."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import waiting
from tests.acceptance.support import Host, Json
from tests.agents.programs import Program
from tests.standins.models import Exchange, ModelStandIn, Turn
from tests.waiting import until

RUNNER = str(Path(sys.executable).with_name("agent_runner"))
GROUP = "team"
BOOK = ".local/state/agent_runner/*/*.json"
SESSION = "session-7"
NOWHERE = "http://127.0.0.1:9"

# These programs take many seconds to start where several share a machine.
waiting.DEADLINE_SECONDS = 240.0


class Stage:
    """Everything that one test needs."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.agent = program.agent
        self.model = ModelStandIn()
        self.home = folder / "home"
        self.work = folder / "work"
        self.host = Host(folder / "data")
        self.env: dict[str, str] = {}
        self.launcher: Json = {"kind": "process", "cwd": str(self.work)}
        self._folder = folder
        self._runners: list[Runner] = []
        for path in (self.home, self.work):
            path.mkdir()

    @property
    def mailbox(self) -> Path:
        return self.host.group(GROUP)

    @property
    def mark(self) -> str:
        """What every agent of this stage has in its environment; Codex hands on nothing else."""
        return f"PYNCHY_IPC_DIR={self.mailbox}"

    async def open(self, *script: Turn, settings: str = "", **env: str) -> None:
        """Start the host with a launcher for the program, and let the model follow the script."""
        self.model.add(*script)
        self.env = self._environ() | env
        self.configure(settings)
        await self.host.start()
        for name in ("tasks", "responses", "input"):
            (self.mailbox / name).mkdir(parents=True, exist_ok=True)

    def configure(self, settings: str = "") -> None:
        lines = [
            settings,
            f"[groups.{GROUP}.launcher]",
            *(f"{name} = {json.dumps(value)}" for name, value in self.launcher.items()),
            f"agent = {json.dumps(self.agent)}",
            f"runner = {json.dumps(RUNNER)}",
            'backoff = "100ms"',
            f"[groups.{GROUP}.launcher.env]",
            *(f"{name} = {json.dumps(value)}" for name, value in self.env.items()),
        ]
        self.host.configure("\n".join([*lines, ""]))

    def begin(
        self, prompt: str, *, server: str = "", fields: Json | None = None, **env: str
    ) -> "Runner":
        """Start the program on a new session, as a host does.

        `server` is a shell command that takes the place of the Python of our MCP server.
        """
        first = self._folder / f"first-{len(self._runners)}"
        first.mkdir()
        initial = first / "initial.json"
        begun_with = {"v": 1, "session_id": SESSION, "prompt": prompt, **(fields or {})}
        initial.write_text(json.dumps(begun_with))
        command = _with_server(first / "python", server) if server else [RUNNER]
        runner = Runner(
            [*command, "--initial", str(initial), "--agent", self.program.agent],
            {**self.env, "PYNCHY_IPC_DIR": str(self.mailbox), **env},
            self.work,
            first / "log",
            mark=self.mark,
        )
        self._runners.append(runner)
        return runner

    def kill_agents(self) -> None:
        """kill -9 every agent, also what the host has resumed, but not the host."""
        kill_all(self.mark)

    async def asked(self, count: int = 1) -> list[Json]:
        """Wait until so many questions are open to people."""
        return await self.host.listed(count, GROUP)

    async def resumable(self) -> None:
        """Wait until its session can be found again: its id or Claude Code's conversation is kept.

        An agent that is killed before that has a session which nobody can resume.
        """
        if self.program.agent == "claude":
            await until(self._has_conversation, "the conversation to be written down")
        else:
            await until(lambda: [*self.home.glob(BOOK)], "the session's id to be known")

    def _has_conversation(self) -> bool:
        written = self.home.glob(".claude/projects/*/*.jsonl")
        return any('"type":"user"' in path.read_text() for path in written)

    async def session(self, session_id: str, state: str) -> Json:
        """Wait until the host says that the session is in that state."""

        async def look() -> Json | None:
            code, out, err = await self.host.cli("sessions", "--all", "--json")
            assert code == 0, err
            listed = [s for s in json.loads(out) if s["session_id"] == session_id]
            return next((s for s in listed if s["state"].startswith(state)), None)

        found: Json = await until(look, f"the session to be {state}")
        return found

    async def requests(self, count: int) -> list[Exchange]:
        """Wait until the model was called so often; it has refused nothing."""
        try:
            found = await asyncio.to_thread(self.model.wait_for, count, waiting.DEADLINE_SECONDS)
        except TimeoutError as exc:
            raise AssertionError(f"{exc}\n{self.logs()}") from exc
        assert self.model.refused == [], [one.text[-500:] for one in self.model.refused]
        return found

    def logs(self) -> str:
        """Return what all runners have printed."""
        paths = [*self._folder.glob("first-*/log"), *self.host.data.glob("runners/*/*.log")]
        return "\n".join(f"--- {path}\n{path.read_text()}" for path in paths)

    def close(self) -> None:
        self.host.kill()
        self.kill_agents()
        for runner in self._runners:
            runner.kill()
        self.model.stop()

    def _environ(self) -> dict[str, str]:
        """Return the environment of the programs: ours is not theirs."""
        plain = {
            "PATH": f"{self.program.bin}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "npm_config_registry"), NOWHERE),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        }
        return plain | _SETTINGS[self.program.agent](self)


def _claude(stage: Stage) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": stage.model.url,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "IS_SANDBOX": "1",
    }


def _codex(stage: Stage) -> dict[str, str]:
    settings = f"""
        model = "scripted"
        model_provider = "scripted"
        check_for_update_on_startup = false
        [analytics]
        enabled = false
        [model_providers.scripted]
        name = "scripted"
        base_url = "{stage.model.url}/v1"
        env_key = "SCRIPTED_KEY"
        wire_api = "responses"
        supports_websockets = false
        request_max_retries = 0
        stream_max_retries = 0
    """
    folder = stage.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(settings)
    return {"SCRIPTED_KEY": "sk-scripted"}


def _opencode(stage: Stage) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{stage.model.url}/v1", "apiKey": "sk-scripted"},
        "models": {"model": {"name": "model"}},
    }
    settings: dict[str, Any] = {
        "provider": {"scripted": provider},
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": False,
        "share": "disabled",
    }
    folder = stage.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


_SETTINGS = {"claude": _claude, "codex": _codex, "opencode": _opencode}


class Runner:
    """`agent_runner` and all that it has started."""

    def __init__(
        self, command: list[str], env: dict[str, str], cwd: Path, log: Path, *, mark: str
    ) -> None:
        self.log = log
        self._mark = mark
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, env=env, cwd=cwd, stdout=output, stderr=subprocess.STDOUT
            )

    async def ended(self) -> int:
        """Wait for its end and return the exit code."""
        await until(lambda: self._process.poll() is not None, f"the end of {self.log}")
        return self._process.returncode

    def kill(self) -> None:
        """kill -9 the runner, the program and its MCP server at one stroke, as a lost machine."""
        kill_all(self._mark)
        self._process.wait()

    def text(self) -> str:
        return self.log.read_text()


def _with_server(script: Path, server: str) -> list[str]:
    """Return a runner that takes the script for the Python that runs our MCP server."""
    script.write_text(f'#!/bin/sh\n{server.format(python=sys.executable)} "$@"\n')
    script.chmod(0o755)
    start = "import sys; sys.executable = sys.argv.pop(1); from agent_runner.cli import main; "
    return [sys.executable, "-c", f"{start}sys.exit(main())", str(script)]


def kill_all(mark: str) -> None:
    """kill -9 every process that has the mark in its environment, whoever its parent is."""
    while found := marked(mark):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)


def marked(mark: str) -> list[int]:
    """Return the processes that have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parts[2]))
    return found
