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
MANY = job_runner.MAX_LOG_BYTES + 1

# Prints more than is kept, then waits to be told to print the end.
TALKER = f"""
import pathlib, sys, time
for _ in range(65):
    sys.stdout.write("x" * {MANY // 64})
sys.stdout.flush()
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print("the end")
"""


async def test_a_runner_that_talks_without_end_does_not_fill_the_disk(tmp_path: Path) -> None:
    command = (sys.executable, "-c", TALKER, str(tmp_path / "go"))
    launcher = CommandLauncher(tmp_path, GROUP, LauncherSettings(command=command), os.environ)
    launch = Launch(GROUP, SESSION, "q1", 1, tmp_path / "initial.json", tmp_path)
    log = tmp_path / "runners/g1/q1.1.log"

    runner = await launcher.start(launch)
    await until(lambda: log.exists() and 0 < log.stat().st_size < 1_000, "the log to be cut")
    (tmp_path / "go").touch()
    ended = await runner.ended()

    assert ended.error is None
    first, *_, last = (await asyncio.to_thread(log.read_text)).splitlines()
    assert "too long to be kept" in first
    assert last.endswith("the end")


def test_what_is_printed_while_the_log_begins_anew_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100)
    monkeypatch.setattr(job_runner, "MAX_LOG_BYTES", 10)

    def truncate_and_print(fd: int, length: int) -> None:
        truncate(fd, length)
        with log.open("ab") as printed:
            printed.write(b"in between\n")

    truncate = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", truncate_and_print)
    job_runner.cut(str(log))

    assert log.read_text().splitlines()[0] == "in between"
    assert "too long to be kept" in log.read_text()


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
