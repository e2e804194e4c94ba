"""A person at a terminal: runs the real program by hand, connected by `pynchy connect` alone."""

import json
import subprocess
from pathlib import Path

from tests.acceptance.support import PYNCHY, Json
from tests.agents.support import GROUP, Runner, Stage
from tests.standins.models import Turn

_COMMANDS = {
    "claude": ("claude", "-p", "--output-format", "stream-json", "--verbose"),
    "codex": ("codex", "exec", "--json", "--skip-git-repo-check"),
    "opencode": ("opencode", "run", "--format", "json"),
}
# Where each says, in what it prints, what it calls its session.
_SESSION_FIELDS = {"claude": "session_id", "codex": "thread_id", "opencode": "sessionID"}


class Terminal(Stage):
    """Nothing of ours is on the program's command line or in its environment."""

    @property
    def _mark(self) -> str:
        return f"HOME={self.home}"

    @property
    def config(self) -> Path:
        return self.host.data.parent / "pynchy.toml"

    def prepare(self, *script: Turn) -> None:
        """Let the model follow the script, and give the person a home."""
        self.model.add(*script)
        self.env = {**self._environ(), "PWD": str(self.work)}
        if self.program.agent == "codex":  # as it writes when a person says so
            with (self.home / ".codex" / "config.toml").open("a") as file:
                file.write(f'\n[projects."{self.work}"]\ntrust_level = "trusted"\n')

    def pynchy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of pynchy as this person, in the folder of the work."""
        options = ["--data-dir", str(self.host.data), "--config", str(self.config)]
        return subprocess.run(
            [str(PYNCHY), *arguments, *options],
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def connect(self, *arguments: str) -> None:
        done = self.pynchy("connect", self.program.agent, "--group", GROUP, "--yes", *arguments)
        assert done.returncode == 0, done.stderr

    def begin(self, prompt: str, **_: object) -> Runner:
        """Type the prompt; the program's stdin is at its end."""
        log = self._folder / f"typed-{len(self._runners)}.log"
        command = [*_COMMANDS[self.program.agent], prompt]
        script = ["/bin/sh", "-c", 'exec "$@" < /dev/null', "sh"]
        runner = Runner([*script, *command], self.env, self.work, log, mark=self._mark)
        self._runners.append(runner)
        return runner

    async def resumable(self) -> None:
        """See Stage; the other programs write their session down before they ask."""
        if self.program.agent == "claude":
            await super().resumable()

    def listed(self) -> str:
        """Return what the program itself says of its MCP servers."""
        command = [_COMMANDS[self.program.agent][0], "mcp", "list"]
        done = subprocess.run(
            command,
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout + done.stderr

    def session_of(self, runner: Runner) -> str:
        """Return what the program calls the session that it works on."""
        events = [json.loads(line) for line in runner.text().splitlines() if line[:1] == "{"]
        name = _SESSION_FIELDS[self.program.agent]
        return next((str(event[name]) for event in events if name in event), "")

    def doctor(self, *arguments: str) -> list[Json]:
        """Return what doctor finds of the program."""
        found: list[Json] = json.loads(self.pynchy("doctor", "--json", *arguments).stdout)
        checks = (f"{self.program.agent} (", "Claude Code")
        return [one for one in found if one["check"].startswith(checks)]
