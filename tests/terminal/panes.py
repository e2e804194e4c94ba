"""A tmux server of its own, programs in its panes, and `pynchy watch --tmux` beside it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.support import PYNCHY, ROOT
from tests.tmux import Tmux
from tests.waiting import until

GROUP = "team"
DEPLOY = "phux-ask[q1]:Deploy now??s=Yes|No"
# Asks what it is told to, line by line of a file that may grow, and notes what it reads.
AGENT = """#!/bin/sh
printf '\\033]2;%s\\007' "$(cat "$1.title")"
while IFS= read -r line; do
  case $line in
    title) printf '\\033]2;%s\\007' "$(cat "$1.title")" ;;
    *) printf '%s\\n' "$line" >> "$1.got" ;;
  esac
done
"""


class Watch:
    """`pynchy watch --tmux` as a process."""

    def __init__(self, words: list[str | Path], log: Path) -> None:
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                words, cwd=ROOT, stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )

    @property
    def text(self) -> str:
        return self._log.read_text()

    async def says(self, text: str, times: int = 1) -> None:
        await until(lambda: self.text.count(text) >= times, f"{text!r} in {self._log}")

    async def ends(self) -> int:
        await until(lambda: self._process.poll() is not None, "watch to end")
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class Panes:
    """The panes, each with a program that is known by a word."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "tmux"
        env = {**os.environ, "PS1": "prompt>", "HISTFILE": "", "ENV": "", "SHELL": "/bin/sh"}
        self.tmux = Tmux(self.socket, env, folder)
        self._watches: list[Watch] = []
        agent = folder / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o700)
        # It holds the server, and asks nothing.
        self.tmux.do("-f", os.devnull, "new-session", "-d", "-s", "idle", "-x", "90", "cat")

    def run(self, command: str, *options: str) -> str:
        """Run a command in a pane of a new window, and return the pane's id."""
        words = ["new-window", "-d", "-P", "-F", "#{pane_id}", *options, command]
        return self.tmux.do(*words).strip()

    def ask(self, word: str = "one", title: str = DEPLOY, *options: str) -> str:
        """Run an agent that asks by that title, and return its pane's id."""
        self.prepare(word, title)
        return self.run(f"exec ./agent {word}", *options)

    def prepare(self, word: str, title: str) -> None:
        (self.folder / f"{word}.title").write_text(title)
        (self.folder / f"{word}.got").touch()

    def retitle(self, pane: str, word: str, title: str) -> None:
        """Let the agent in that pane set another title."""
        (self.folder / f"{word}.title").write_text(title)
        self.type(pane, "title")

    def type(self, pane: str, line: str) -> None:
        self.tmux.do("send-keys", "-t", pane, "-l", line)
        self.tmux.do("send-keys", "-t", pane, "Enter")

    def got(self, word: str = "one") -> list[str]:
        return (self.folder / f"{word}.got").read_text().splitlines()

    async def has_got(self, *lines: str, word: str = "one") -> None:
        await until(lambda: self.got(word) == list(lines), f"{word} to read {lines}")

    def screen(self, pane: str) -> str:
        return self.tmux.do("capture-pane", "-p", "-t", pane)

    async def shows(self, pane: str, text: str) -> None:
        await until(lambda: text in self.screen(pane), f"{text!r} in {pane}")

    async def title_is(self, pane: str, title: str) -> None:
        shown = ["display-message", "-p", "-t", pane, "#{pane_title}"]
        await until(lambda: self.tmux.do(*shown).rstrip("\n") == title, f"the title {title!r}")

    def watch(self, data: Path, *more: str, dies: str = "") -> Watch:
        """Start to watch; `dies` names the step at which it is killed."""
        program = [PYNCHY] if not dies else [sys.executable, "-m", "tests.terminal.dying", dies]
        options = ["--tmux", "--tmux-socket", self.socket, "--group", GROUP, "--data-dir", data]
        log = self.folder / f"watch-{len(self._watches)}.log"
        watch = Watch([*program, "watch", *options, *more], log)
        self._watches.append(watch)
        return watch

    def close(self) -> None:
        for watch in self._watches:
            watch.kill()
        self.tmux.close()
