"""What a person at a terminal sees and types."""

import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.unit.cli.support import Host, start_pynchy
from tests.waiting import DEADLINE_SECONDS

DEPLOY = {"question": "Deploy?", "options": ["Yes", "No"]}
COLOURS = {"question": "Colours?", "options": ["Red", "Green", "Blue"], "multiSelect": True}


class Terminal:
    """The person's side of a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Read until the text has come, and forget what was before it."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self._fd], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} never came: {self.seen!r}"
            self.seen += os.read(self._fd, 65_536).decode()
        self.seen = self.seen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def drain(self) -> None:
        """Read on until the other side is gone, so that it is never held up."""
        with suppress(OSError):
            while os.read(self._fd, 65_536):
                pass


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C, again if need be: Python misses one that comes just before it reads a line."""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return


@contextmanager
def at_terminal(host: Host, *command: str) -> Iterator[tuple[Terminal, subprocess.Popen[str]]]:
    person, program = pty.openpty()
    termios.tcsetwinsize(program, (40, 100))
    streams = {"stdin": program, "stdout": program, "stderr": program, "process_group": 0}
    process = start_pynchy(host, *command, **streams)
    os.close(program)
    terminal = Terminal(person)
    try:
        with process:
            yield terminal, process
            terminal.drain()
            process.wait(DEADLINE_SECONDS)
    finally:
        os.close(person)


def test_an_id_alone_shows_the_question_and_asks(host: Host) -> None:
    short_id = host.ask(DEPLOY)

    with at_terminal(host, "answer", short_id) as (terminal, process):
        terminal.wait_for("Deploy?")
        terminal.wait_for("Answer (1-2 or text): ")
        terminal.type("7\n")
        terminal.wait_for("there is no option 7")
        terminal.wait_for("Answer (1-2 or text): ")
        terminal.type("2\n")
        terminal.wait_for("answered: No")

    assert process.returncode == 0
    assert host.client.question(short_id)["ending"]["answers"][0]["selected"] == ["No"]


def test_each_of_several_questions_is_asked(host: Host) -> None:
    short_id = host.ask(DEPLOY, COLOURS)

    with at_terminal(host, "answer", short_id) as (terminal, process):
        terminal.wait_for("Answer 1 (1-2 or text): ")
        terminal.type("Yes\n")
        terminal.wait_for("Answer 2 (1-3, several with commas): ")
        terminal.type("1, blue\n")
        terminal.wait_for("answered: Yes; Red, Blue")

    assert process.returncode == 0


def test_several_choices_of_one_question_are_split(host: Host) -> None:
    with at_terminal(host, "answer", host.ask(COLOURS)) as (terminal, process):
        terminal.wait_for("several with commas): ")
        terminal.type("1,3\n")
        terminal.wait_for("answered: Red, Blue")

    assert process.returncode == 0


def test_ctrl_c_at_the_prompt_answers_nothing(host: Host) -> None:
    short_id = host.ask(DEPLOY)

    with at_terminal(host, "answer", short_id) as (terminal, process):
        terminal.wait_for("Answer (1-2 or text): ")
        interrupt(process)
        terminal.wait_for("Aborted!")

    assert process.returncode == 1
    assert host.client.question(short_id)["ending"] is None


def test_a_question_that_is_over_is_not_asked_about(host: Host) -> None:
    short_id = host.ask(DEPLOY)
    host.reply(short_id, "decline", "ben")

    with at_terminal(host, "answer", short_id) as (terminal, process):
        terminal.wait_for("already over: declined by ben")

    assert process.returncode == 4


def test_watching_outlives_a_restart_of_the_host(host: Host) -> None:
    with at_terminal(host, "pending", "--watch") as (terminal, process):
        terminal.wait_for("Nothing waits for an answer")
        host.ask(DEPLOY)
        terminal.wait_for("Deploy?")
        host.stop()
        terminal.wait_for("host gone, waiting")
        host.start()
        host.ask(COLOURS)
        terminal.wait_for("Colours?")
        process.send_signal(signal.SIGINT)

    assert process.returncode == 0


def test_a_sessions_id_is_shown_by_its_beginning_where_that_is_enough(host: Host) -> None:
    for session_id in ("6f1c2f0a-0d1c", "aaaaaaaa-1", "aaaaaaaa-2"):
        host.ask(DEPLOY, session_id=session_id)

    with at_terminal(host, "sessions") as (terminal, process):
        terminal.wait_for("aaaaaaaa-2")
        terminal.wait_for("aaaaaaaa-1")
        terminal.wait_for("6f1c2f0a ")
        terminal.wait_for("web-team: isolation: not known: pynchy has not started it")
    with at_terminal(host, "sessions", "--all") as (terminal, _):
        terminal.wait_for("6f1c2f0a-0d1c")

    assert process.returncode == 0


def test_a_connection_is_written_only_after_a_yes(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    settings = tmp_path / "codex" / "config.toml"

    for word, code, is_written in (("n", 2, False), ("y", 0, True)):
        with at_terminal(host, "connect", "codex") as (terminal, process):
            terminal.wait_for("[mcp_servers.pynchy]")
            terminal.wait_for("Write this? [y/N]: ")
            assert not settings.exists()
            terminal.type(f"{word}\n")

        assert process.returncode == code
        assert settings.exists() == is_written
