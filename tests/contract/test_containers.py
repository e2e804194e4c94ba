"""Containers are no children of ours: they end with their runner all the same, or are found."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.engine import Engine
from tests.waiting import until

from pynchy.config import LauncherSettings
from pynchy.errors import DeliveryFailed
from pynchy.launchers import job_runner
from pynchy.launchers.base import Launch
from pynchy.launchers.docker import DockerLauncher
from pynchy.model import GroupName, RequestId, SessionId

GROUP = GroupName("g1")
DEAF = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("here").touch()
time.sleep(600)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    mailbox = tmp_path / "data" / "ipc" / GROUP
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    initial = mailbox / "input" / "initial.json"
    return Launch(GROUP, SessionId("s1"), "q1", 1, initial, mailbox, RequestId("q1"))


def launcher_of(tmp_path: Path, environ: dict[str, str]) -> DockerLauncher:
    workspace = tmp_path / "work"
    workspace.mkdir(exist_ok=True)
    runner = workspace / "runner"
    runner.write_text(f"#!{sys.executable}\n{DEAF}")
    runner.chmod(0o755)
    told = {"kind": "docker", "agent": "claude", "runner": "/workspace/runner"}
    told |= {"workspace": str(workspace), "term_grace": 0.2}
    made = LauncherSettings.model_validate(told)
    return DockerLauncher(tmp_path / "data", GROUP, made, environ)


def kill_what_started_it(data: Path) -> None:
    """kill -9 the supervisors of this folder, and the engine's commands below them."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().decode(errors="replace").split("\0")
        if job_runner.__file__ in words and str(data) in words[-2]:
            pid = int(path.parts[2])
            for below in [*job_runner.descendants(pid), pid]:
                os.kill(below, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_deaf_container_is_removed_before_its_runner_counts_as_ended(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, engine.environ())
    runner = await launcher.start(launch)
    await until((tmp_path / "work" / "here").exists, "the container")

    await runner.stop()
    end = await runner.ended()

    assert end.error == "stopped (killed after 0.2 s)"
    assert not is_alive(engine.runs()[0]["pid"])
    await launcher.close()


async def test_a_container_without_its_runner_is_found_by_its_labels_and_removed(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, engine.environ())
    await launcher.start(launch)
    await until((tmp_path / "work" / "here").exists, "the container")
    await launcher.close()
    kill_what_started_it(tmp_path / "data")
    [run] = engine.runs()
    assert is_alive(run["pid"])

    again = launcher_of(tmp_path, engine.environ())
    await again.adopt()

    await until(lambda: not is_alive(run["pid"]), "the end of the container")
    await until(lambda: again.runner_on(GROUP, launch.session_id) is None, "the runner's end")
    await again.close()


async def test_a_container_whose_supervisor_is_killed_is_removed_before_its_runner_has_ended(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, engine.environ())
    runner = await launcher.start(launch)
    await until((tmp_path / "work" / "here").exists, "the container")
    [run] = engine.runs()

    kill_what_started_it(tmp_path / "data")

    assert "vanished" in str((await runner.ended()).error)
    assert not is_alive(run["pid"])
    await launcher.close()


async def test_a_container_was_removed_with_programs_that_its_agent_had_put_on_the_path(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    helper, outside = tmp_path / "work" / "bin" / "helper", tmp_path / "outside"
    helper.parent.mkdir(parents=True)
    helper.write_text(f"#!/bin/sh\ntouch {outside}\n")
    helper.chmod(0o755)
    docker = tmp_path / "engine" / "docker"
    docker.write_text(docker.read_text().replace("\n", "\nhelper 2> /dev/null\n", 1))
    environ = engine.environ()
    environ["PATH"] += f":{helper.parent}"
    launcher = launcher_of(tmp_path, environ)
    runner = await launcher.start(launch)
    await until((tmp_path / "work" / "here").exists, "the container")

    kill_what_started_it(tmp_path / "data")

    assert "vanished" in str((await runner.ended()).error)
    assert not is_alive(engine.runs()[0]["pid"])
    assert not outside.exists()
    await launcher.close()


async def test_a_living_runners_container_is_left_alone_by_the_next_host(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, engine.environ())
    runner = await launcher.start(launch)
    await until((tmp_path / "work" / "here").exists, "the container")

    again = launcher_of(tmp_path, engine.environ())
    await again.adopt()

    assert is_alive(engine.runs()[0]["pid"])
    await runner.stop()
    await runner.ended()
    await launcher.close()
    await again.close()


async def test_what_an_earlier_runner_left_is_removed_before_the_session_is_resumed(
    tmp_path: Path, engine: Engine, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, engine.environ())
    here = tmp_path / "work" / "here"
    first = await launcher.start(launch)
    await until(here.exists, "the container")
    kill_what_started_it(tmp_path / "data")
    await first.ended()
    # What the supervisor had started holds the job's lock until it is gone as well.
    await until(lambda: not launcher._is_locked(launch.stem), "the end of the command")  # noqa: SLF001
    here.unlink()

    second = await launcher.start(launch)
    await until(here.exists, "the second container")

    old, new = engine.runs()
    assert not is_alive(old["pid"])
    assert is_alive(new["pid"])
    assert old["options"]["name"] == new["options"]["name"]
    await second.stop()
    await second.ended()
    await launcher.close()


async def test_an_engine_that_cannot_be_asked_is_reported_and_stops_nothing(
    tmp_path: Path, launch: Launch
) -> None:
    launcher = launcher_of(tmp_path, {"PATH": str(tmp_path)})
    await launcher.adopt()

    with pytest.raises(DeliveryFailed, match="docker is not on the PATH"):
        await launcher.start(launch)

    await launcher.close()
