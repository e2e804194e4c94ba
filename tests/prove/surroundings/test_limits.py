"""No inotify instance to be had: everything works by looking, and well again afterwards."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.acceptance import support
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host
from tests.prove.surroundings.support import complains, doctor_says, is_well, logged, serves
from tests.waiting import until

from agent_runner.asking import Asker, Question, Request

TakeAll = Callable[[], Callable[[], None]]


# Starts the host in a user namespace of its own, in which no instance may be had at first.
WRAPPER = """#!/bin/sh
exec unshare --user --map-root-user sh -c '
  echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@"
' {pynchy} "$@"
"""
ALLOW = "echo 128 > /proc/sys/user/max_inotify_instances"


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "limited-pynchy"
    wrapper.write_text(WRAPPER.format(pynchy=support.PYNCHY))
    wrapper.chmod(0o700)
    tried = subprocess.run([wrapper, "--version"], check=False, capture_output=True, text=True)
    if tried.returncode:
        if os.environ.get("CI") == "true":
            pytest.fail(f"a user namespace is needed: {tried.stderr}")
        pytest.skip(f"no user namespace: {tried.stderr}")
    monkeypatch.setattr(support, "PYNCHY", wrapper)


@pytest.mark.usefixtures("limited")
async def test_a_host_without_notifications_serves_by_looking_and_recovers_by_itself(
    start_host: StartHost,
) -> None:
    host = await start_host()
    await serves(host, "one")
    await serves(host, "two")
    await complains(host, "no file notifications")
    await doctor_says(host, "no file notifications")
    assert logged(host, "WARNING", "no file notifications")
    assert _watches(host) == 0

    assert host.process is not None
    enter = ["nsenter", "--user", "--preserve-credentials", "-t", str(host.process.pid)]
    subprocess.run([*enter, "sh", "-c", ALLOW], check=True)  # noqa: ASYNC221 - over at once
    await is_well(host)
    await serves(host, "one")
    await serves(host, "three")
    await until(lambda: _watches(host) >= 4, "a watch for each group and their folder")


async def test_a_host_that_has_its_notifications_does_not_mind_that_agents_get_none(
    start_host: StartHost, take_all_inotify: TakeAll
) -> None:
    host = await start_host()
    await serves(host, "one")
    take_all_inotify()

    async with Asker(host.group("one")) as asker:
        asked = Request((Question("Deploy?"),))
        pending = await asker.ask(asked, wait=False)
        await host.state(pending.request_id, "open")
        assert host.answer(pending.request_id, "here").status == 200
        result = await asker.check(pending.request_id, seconds=10)

    assert result.answers[0].text == "here"
    await serves(host, "two")
    await is_well(host)


def _watches(host: Host) -> int:
    """Return how many folders the host's process has the kernel watch."""
    assert host.process is not None

    watches = 0
    for info in Path(f"/proc/{host.process.pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed while we looked
            watches += info.read_text().count("inotify wd:")
    return watches
