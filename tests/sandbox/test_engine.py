"""A real container, with the image of container/Dockerfile: where there is an engine."""

import shutil
import subprocess

import pytest
from tests.acceptance.support import ROOT
from tests.sandbox.support import Boxes
from tests.sandbox.test_walls import WRITES

IMAGE = "pynchy-agent-test"


def has_engine() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_engine(), reason="there is no container engine here")
async def test_an_agent_in_a_container_can_write_its_own_and_nothing_else(boxes: Boxes) -> None:
    build = ["docker", "build", "--build-arg", "AGENT=", "-t", IMAGE, "-f", "Dockerfile", "."]
    subprocess.run(build, cwd=ROOT / "container", check=True)  # noqa: ASYNC221 - nothing else is on
    code = WRITES + "report['network'] = sorted(os.listdir('/sys/class/net'))"
    told = {"kind": "docker", "image": IMAGE, "runner": "/workspace/visitor"}
    await boxes.open(code, interpreter="python3", **told)

    report = await boxes.visit()

    writable = {name for name, how in report.items() if how == "done"}
    assert writable == {"tasks", "workspace", "home", "temporary"}
    assert report["responses"] == report["input"] == "EROFS"
    assert report["network"] == ["lo"]
