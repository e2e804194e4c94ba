"""A real host in a thread, for what its pages say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cli.support import Host

from pynchy.config import Settings


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "data", Settings.model_validate({"http": {"port": 0}}))
    host.start()
    try:
        yield host
    finally:
        host.stop()
