"""container/Dockerfile: what it copies is there, and it makes what the launcher counts on."""

import re
from pathlib import Path

import pytest

from pynchy.config import LauncherSettings
from pynchy.launchers import docker

CONTAINER = Path(__file__).parents[2] / "container"
TEXT = (CONTAINER / "Dockerfile").read_text()
# Comments go, and lines that are continued become one.
LINES = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()


def instructions(name: str) -> list[str]:
    return [line.split(maxsplit=1)[1].strip() for line in LINES if line.startswith(f"{name} ")]


def test_it_uses_only_instructions_that_there_are() -> None:
    known = {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "CMD"}

    assert {line.split()[0] for line in LINES if line.strip()} <= known


def test_what_it_copies_is_there() -> None:
    for copied in instructions("COPY"):
        *sources, _ = copied.split()
        assert sources
        for source in sources:
            assert (CONTAINER / source).exists(), source


def test_it_installs_the_agents_side_and_leaves_no_lists_behind() -> None:
    steps = instructions("RUN")

    [(_, target)] = [copied.split() for copied in instructions("COPY")]
    assert f"pip install --no-cache-dir {target}" in steps
    for step in steps:
        if "apt-get install" in step:
            assert "apt-get update" in step
            assert "--no-install-recommends" in step
            assert "rm -rf /var/lib/apt/lists/*" in step


def test_nobody_in_it_is_root_and_nothing_of_it_stands_before_the_launchers_command() -> None:
    [user] = instructions("USER")

    assert int(user.partition(":")[0]) > 0
    assert instructions("ENTRYPOINT") == []


@pytest.mark.parametrize("folder", [docker.IPC, docker.HOME, docker.WORKSPACE])
def test_it_has_the_folders_that_the_launcher_mounts(folder: str) -> None:
    [made] = [step for step in instructions("RUN") if step.startswith("mkdir -p")]

    assert folder in made.split()


def test_it_says_how_to_build_the_image_that_the_launcher_starts() -> None:
    image = LauncherSettings.model_fields["image"].default

    assert f"docker build -t {image} -f container/Dockerfile container" in TEXT
    assert instructions("ENV") == [f"HOME={docker.HOME}"]
    assert instructions("WORKDIR") == [docker.WORKSPACE]
