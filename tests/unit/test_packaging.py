"""What `pip install pynchy` brings."""

import subprocess
import sys
import tomllib
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

import agent_runner

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return ZipFile(path)


def test_the_wheel_has_both_sides(wheel: ZipFile) -> None:
    names = set(wheel.namelist())

    for package in ("src/pynchy", "container/agent_runner/src/agent_runner"):
        files = [path for path in (ROOT / package).rglob("*") if path.is_file()]
        written = [path for path in files if "__pycache__" not in path.parts]
        assert {str(path.relative_to((ROOT / package).parent)) for path in written} <= names


def test_the_wheel_needs_nothing_that_no_index_has(wheel: ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needed = message_from_bytes(wheel.read(name)).get_all("Requires-Dist") or []

    assert needed
    assert not [one for one in needed if "agent" in one or "@" in one]


def test_both_distributions_of_the_agents_side_are_of_one_version() -> None:
    versions = {
        tomllib.loads((ROOT / path).read_text())["project"]["version"]
        for path in ("pyproject.toml", "container/agent_runner/pyproject.toml")
    }

    assert versions == {agent_runner.__version__}
