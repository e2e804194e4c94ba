"""`pynchy inbox` in a real terminal: a tmux of its own, whose screen is read and typed at."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tmux import Tmux

PYNCHY = str(Path(sys.executable).with_name("pynchy"))
WAIT_SECONDS = 60.0


def until(look: Callable[[], Any], what: Callable[[], str]) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain:\n{what()}"
        time.sleep(0.1)
    return found


class Stage:
    """A host, a terminal, and people and agents around it."""

    def __init__(self, folder: Path) -> None:
        self.env = self._env = {
            **os.environ,
            "PYNCHY_DATA_DIR": str(folder / "data"),
            "LOGNAME": "ana",
        }
        self.tmux = Tmux(folder / "tmux", self._env)
        self._settings = folder / "pynchy.toml"
        self._settings.write_text("[http]\nport = 0\n")
        self.host: subprocess.Popen[bytes] | None = None
        self.askers: list[subprocess.Popen[bytes]] = []

    def start_host(self) -> None:
        serve = [PYNCHY, "serve", "--config", str(self._settings), "--log-level", "error"]
        self.host = subprocess.Popen(serve, env=self._env, stdout=subprocess.PIPE)
        assert self.host.stdout
        self.host.stdout.readline()

    def kill_host(self) -> None:
        assert self.host
        self.host.send_signal(signal.SIGKILL)
        self.host.communicate()

    def open_inbox(self, width: int = 110, height: int = 32) -> None:
        self.tmux.start(f"{PYNCHY} inbox", width, height)

    def ask(self, *words: str) -> subprocess.Popen[bytes]:
        asker = subprocess.Popen(
            [PYNCHY, "ask", *words],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert asker.stderr
        asker.stderr.readline()
        self.askers.append(asker)
        return asker

    def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("pending", "--json"))
        return found

    def run(self, *words: str) -> str:
        return subprocess.run(
            [PYNCHY, *words], env=self._env, check=True, capture_output=True, text=True
        ).stdout

    def see(self, *texts: str) -> str:
        found: str = until(
            lambda: (shown := self.tmux.screen) and all(text in shown for text in texts) and shown,
            lambda: f"{texts} in\n{self.tmux.screen}",
        )
        return found

    def press_until(self, key: str, text: str) -> None:
        """Press it again where the card was still deaf."""
        deadline = time.monotonic() + WAIT_SECONDS
        while text not in self.tmux.screen:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.tmux.screen}"
            self.tmux.press(key)
            time.sleep(0.5)

    def close(self) -> None:
        self.tmux.close()
        for process in [*self.askers, *([self.host] if self.host else [])]:
            process.kill()
            process.communicate()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    stage.start_host()
    try:
        yield stage
    finally:
        stage.close()


def test_a_question_is_answered_at_the_keyboard_and_reaches_its_asker(stage: Stage) -> None:
    asker = stage.ask("Deploy to mars?", "-o", "Yes", "-o", "No", "--title", "Release 2.1")
    stage.open_inbox()

    stage.see("Release 2.1", "Deploy to mars?", "( ) Yes", "● live")
    stage.press_until("2", "(•) No")
    assert asker.poll() is None
    stage.tmux.press("Enter")

    stage.see("Answered by", "The agent has it.", "nothing waits")
    assert asker.communicate(timeout=WAIT_SECONDS)[0].decode().strip() == "No"
    stage.tmux.press("q")
    stage.see("left with 0")


def test_resizing_and_a_host_that_is_killed_lose_nothing(stage: Stage) -> None:
    asker = stage.ask("Which name?")
    stage.open_inbox()
    stage.see("Which name?", "Your answer", "● live")
    stage.press_until("?", "mark an option")
    stage.tmux.press("q")
    stage.see("Your answer")
    stage.tmux.press("w")
    stage.tmux.type("half a na")
    stage.see("half a na")

    for size in ((50, 20), (12, 5), (200, 60), (110, 32)):
        stage.tmux.resize(*size)
    stage.see("half a na", "Which name?")
    stage.kill_host()
    stage.see("reconnecting, last seen")
    stage.tmux.type("me")
    stage.see("half a name")
    stage.start_host()
    stage.see("● live", "half a name", "Ctrl+↵ sends it")
    stage.tmux.press("Escape")
    # The field is left, or the terminal would take Escape and Enter for one key.
    until(lambda: "Ctrl+↵ sends it" not in stage.tmux.screen, lambda: stage.tmux.screen)
    stage.tmux.press("Enter")

    stage.see("Answered by")
    assert asker.communicate(timeout=WAIT_SECONDS)[0].decode().strip() == "half a name"


def test_keys_typed_before_the_screen_is_there_answer_nothing(stage: Stage) -> None:
    stage.ask("Deploy?", "-o", "Yes", "-o", "No")
    stage.open_inbox()
    stage.tmux.type("1\r1\r")

    stage.see("Deploy?", "( ) Yes", "● live")
    assert [question["state"] for question in stage.pending()] == ["open"]


def test_with_single_keys_off_the_same_keys_work_behind_another(stage: Stage) -> None:
    asker = stage.ask("Deploy?", "-o", "Yes", "-o", "No")
    stage.open_inbox()
    stage.see("( ) Yes", "● live")
    stage.press_until("F1", "Single keys work")
    stage.tmux.press("Space")
    stage.see("Single keys are off")
    stage.tmux.press("F1")
    stage.see("after Ctrl+K")

    stage.tmux.type("2d")
    stage.tmux.press("C-k")
    stage.tmux.press("1")
    stage.see("(•) Yes")
    assert "Why?" not in stage.tmux.screen
    stage.tmux.press("Enter")

    assert asker.communicate(timeout=WAIT_SECONDS)[0].decode().strip() == "Yes"
    stage.tmux.press("C-k")
    stage.tmux.press("q")
    stage.see("left with 0")


@pytest.mark.parametrize(
    "padding", ["\U0001f3fd" * 36, "\U0001f44d\U0001f3fd" * 36, "\u200d".join("\U0001f525" * 34)]
)
def test_no_label_is_so_wide_that_its_end_is_out_of_sight(stage: Stage, padding: str) -> None:
    stage.ask("Wide?", "-o", f"Yes, {padding} and delete production", "-o", "No")
    stage.open_inbox(width=80, height=40)

    stage.see("Wide?", "delete production", "( ) No")
