"""`pynchy demo` as people run it: alone, at a terminal, interrupted, and with broken parts."""

import asyncio
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.uvx import lay_out_as_uvx

from pynchy.data_dir import DataFolder
from pynchy.demo.console import Screen, Voices
from pynchy.demo.person import ScriptedPerson
from pynchy.demo.processes import Stage
from pynchy.demo.script import DemoFailed
from pynchy.demo.story import tell

PYNCHY = Path(sys.executable).with_name("pynchy")
PATIENCE_SECONDS = 40.0
LIVE_ANSWERS = ("Staging", "Unit tests, Security scan", "Search is twice as fast.")
LATE_ANSWER = "Not today"


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """The temporary folder of the demo and of everything that it starts; all gone at the end."""
    folder = parent / "scratch"
    folder.mkdir()
    yield folder
    assert processes_in(folder) == []
    assert list(folder.iterdir()) == []


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    with temporary_folder(tmp_path) as folder:
        yield folder


def environment(scratch: Path) -> dict[str, str]:
    """Return what the demo is started with: no screen, so that no browser opens."""
    screens = {"DISPLAY", "WAYLAND_DISPLAY"}
    kept = {name: value for name, value in os.environ.items() if name not in screens}
    return kept | {"TMPDIR": str(scratch)}


def processes_in(folder: Path) -> list[str]:
    """Return the commands of all processes that were started with this temporary folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={folder}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def run_demo(
    scratch: Path, *arguments: str, program: Sequence[Path | str] = (PYNCHY,)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, "demo", *arguments],
        env=environment(scratch),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def played(folder: Path, *arguments: str, program: Sequence[Path | str] = (PYNCHY,)) -> str:
    """Return what a demo prints that nobody types at, from its start to its good end."""
    with temporary_folder(folder) as scratch:
        finished = run_demo(scratch, *arguments, program=program)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the automatic demo is told to use."""
    return tmp_path_factory.mktemp("automatic") / "kept"


@pytest.fixture(scope="module")
def automatic(kept: Path) -> str:
    return played(kept.parent, "--auto", "--data-dir", str(kept))


@pytest.fixture(scope="module")
def without_terminal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints without a terminal, where uvx runs it."""
    folder = tmp_path_factory.mktemp("without-terminal")
    return played(folder, "--no-browser", program=(lay_out_as_uvx(folder), "-m", "pynchy"))


class Terminal:
    """A demo at a terminal of its own."""

    def __init__(self, scratch: Path) -> None:
        self._handle, inner = pty.openpty()
        self.process = subprocess.Popen(
            [PYNCHY, "demo"],
            env=environment(scratch) | {"TERM": "xterm", "COLUMNS": "100"},
            preexec_fn=lambda: os.login_tty(inner),  # noqa: PLW1509 - Ctrl-C needs a real terminal
        )
        os.close(inner)
        self.output = ""
        self._seen = 0

    def read_until(self, text: str) -> str:
        """Return what was printed since the last call until `text` came."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (end := self.output.find(text, self._seen)) < 0:
            left = deadline - time.monotonic()
            assert left > 0, f"waited in vain for {text!r} after: {self.output}"
            ready, _, _ = select.select([self._handle], [], [], left)
            if ready:
                self._read()
        fresh = self.output[self._seen : end]
        self._seen = end + len(text)
        return fresh

    def type(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def exit_code(self) -> int:
        while self._read():
            continue
        os.close(self._handle)
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self) -> str:
        try:
            data = os.read(self._handle, 4096).decode(errors="replace")
        except OSError:  # the other side has ended
            return ""
        self.output += re.sub(r"\x1b\[[0-9;]*m", "", data)
        return data


@pytest.fixture
def terminal(scratch: Path) -> Iterator[Terminal]:
    terminal = Terminal(scratch)
    yield terminal
    if terminal.process.poll() is None:
        terminal.process.terminate()
        terminal.process.wait(PATIENCE_SECONDS)


def test_the_demo_plays_both_parts_and_shows_what_arrived(automatic: str) -> None:
    live, late = automatic.split("5. The agent dies while it waits")

    for answer in LIVE_ANSWERS:
        assert f"Answer: {answer}" in live
    _, permission = live.split("4. A permission")
    assert re.search(r"\$ .*pynchy approve \w+ --data-dir", permission)
    assert "allow: git push origin v1.4.0" in permission
    assert "I am back in session" in late
    assert f"Answer: {LATE_ANSWER}" in late
    assert f"{Path(sys.executable).with_name('pynchy')} serve" in late
    assert "\x1b" not in automatic


def test_without_a_terminal_it_says_that_it_plays_the_person(without_terminal: str) -> None:
    assert "no terminal" in without_terminal


def test_what_to_do_next_works_in_a_terminal_where_uvx_ran_the_demo(without_terminal: str) -> None:
    call = f"uvx --from {Path(__file__).parents[2]} pynchy"
    after = without_terminal.partition("What to do next:")[2]

    assert f"  {call} serve" in after
    assert f"  {call} inbox" in after
    assert '{"command": "uvx", "args": ["--from", ' in after


def test_the_demo_says_where_the_inbox_is(automatic: str, without_terminal: str) -> None:
    for shown in (automatic, without_terminal):
        assert re.search(r"http://127\.0\.0\.1:\d+/sign-in\?key=\S{20,}", shown)


def test_a_person_answers_here_and_from_another_terminal(scratch: Path, terminal: Terminal) -> None:
    terminal.read_until("you │ ")
    terminal.type("9\n")
    assert "choose 1 to 3" in terminal.read_until("you │ ")
    terminal.type("production\n")

    printed = terminal.read_until("you │ ")
    command = next(line for line in printed.splitlines() if "--data-dir" in line)
    subprocess.run(
        ["sh", "-c", command.partition("│")[2].replace(" 1 3 ", " 2 3 ")],
        env=environment(scratch),
        check=True,
        capture_output=True,
    )
    terminal.read_until("3. Free text")
    terminal.read_until("you │ ")
    terminal.type("It is -- 'quicker' now\n")
    terminal.read_until("4. A permission")
    terminal.read_until("you │ ")
    terminal.type("1\n")
    assert "Nothing else is a yes" in terminal.read_until("you │ ")
    terminal.type("deny not on a Friday\n")
    assert "not on a Friday" in terminal.read_until("killed").partition("deny: ")[2]
    terminal.read_until("you │ ")
    terminal.type("1\n")

    assert terminal.exit_code() == 0, terminal.output
    for answer in (
        "Production",
        "Load test, Security scan",
        "It is -- 'quicker' now",
        "Yes, switch",
    ):
        assert f"Answer: {answer}" in terminal.output


@pytest.mark.usefixtures("scratch")
def test_ctrl_c_leaves_nothing_behind(terminal: Terminal) -> None:
    terminal.read_until("you │ ")
    terminal.type("\x03")

    assert terminal.exit_code() == 130
    assert "Nothing of the demo is left running" in terminal.output


@pytest.mark.usefixtures("scratch")
def test_the_end_of_the_input_ends_the_demo_with_a_failure(terminal: Terminal) -> None:
    terminal.read_until("you │ ")
    terminal.type("\x04")

    assert terminal.exit_code() == 1
    assert "left before its end" in terminal.output


def test_a_termination_while_it_starts_leaves_nothing_behind(scratch: Path) -> None:
    process = subprocess.Popen(
        [PYNCHY, "demo", "--auto"],
        env=environment(scratch),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with process:
        assert process.stdout is not None
        while b"connected" not in process.stdout.readline():
            continue
        process.send_signal(signal.SIGTERM)
        process.stdout.read()

    assert process.returncode == 130


def test_a_folder_that_is_named_is_kept_and_one_in_use_is_refused(
    scratch: Path, automatic: str, kept: Path
) -> None:
    second = run_demo(scratch, "--auto", "--data-dir", str(kept))

    assert f"What the demo wrote is in {kept}" in automatic
    assert len(list((kept / "ipc" / "demo" / "history").iterdir())) == 5
    assert second.returncode == 2
    assert "not empty" in second.stderr


# The demo with one part replaced by a broken one.

ALTERED_AGENT = """
import sys
from pynchy.demo import agent
call_tool = agent.McpClient.call_tool
agent.McpClient.call_tool = lambda *given: call_tool(*given).replace("Staging", "Production")
sys.exit(agent.main(sys.argv[1:]))
"""
DEAF_AGENT = """
import sys
from pathlib import Path
from agent_runner import initial
path = Path(sys.argv[1])
initial.acknowledge(initial.load_initial(path), initial.find_ipc_dir(path))
"""


def sabotaged(tmp_path: Path, **commands: tuple[str, ...]) -> str:
    """Play the demo with these commands and return why it failed."""
    scratch = tmp_path / "sabotaged"
    scratch.mkdir()
    voices = Voices(Screen(file=io.StringIO()))
    stage = Stage(DataFolder(scratch / "data"), scratch, **commands)
    with pytest.raises(DemoFailed) as failure:
        asyncio.run(tell(stage, ScriptedPerson(voices), voices))
    return str(failure.value)


def test_an_answer_that_was_altered_on_its_way_fails_the_demo(tmp_path: Path) -> None:
    why = sabotaged(tmp_path, agent=(sys.executable, "-c", ALTERED_AGENT))

    assert "should have heard 'Staging'" in why


def test_a_resumed_agent_that_fails_fails_the_demo(tmp_path: Path) -> None:
    why = sabotaged(tmp_path, launcher=("false",))

    assert "exit code 1" in why


def test_a_resumed_agent_that_never_prints_the_answer_fails_the_demo(tmp_path: Path) -> None:
    why = sabotaged(tmp_path, launcher=(sys.executable, "-c", DEAF_AGENT, "{initial}"))

    assert "the resumed agent should have heard 'Answered'" in why


def test_an_agent_that_cannot_start_fails_the_demo(tmp_path: Path) -> None:
    why = sabotaged(tmp_path, agent=("true",))

    assert "ended before its time" in why
