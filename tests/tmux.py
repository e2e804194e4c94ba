"""A terminal of its own: a tmux whose screen is read and typed at."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class Tmux:
    """One session of a tmux server that nobody else uses."""

    def __init__(self, socket: Path, env: Mapping[str, str], cwd: Path | None = None) -> None:
        self._socket = str(socket)
        self._env = {name: value for name, value in env.items() if name != "TMUX"}
        self._cwd = cwd

    def start(self, command: str, width: int = 110, height: int = 32) -> None:
        """Run the command; what it left on the screen stays when it has ended."""
        kept = f"{command}; echo left with $?; exec cat"
        size = ["-x", str(width), "-y", str(height)]
        self.do("-f", os.devnull, "new-session", "-d", *size, kept)

    @property
    def screen(self) -> str:
        return self.do("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self.do("send-keys", *keys)

    def type(self, text: str) -> None:
        self.do("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        self.do("resize-window", "-x", str(width), "-y", str(height))

    def send_control(self, text: str) -> None:
        """Say it in control mode, without the end of the line, and go away."""
        attach = ["tmux", "-S", self._socket, "-C", "attach-session", "-f", "ignore-size"]
        subprocess.run(
            attach, env=self._env, input=text, check=True, capture_output=True, text=True
        )

    def close(self) -> None:
        self._run("kill-server", check=False)

    def do(self, *words: str) -> str:
        return self._run(*words, check=True)

    def _run(self, *words: str, check: bool) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *words],
            env=self._env,
            cwd=self._cwd,
            check=check,
            capture_output=True,
            text=True,
        ).stdout
