"""A supervisor that is killed: its runner is ended by the host, and a session never has two."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.launchers import job_runner
from pynchy.launchers.base import Launch
from pynchy.launchers.command import CommandLauncher
from pynchy.launchers.jobs import JobLauncher
from pynchy.launchers.process import ProcessLauncher
from pynchy.model import GroupName, RequestId, SessionId

GROUP, SESSION = GroupName("g1"), SessionId("s1")

# Deaf to requests to end, as is its child, which has a session of its own and no environment.
DEAF = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder = pathlib.Path(os.environ["PIDS"])
if len(sys.argv) > 1 and sys.argv[1] == "child":
    (folder / f"child-{os.getpid()}").touch()
    time.sleep(600)
lone = {"env": {"PIDS": str(folder)}, "start_new_session": True}
subprocess.Popen([sys.executable, __file__, "child"], **lone)
(folder / f"parent-{os.getpid()}").touch()
time.sleep(600)
"""


class Bench:
    """A launcher of deaf runners, which can be made again as after a restart of the host."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._program = folder / "a_runner"
        self._program.write_text(f"#!{sys.executable}\n{DEAF}")
        self._program.chmod(0o700)
        self.pids = folder / "pids"
        self.pids.mkdir()
        self.launcher = self.made()

    def made(self) -> JobLauncher:
        environ = {**os.environ, "PIDS": str(self.pids)}
        if self._kind == "command":
            settings = LauncherSettings.model_validate(
                {"command": [str(self._program)], "term_grace": 0.2}
            )
            return CommandLauncher(self._folder, GROUP, settings, environ)
        told = {"kind": "process", "agent": "claude", "runner": str(self._program)}
        settings = LauncherSettings.model_validate({**told, "term_grace": 0.2})
        return ProcessLauncher(self._folder, GROUP, settings, environ)

    def alive(self) -> list[str]:
        """Return which of the runners' processes live."""
        return sorted(p.name for p in self.pids.iterdir() if _is_alive(int(p.name.split("-")[1])))

    async def there(self, count: int = 2) -> None:
        await until(lambda: len(self.alive()) == count, "the runner's processes")

    def kill_supervisor(self, stem: str = "q1.1") -> None:
        job = str(self._folder / "runners" / GROUP / f"{stem}.job")
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes().decode(errors="replace").split("\0")
                if job_runner.__file__ in words and job in words:
                    os.kill(int(path.parts[2]), signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@pytest.fixture(params=["command", "process"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    mailbox = tmp_path / "ipc" / GROUP
    (mailbox / "input").mkdir(parents=True)
    initial = mailbox / "input" / "initial.json"
    return Launch(GROUP, SESSION, "q1", 1, initial, mailbox, RequestId("q1"))


async def test_a_runner_whose_supervisor_was_killed_has_ended_when_it_is_said_to_have(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    await bench.there()

    bench.kill_supervisor()
    end = await runner.ended()

    assert "vanished without a result; what was left of it was ended" in str(end.error)
    assert bench.alive() == []
    assert bench.launcher.runner_on(GROUP, SESSION) is None
    await bench.launcher.close()


async def test_a_session_whose_supervisor_was_killed_never_has_two_runners(
    bench: Bench, launch: Launch
) -> None:
    first = await bench.launcher.start(launch)
    await bench.there()
    before = bench.alive()

    bench.kill_supervisor()
    await first.ended()
    second = await bench.launcher.start(replace(launch, name="q2"))
    await bench.there()

    assert not {*bench.alive()} & {*before}
    await second.stop()
    await second.ended()
    assert bench.alive() == []
    await bench.launcher.close()


@pytest.mark.parametrize("way", ["adopt", "find"])
async def test_what_was_left_while_there_was_no_host_is_ended_by_the_next(
    bench: Bench, launch: Launch, way: str
) -> None:
    await bench.launcher.start(launch)
    await bench.there()
    await bench.launcher.close()
    bench.kill_supervisor()

    again = bench.made()
    if way == "adopt":
        await again.adopt()
    found = await again.find(launch.stem)

    assert found is not None
    assert "vanished" in str((await found.ended()).error)
    assert bench.alive() == []
    await again.close()


async def test_who_stops_a_runner_without_a_supervisor_is_told_how_it_really_ended(
    bench: Bench, launch: Launch
) -> None:
    runner = await bench.launcher.start(launch)
    await bench.there()

    await runner.stop()
    bench.kill_supervisor()
    end = await runner.ended()

    assert end.stopped
    assert str(end.error).startswith("stopped")
    assert bench.alive() == []
    await bench.launcher.close()


async def test_a_command_that_hears_is_asked_to_end_when_its_supervisor_is_killed(
    tmp_path: Path,
) -> None:
    hears = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n pathlib.Path('ended').touch(); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); pathlib.Path('here').touch(); time.sleep(600)"
    )
    bench = Bench(tmp_path, "command")
    settings = LauncherSettings(command=(sys.executable, "-c", hears), cwd=tmp_path)
    launcher = CommandLauncher(tmp_path, GROUP, settings, os.environ)
    await launcher.start(Launch(GROUP, SESSION, "q1", 1, tmp_path, tmp_path))
    await until((tmp_path / "here").exists, "the command")
    await launcher.close()  # no host is there to end it

    bench.kill_supervisor()

    await until((tmp_path / "ended").exists, "its end")


async def test_another_process_is_never_taken_for_what_was_left(
    bench: Bench, launch: Launch, request: pytest.FixtureRequest
) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # noqa: ASYNC220 - only starts it
    request.addfinalizer(_ender(other))
    neighbour = await bench.launcher.start(replace(launch, name="q2", session_id=SessionId("s2")))
    await bench.there()
    kept = bench.alive()
    runner = await bench.launcher.start(launch)
    await bench.there(4)

    bench.kill_supervisor()
    await runner.ended()

    assert bench.alive() == kept
    assert other.poll() is None
    await neighbour.stop()
    await neighbour.ended()
    await bench.launcher.close()


def _ender(process: "subprocess.Popen[bytes]") -> Callable[[], None]:
    def end() -> None:
        process.kill()
        process.wait()

    return end
