"""Fixtures that start real processes and leave none behind."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.acceptance.support import Host
from tests.terminal.panes import Panes


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    host = Host(tmp_path / "data")
    await host.start()
    yield host
    host.kill()


@pytest.fixture
def panes(tmp_path: Path) -> Iterator[Panes]:
    panes = Panes(tmp_path)
    yield panes
    panes.close()
