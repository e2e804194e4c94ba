"""What doctor says of a Codex in a terminal, and the host's own word where it cannot be reached."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from tests.standins.codex import CodexStandIn
from tests.unit.cli.support import Run

from pynchy.cli.doctor.programs import check_sources
from pynchy.config import CodexSourceSettings, Settings
from pynchy.config.models import SourcesSettings
from pynchy.findings import Finding, Status


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[CodexStandIn]:
    """A daemon in a thread of its own, as doctor has a loop of its own."""
    daemon = CodexStandIn(tmp_path / "codex")
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(daemon.start(), loop).result()
    yield daemon
    asyncio.run_coroutine_threadsafe(daemon.remove(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def look_at(home: Path) -> Finding:
    codex = CodexSourceSettings(group="team", home=home)
    [finding] = check_sources(Settings(sources=SourcesSettings(codex=codex)), {})
    return finding


def test_without_the_table_nothing_is_looked_at() -> None:
    assert list(check_sources(Settings(), {})) == []


def test_a_daemon_that_runs_is_named_with_its_version(daemon: CodexStandIn) -> None:
    found = look_at(daemon.link.parents[1])

    assert (found.check, found.status) == ("codex (in a terminal)", Status.OK)
    assert found.detail == "version 0.166.0 runs; what it asks is asked in group team, too"
    assert daemon.refused == []


def test_no_daemon_is_nothing_to_worry_about(tmp_path: Path) -> None:
    found = look_at(tmp_path)

    assert found.status is Status.OK
    assert "none runs" in found.detail


def test_a_home_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = look_at(tmp_path / "nowhere")

    assert found.status is Status.WARNING
    assert "no such folder" in found.detail


def test_a_daemon_that_must_not_be_spoken_to_is_a_problem(daemon: CodexStandIn) -> None:
    daemon.socket.parent.chmod(0o777)

    found = look_at(daemon.link.parents[1])

    assert found.status is Status.PROBLEM
    assert "others can write into this folder" in found.detail


def test_doctor_says_it_with_the_rest(run: Run, daemon: CodexStandIn, tmp_path: Path) -> None:
    home = json.dumps(str(daemon.link.parents[1]))
    file = tmp_path / "pynchy.toml"
    file.write_text(f'[groups.team]\n[sources.codex]\ngroup = "team"\nhome = {home}\n')

    told = run("doctor", "--config", str(file)).stdout

    assert "codex (in a terminal): version 0.166.0 runs" in told
