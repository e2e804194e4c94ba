"""pynchy as strangers install it: one `pip install` into an empty environment, and it works."""

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what a clone has, and nothing that lies about in this one."""
    folder = tmp_path_factory.mktemp("source") / "pynchy"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
    return shutil.copytree(ROOT, folder, ignore=ignored)


@pytest.fixture(scope="module")
def programs(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the programs of an environment that has pynchy and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    installed = run(folder / "bin/pip", "install", "--quiet", source, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return folder / "bin"


def test_one_install_is_enough_for_the_whole_story(programs: Path, tmp_path: Path) -> None:
    told = run(programs / "pynchy", "demo", "--auto", cwd=tmp_path, HOME=str(tmp_path))

    assert told.returncode == 0, told.stdout + told.stderr
    assert "resumed" in told.stdout


def test_the_agents_side_comes_with_it(programs: Path, tmp_path: Path) -> None:
    runner = run(programs / "agent_runner", "--help", cwd=tmp_path)
    where = run(
        programs / "python", "-c", "import agent_runner as a; print(a.__file__)", cwd=tmp_path
    )

    assert runner.returncode == 0, runner.stderr
    assert Path(where.stdout.strip()).is_relative_to(programs.parent)


def test_the_agents_side_alone_needs_next_to_nothing(source: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "box", with_pip=True)
    pip = tmp_path / "box/bin/pip"

    installed = run(pip, "install", "--quiet", source / "container/agent_runner", cwd=tmp_path)
    listed = run(pip, "list", "--format=freeze", cwd=tmp_path).stdout

    assert installed.returncode == 0, installed.stderr
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert names - {"pip", "setuptools"} == {"pynchy-agent-runner", "watchdog"}
    mailbox = tmp_path / "ipc"
    for name in ("tasks", "responses", "input"):
        (mailbox / name).mkdir(parents=True)
    asked = run(
        tmp_path / "box/bin/python",
        "-m",
        "agent_runner.agent_tools",
        cwd=tmp_path,
        PYNCHY_IPC_DIR=str(mailbox),
    )  # its standard input is at its end: it starts, and ends
    assert asked.returncode == 0, asked.stderr
