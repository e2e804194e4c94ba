"""A real host in a thread, and the command line in front of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.support import Host, Run

from pynchy.cli import cli
from pynchy.config import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate({"http": {"port": 0}})


@pytest.fixture
def host(tmp_path: Path, settings: Settings) -> Iterator[Host]:
    host = Host(tmp_path / "data", settings)
    host.start()
    try:
        yield host
    finally:
        host.stop()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the test's data folder."""
    ours = ("PYNCHY_CONFIG", "PYNCHY_SESSION_ID", "PYNCHY_AGENT", "PYNCHY_TASK")
    for name in (*ours, "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYNCHY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOGNAME", "ana")
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=typed, prog_name="pynchy")

    return invoke
