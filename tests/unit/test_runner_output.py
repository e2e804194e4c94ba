"""What runners print: kept within bounds, and read on where a reader was."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.launchers import job_runner, jobs
from pynchy.launchers.base import Launch
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.run_log import read_output
from pynchy.model import GroupName, SessionId
from pynchy.session import Session, SessionState
from pynchy.testing import NOON

GROUP, SESSION = GroupName("g1"), SessionId("s1")
STEMS = ("q1.1", "q2.1")
# Prints ten times what is kept as fast as it can, and then the end.
TALKER = f"""
import sys
for _ in range(10):
    sys.stdout.write("x" * {job_runner.MAX_LOG_BYTES})
print()
print("the end")
"""


async def test_a_runner_that_talks_without_end_does_not_fill_the_disk(tmp_path: Path) -> None:
    command = (sys.executable, "-c", TALKER)
    launcher = CommandLauncher(tmp_path, GROUP, LauncherSettings(command=command), os.environ)
    launch = Launch(GROUP, SESSION, "q1", 1, tmp_path / "initial.json", tmp_path)
    log = tmp_path / "runners/g1/q1.1.log"

    runner = await launcher.start(launch)
    ending = asyncio.ensure_future(runner.ended())
    sizes: list[int] = []

    def look() -> bool:
        sizes.append(log.stat().st_size)
        return ending.done()

    await until(look, "the runner's end")

    assert (await ending).error is None
    assert max(sizes) <= job_runner.MAX_LOG_BYTES
    first, *_, last = (await asyncio.to_thread(log.read_text)).splitlines()
    assert "too long to be kept" in first
    assert last == "the end"


# Leaves a process behind that prints when it is told so, and ends.
LEAVER = """
import subprocess, sys
later = "import pathlib, sys, time; go = pathlib.Path(sys.argv[1])\\n"
later += "while not go.exists(): time.sleep(0.01)\\nprint('y' * 100)"
subprocess.Popen([sys.executable, "-c", later, sys.argv[1]])
print("x" * 100)
"""


async def test_what_a_command_leaves_in_the_background_can_go_on_printing(tmp_path: Path) -> None:
    command = (sys.executable, "-c", LEAVER, str(tmp_path / "go"))
    launcher = CommandLauncher(tmp_path, GROUP, LauncherSettings(command=command), os.environ)
    launch = Launch(GROUP, SESSION, "q1", 1, tmp_path / "initial.json", tmp_path)
    log = tmp_path / "runners/g1/q1.1.log"

    ended = await (await launcher.start(launch)).ended()
    before = await asyncio.to_thread(log.read_text)
    (tmp_path / "go").touch()

    assert (ended.error, before) == (None, "x" * 100 + "\n")
    await until(lambda: log.read_text() == "x" * 100 + "\n" + "y" * 100 + "\n", "what it printed")


async def test_what_runners_printed_is_kept_up_to_a_size_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runners/g1"
    folder.mkdir(parents=True)
    for number in range(4):
        log = folder / f"q{number}.1.log"
        log.write_bytes(b"x" * 100)
        os.utime(log, (time.time() - 1000 + number, time.time() - 1000 + number))
    monkeypatch.setattr(jobs, "MAX_BYTES", 250)
    settings = LauncherSettings(command=(sys.executable, "-c", ""))
    launcher = CommandLauncher(tmp_path, GROUP, settings, os.environ)

    await (await launcher.start(Launch(GROUP, SESSION, "new", 1, tmp_path, tmp_path))).ended()

    assert sorted(path.name for path in folder.glob("q*.log")) == ["q2.1.log", "q3.1.log"]


@pytest.mark.parametrize(("after", "text"), [(0, "half é"), (5, "é"), (7, ""), (99, "")])
def test_a_reader_goes_on_where_it_was_also_when_the_log_began_anew(
    tmp_path: Path, after: int, text: str
) -> None:
    folder = tmp_path / "runners/g1"
    folder.mkdir(parents=True)
    (folder / "q1.1.log").write_text("half é")
    session = Session(GROUP, SESSION, SessionState.WORKING, NOON, NOON, launches=("q1.1",))

    piece = read_output(tmp_path, session, after)

    assert (piece.text, piece.next) == (text, 7)


def test_a_runner_that_was_killed_within_a_letter_does_not_hide_what_the_next_one_printed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "runners" / GROUP
    folder.mkdir(parents=True)
    (folder / "q1.1.log").write_bytes("half €".encode()[:-1])
    (folder / "q2.1.log").write_bytes("whole € and half €".encode()[:-1])
    session = Session(GROUP, SESSION, SessionState.WORKING, NOON, NOON, launches=STEMS)

    texts, read = [], 0
    while (piece := read_output(tmp_path, session, read)).text:
        texts.append(piece.text)
        read = piece.next

    assert "".join(texts) == "half �whole € and half "
