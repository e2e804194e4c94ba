"""The real processes of the acceptance tests, for those who come to break them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost, runs, shared_host, start_host

from pynchy.safe_folder import Folder

__all__ = ["StartHost", "runs", "shared_host", "start_host"]


@pytest.fixture
def abyss() -> Iterator[Path]:
    """A folder for what is nested so deep that pytest could not tidy it up after us."""
    root = Path(tempfile.mkdtemp(prefix="pynchy-abyss-"))
    folder = root / "abyss"
    folder.mkdir()
    yield folder
    Folder(root).remove(folder.name)
    while Folder(root).clear_removed(10_000):
        continue
    root.rmdir()
