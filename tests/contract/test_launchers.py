"""Every launcher keeps the same promises; a new one joins by the fixture."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.model import GroupName, RequestId, SessionId
from pynchy.sessions.base import Launcher, Resumption, Runner
from pynchy.sessions.command import CommandLauncher
from pynchy.testing import FakeLauncher, FakeRunner

GROUP = GroupName("g1")
SESSION = SessionId("s1")

# Waits until it is told how to end, so that a test decides when.
SCRIPT = """
import os, pathlib, sys, time
order = pathlib.Path(sys.argv[1])
while not order.exists():
    time.sleep(0.01)
sys.exit(int(order.read_text()))
"""


class Bench(Protocol):
    """A launcher, and a way to let its runner end."""

    launcher: Launcher

    def end(self, runner: Runner, code: int) -> None: ...

    def restarted(self) -> Launcher: ...


class CommandBench:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._order = folder / "order"
        self.launcher = self.restarted()

    def restarted(self) -> Launcher:
        command = (sys.executable, "-c", SCRIPT, str(self._order))
        settings = LauncherSettings(command=command)
        return CommandLauncher(self._folder, GROUP, settings, dict(os.environ))

    def end(self, runner: Runner, code: int) -> None:
        del runner
        partial = self._order.with_suffix(".part")
        partial.write_text(str(code))
        partial.rename(self._order)


class FakeBench:
    def __init__(self) -> None:
        self.launcher = FakeLauncher()

    def restarted(self) -> Launcher:
        return self.launcher

    def end(self, runner: Runner, code: int) -> None:
        assert isinstance(runner, FakeRunner)
        runner.finish(f"exit code {code}" if code else None)


@pytest.fixture(params=["command", "fake"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made = CommandBench(tmp_path) if request.param == "command" else FakeBench()
    yield made
    await made.launcher.close()


@pytest.fixture
def resumption(tmp_path: Path) -> Resumption:
    return Resumption(GROUP, SESSION, RequestId("q1"), 1, tmp_path / "initial.json", tmp_path)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - another process's doing has no event here
            await asyncio.sleep(0.01)


async def test_a_runner_that_ends_well_has_no_error(bench: Bench, resumption: Resumption) -> None:
    runner = await bench.launcher.start(resumption)
    assert bench.launcher.is_live(GROUP, SESSION)

    bench.end(runner, 0)

    assert (await runner.ended()).error is None
    await until(lambda: not bench.launcher.is_live(GROUP, SESSION))


async def test_a_runner_that_fails_says_so(bench: Bench, resumption: Resumption) -> None:
    runner = await bench.launcher.start(resumption)

    bench.end(runner, 3)

    assert (await runner.ended()).error == "exit code 3"


async def test_several_may_wait_for_the_end_and_one_may_stop_waiting(
    bench: Bench, resumption: Resumption
) -> None:
    runner = await bench.launcher.start(resumption)
    patient = asyncio.ensure_future(runner.ended())
    impatient = asyncio.ensure_future(runner.ended())
    await asyncio.sleep(0)

    impatient.cancel()
    bench.end(runner, 0)

    assert (await patient).error is None


async def test_another_session_is_not_live(bench: Bench, resumption: Resumption) -> None:
    runner = await bench.launcher.start(resumption)

    assert not bench.launcher.is_live(GROUP, SessionId("s2"))
    bench.end(runner, 0)
    await runner.ended()


async def test_an_attempt_that_was_never_made_is_not_found(
    bench: Bench, resumption: Resumption
) -> None:
    assert await bench.launcher.find(resumption) is None


async def test_a_living_runner_is_found_again_after_a_restart_of_the_host(
    bench: Bench, resumption: Resumption
) -> None:
    runner = await bench.launcher.start(resumption)

    again = bench.restarted()
    await again.adopt()
    found = await again.find(resumption)

    assert found is not None
    assert again.is_live(GROUP, SESSION)
    bench.end(runner, 3)
    assert (await found.ended()).error == "exit code 3"
    await runner.ended()
    await again.close()


async def test_how_a_runner_ended_is_known_after_a_restart_of_the_host(
    bench: Bench, resumption: Resumption
) -> None:
    runner = await bench.launcher.start(resumption)
    bench.end(runner, 0)
    await runner.ended()

    again = bench.restarted()
    await again.adopt()
    found = await again.find(resumption)

    assert found is not None
    assert (await found.ended()).error is None
    assert await again.find(replace(resumption, attempt=2)) is None
    await again.close()


def command_launcher(tmp_path: Path, *command: str, **settings: object) -> CommandLauncher:
    made = LauncherSettings.model_validate({"command": command, **settings})
    return CommandLauncher(tmp_path, GROUP, made, {"PATH": os.environ["PATH"], "SECRET": "x"})


async def test_a_command_is_given_its_arguments_and_environment_without_a_shell(
    tmp_path: Path, resumption: Resumption
) -> None:
    told = tmp_path / "told"
    script = (
        "import os, sys, pathlib; "
        "pathlib.Path(sys.argv[1]).write_text("
        "'|'.join([*sys.argv[2:], os.environ['PYNCHY_SESSION_ID'],"
        " os.environ['PYNCHY_IPC_DIR'], os.environ['EXTRA'], os.getcwd()]))"
    )
    launcher = command_launcher(
        tmp_path,
        sys.executable, "-c", script, str(told), "{initial}", "{session_id}", "$HOME; {{x}}",
        env={"EXTRA": "yes"},
        cwd=str(tmp_path),
    )  # fmt: skip

    end = await (await launcher.start(resumption)).ended()

    assert end.error is None
    expected = [resumption.initial, "s1", "$HOME; {x}", "s1", tmp_path, "yes", tmp_path]
    assert told.read_text().split("|") == [str(part) for part in expected]
    await launcher.close()


async def test_a_command_that_is_not_there_is_reported(
    tmp_path: Path, resumption: Resumption
) -> None:
    launcher = command_launcher(tmp_path, "/no/such/program")

    end = await (await launcher.start(resumption)).ended()

    assert end.error == "could not start /no/such/program: No such file or directory"
    await launcher.close()


async def test_a_command_is_ended_at_its_cap_even_if_it_ignores_the_request(
    tmp_path: Path, resumption: Resumption
) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    launcher = command_launcher(
        tmp_path, sys.executable, "-c", stubborn, timeout=0.3, term_grace=0.1
    )

    end = await (await launcher.start(resumption)).ended()

    assert end.error is not None
    assert end.error.startswith("ended at its cap of 0.3 s")
    await launcher.close()


async def test_what_a_failed_command_said_can_be_found(
    tmp_path: Path, resumption: Resumption
) -> None:
    launcher = command_launcher(
        tmp_path, sys.executable, "-c", "print('oh no'); raise SystemExit(1)"
    )

    end = await (await launcher.start(resumption)).ended()

    assert end.error is not None
    path = Path(end.error.removeprefix("exit code 1; its output is in "))
    assert path.read_text() == "oh no\n"
    await launcher.close()


async def test_a_runner_is_not_started_beside_itself(
    tmp_path: Path, resumption: Resumption
) -> None:
    bench = CommandBench(tmp_path)
    runner = await bench.launcher.start(resumption)

    with pytest.raises(DeliveryFailed):
        await bench.restarted().start(resumption)

    bench.end(runner, 0)
    await runner.ended()


async def test_no_environment_is_written_to_the_disk(
    tmp_path: Path, resumption: Resumption
) -> None:
    launcher = command_launcher(tmp_path, "true", env={"API_KEY": "sk-hidden"})
    await (await launcher.start(resumption)).ended()

    written = b"".join(p.read_bytes() for p in (tmp_path / "runners").rglob("*") if p.is_file())

    assert b"sk-hidden" not in written
    await launcher.close()
