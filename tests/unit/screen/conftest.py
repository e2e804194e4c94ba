"""A real host in a thread, and somebody in front of the screen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.support import Host
from tests.unit.screen.support import Desk, HandClock

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
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def desk(host: Host, clock: HandClock) -> Desk:
    """Somebody who can sit down at the screen, and leave it again."""
    return Desk(host, clock)
