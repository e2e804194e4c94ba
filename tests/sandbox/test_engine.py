"""A real container, with the image of container/Dockerfile: where there is an engine."""

import hashlib
import os
import shutil
import signal
import subprocess
from typing import Any

import pytest
from tests.acceptance.support import ROOT
from tests.sandbox.support import GROUP, Boxes
from tests.sandbox.test_walls import WRITES, open_near, supervisors_of
from tests.waiting import until

from pynchy.launchers import job_runner

# An engine and an image that is there already, where none can be built: podman, localhost/mine.
ENGINE = os.environ.get("PYNCHY_TEST_ENGINE", "docker")
IMAGE = os.environ.get("PYNCHY_TEST_IMAGE", "")
BUILT = "pynchy-agent-test"


def has_engine() -> bool:
    if shutil.which(ENGINE) is None:
        return False
    return subprocess.run([ENGINE, "version"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def image() -> str:
    """The image of container/Dockerfile, without an agent program."""
    if not IMAGE:
        build = [ENGINE, "build", "--build-arg", "AGENT=", "-t", BUILT, "-f", "Dockerfile", "."]
        subprocess.run(build, cwd=ROOT / "container", check=True)
    return IMAGE or BUILT


pytestmark = pytest.mark.skipif(not has_engine(), reason="there is no container engine here")


@pytest.fixture
def told(image: str) -> dict[str, Any]:
    """The settings of a visitor in a container."""
    container = {"kind": "docker", "engine": ENGINE, "image": image}
    return {**container, "runner": "/workspace/visitor", "interpreter": "python3"}


def containers_of(boxes: Boxes) -> list[str]:
    key = hashlib.sha256(os.fsencode(boxes.host.data)).hexdigest()[:24]
    command = [ENGINE, "ps", "--all", "--quiet", "--filter", f"label=pynchy.data={key}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


async def test_an_agent_in_a_container_can_write_its_own_and_nothing_else(
    boxes: Boxes, told: dict[str, Any]
) -> None:
    await boxes.open(WRITES + "report['network'] = sorted(os.listdir('/sys/class/net'))", **told)

    report = await boxes.visit()

    writable = {name for name, how in report.items() if how == "done"}
    # Its /dev is its own, and root's.
    assert writable - {"/dev/x"} == {"tasks", "workspace", "home", "temporary"}
    assert report["responses"] == report["input"] == "EROFS"
    assert report["network"] == ["lo"]
    assert containers_of(boxes) == []


async def test_a_container_with_a_proxy_reaches_that_address_and_nothing_else(
    boxes: Boxes, told: dict[str, Any], servers: dict[str, int]
) -> None:
    proxy = f"127.0.0.1:{servers['proxy']}"
    await open_near(boxes, servers, network="proxy", proxy=proxy, **told)

    report = await boxes.visit()

    assert (report["proxy"], report["echoed"]) == ("done", 300_000)
    assert report["other"] == report["host"] == "ECONNREFUSED"
    assert report["elsewhere"] == "ENETUNREACH"


DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("here").touch()
time.sleep(600)
"""


async def test_a_deaf_container_is_gone_when_it_was_stopped(
    boxes: Boxes, told: dict[str, Any]
) -> None:
    await boxes.open(DEAF, term_grace="500ms", **told)
    session_id = boxes.host.run(GROUP)
    await until((boxes.work / "here").exists, "the visitor")
    assert len(containers_of(boxes)) == 1

    code, out, _ = await boxes.host.cli("stop", session_id)

    assert (code, out) == (0, f"{session_id}: stopped (killed after 0.5 s)\n")
    assert containers_of(boxes) == []


async def test_a_container_that_outlived_its_supervisor_is_removed_by_the_next_host(
    boxes: Boxes, told: dict[str, Any]
) -> None:
    await boxes.open(DEAF, **told)
    boxes.host.run(GROUP)
    await until((boxes.work / "here").exists, "the visitor")

    boxes.host.kill()
    for pid in supervisors_of(boxes):
        for below in [*job_runner.descendants(pid), pid]:
            os.kill(below, signal.SIGKILL)
    assert len(containers_of(boxes)) == 1
    await boxes.host.start()

    assert containers_of(boxes) == []
