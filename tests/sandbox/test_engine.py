"""A real container: where there is an engine with the image of container/Dockerfile."""

import shutil
import subprocess

import pytest
from tests.sandbox.support import Boxes
from tests.sandbox.test_walls import WRITES

IMAGE = "pynchy-agent"


def has_image() -> bool:
    if shutil.which("docker") is None:
        return False
    command = ["docker", "image", "inspect", IMAGE]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_image(), reason=f"there is no engine with the image {IMAGE}")
async def test_an_agent_in_a_container_can_write_its_own_and_nothing_else(boxes: Boxes) -> None:
    code = WRITES + "report['network'] = sorted(os.listdir('/sys/class/net'))"
    await boxes.open(code, kind="docker", runner="/workspace/visitor", interpreter="python3")

    report = await boxes.visit()

    writable = {name for name, how in report.items() if how == "done"}
    assert writable == {"tasks", "workspace", "home", "temporary"}
    assert report["responses"] == report["input"] == "EROFS"
    assert report["network"] == ["lo"]
