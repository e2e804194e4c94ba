"""A process lives for as long as one of its threads does, also when its first has ended."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.launchers import job_runner
from pynchy.launchers.base import Launch
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.job_runner import descendants
from pynchy.launchers.sandbox_monitor import usage
from pynchy.model import GroupName, RequestId, SessionId

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

GROUP, SESSION = GroupName("g1"), SessionId("s1")
MIB = 1024**2

# Deaf, and its first thread ends: the process is shown as a zombie while the other goes on.
HEADLESS = """
import ctypes, os, pathlib, platform, signal, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
libc = ctypes.CDLL(None)
libc.prctl(15, b"\\x0bRssAnon: zz", 0, 0, 0)  # its name, which must not pass for a figure
def work():
    held = bytearray(b"x") * 100_000_000
    libc.prctl(15, b"worker", 0, 0, 0)
    pathlib.Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600)
threading.Thread(target=work).start()
libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
# In a session of its own, so that no signal to the runner's group reaches it.
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True)
time.sleep(600)
"""


class Headless:
    """The processes whose first thread has ended."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        self.pids.mkdir()
        program = folder / "headless.py"
        program.write_text(HEADLESS)
        self.command = [str(program), str(self.pids)]

    def alive(self) -> list[int]:
        pids = [int(path.name) for path in self.pids.iterdir()]
        return [pid for pid in pids if any(state != "Z" for state in _threads(pid))]

    async def there(self) -> int:
        """Return the one that lives, once its first thread has ended."""
        await until(self.alive, "the process")
        [pid] = self.alive()
        await until(lambda: sorted(_threads(pid)) == ["S", "Z"], "its first thread to end")
        return pid


def _threads(pid: int) -> list[str]:
    """Return the states of the process's threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            found.append(path.read_text().rpartition(") ")[2][0])
    return found


@pytest.fixture
def headless(tmp_path: Path) -> Iterator[Headless]:
    made = Headless(tmp_path)
    yield made
    for pid in made.alive():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    mailbox = tmp_path / "ipc" / GROUP
    (mailbox / "input").mkdir(parents=True)
    initial = mailbox / "input" / "initial.json"
    return Launch(GROUP, SESSION, "q1", 1, initial, mailbox, RequestId("q1"))


def launcher(folder: Path, *command: str) -> CommandLauncher:
    told = {"command": [sys.executable, *command], "term_grace": 0.2}
    settings = LauncherSettings.model_validate(told)
    return CommandLauncher(folder, GROUP, settings, dict(os.environ))


async def test_a_process_whose_first_thread_had_ended_was_not_counted(headless: Headless) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, *headless.command)
    pid = await headless.there()

    below, used = descendants(os.getpid()), usage(os.getpid())

    process.kill()
    await process.wait()
    assert pid in below
    assert used.memory > 90 * MIB


@pytest.mark.parametrize("is_child", [False, True], ids=["the runner", "its child"])
async def test_a_process_whose_first_thread_had_ended_outlived_a_stop(
    tmp_path: Path, headless: Headless, launch: Launch, *, is_child: bool
) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(PARENT)
    started = launcher(tmp_path, *([str(parent)] if is_child else []), *headless.command)
    runner = await started.start(launch)
    await headless.there()

    await runner.stop()
    end = await runner.ended()

    assert end.stopped
    assert headless.alive() == []
    await started.close()


async def test_a_process_whose_first_thread_had_ended_outlived_a_killed_supervisor(
    tmp_path: Path, headless: Headless, launch: Launch
) -> None:
    started = launcher(tmp_path, *headless.command)
    runner = await started.start(launch)
    pid = await headless.there()

    supervisor = job_runner.state_and_parent(str(pid))
    assert supervisor is not None
    os.kill(supervisor[1], signal.SIGKILL)
    end = await runner.ended()

    assert "what was left of it was ended" in str(end.error)
    assert headless.alive() == []
    await started.close()
