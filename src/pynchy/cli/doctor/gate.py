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
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_runner.cores.claude import BACKGROUND_VARIABLE
from pynchy.aio import finish
from pynchy.cli.connect.programs import CLAUDE, write_entry
from pynchy.cli.doctor.scripted_model import ScriptedModel
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
