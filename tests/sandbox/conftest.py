"""Real boxes: `make test-sandbox`, which installs bubblewrap, and never `make test`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandbox.support import Boxes


@pytest.fixture
async def boxes(tmp_path: Path) -> AsyncIterator[Boxes]:
    made = Boxes(tmp_path)
    yield made
    made.host.kill()
