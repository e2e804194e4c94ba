"""A runner that was started is followed to its end, whatever fails for the host meanwhile."""

import asyncio
import errno
import os
import resource
import selectors
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers.base import Launch, Runner
from pynchy.launchers.command import CommandLauncher
from pynchy.model import GroupName, RequestId, SessionId

GROUP, SESSION = GroupName("g1"), SessionId("s1")

# Says that it is there, then waits until it may end.
SCRIPT = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / str(os.getpid())).touch()
while not (folder / "end").exists():
    time.sleep(0.01)
"""


class Bench:
    """A launcher, and the runners that it has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started = folder / "started"
        self.started.mkdir()
        self.launcher = self.made()

    def made(self) -> CommandLauncher:
        command = (sys.executable, "-c", SCRIPT, str(self.started))
        settings = LauncherSettings(command=command)
        return CommandLauncher(self._folder, GROUP, settings, dict(os.environ))

    def pids(self) -> list[str]:
        return [name for name in os.listdir(self.started) if name.isdecimal()]

    async def there(self) -> None:
        await until(lambda: len(self.pids()) == 1, "the runner")

    async def ended_well(self, runner: Runner) -> bool:
        (self.started / "end").touch()
        async with asyncio.timeout(30):
            return (await runner.ended()).error is None


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    (made.started / "end").touch()
    await made.launcher.close()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    mailbox = tmp_path / "ipc" / GROUP
    (mailbox / "input").mkdir(parents=True)
    initial = mailbox / "input" / "initial.json"
    return Launch(GROUP, SESSION, "q1", 1, initial, mailbox, RequestId("q1"))


async def test_an_agent_that_takes_all_of_epoll_had_several_runners_put_on_one_session(
    bench: Bench, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(selectors.EpollSelector, "register", refuse)

    runner = await bench.launcher.start(launch)
    with pytest.raises(DeliveryFailed, match="already"):
        await bench.launcher.start(replace(launch, attempt=2))

    await bench.there()
    assert await bench.ended_well(runner)


@pytest.mark.parametrize("refused", ["runner ", "word of "])
async def test_a_host_that_gets_no_thread_lost_sight_of_the_runner_it_had_started(
    bench: Bench, launch: Launch, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    start = Thread.start

    def start_if_allowed(self: Thread) -> None:
        if self.name.startswith(refused):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(Thread, "start", start_if_allowed)

    runner = await bench.launcher.start(launch)
    await bench.there()

    assert bench.launcher.runner_on(GROUP, SESSION) is runner
    assert await bench.ended_well(runner)


async def test_a_start_that_gets_no_thread_is_not_made_later_behind_the_hosts_back(
    bench: Bench, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def refuse(_: Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(Thread, "start", refuse)
        with pytest.raises(DeliveryFailed, match="could not be started"):
            await bench.launcher.start(launch)

    for _ in range(50):  # whatever a pool has kept would be done before these
        await asyncio.to_thread(int)
    assert bench.launcher.runner_on(GROUP, SESSION) is None
    assert await bench.launcher.find(launch.stem) is None


async def test_a_start_whose_caller_goes_away_is_followed_all_the_same(
    bench: Bench, launch: Launch
) -> None:
    starting = asyncio.create_task(bench.launcher.start(launch))
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)

    with pytest.raises(DeliveryFailed, match="already"):
        await bench.launcher.start(replace(launch, attempt=2))
    await until(lambda: bench.launcher.runner_on(GROUP, SESSION), "the runner to be followed")
    await bench.there()


async def test_a_host_without_descriptors_took_a_living_runner_for_ended(
    bench: Bench, launch: Launch, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.launcher.start(launch)
    await bench.there()
    await bench.launcher.close()
    next_host = bench.launcher = bench.made()
    await next_host.adopt()

    with without_descriptors():
        await until(lambda: "runner.not_looked_at" in caplog.text, "a look that failed")

    runner = next_host.runner_on(GROUP, SESSION)
    assert runner is not None
    assert await bench.ended_well(runner)


@contextmanager
def without_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_start_beyond_what_the_group_may_have_is_refused_with_what_to_do(
    tmp_path: Path, launch: Launch
) -> None:
    settings = LauncherSettings(command=("sleep", "600"), max_runners=1)
    launcher = CommandLauncher(tmp_path, GROUP, settings, dict(os.environ))
    runner = await launcher.start(launch)

    other = replace(launch, name="q2", session_id=SessionId("s2"))
    with pytest.raises(DeliveryFailed, match=r"max_runners = 1.*pynchy stop"):
        await launcher.start(other)
    await runner.stop()
    await runner.ended()

    second = await launcher.start(other)
    await second.stop()
    await second.ended()
