"""How much a folder takes on the disk, however deep things lie in it."""

import os
from pathlib import Path

import pytest

from pynchy.launchers import job_runner

SIZE = 3 * 1024**2
# Longer than a path may be, and more than are kept open.
DEPTH = 150
NAME = "d" * 200


def size_of(folder: Path) -> int:
    return job_runner._size_of(str(folder))  # noqa: SLF001 - the limit itself takes seconds


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which one goes deep down, and the working folder there."""
    top = tmp_path / "top"
    top.mkdir()
    monkeypatch.chdir(top)
    for _ in range(DEPTH):
        os.mkdir(NAME)  # noqa: PTH102 - a whole path would be too long
        os.chdir(NAME)
    return top


def test_what_lies_deeper_than_a_path_can_be_long_is_counted(deep: Path) -> None:
    before, descriptors = size_of(deep), os.listdir("/proc/self/fd")
    for folder in ("a", "b"):
        os.mkdir(folder)  # noqa: PTH102
        with open(f"{folder}/file", "wb") as file:  # noqa: PTH123
            file.write(bytes(SIZE))

    assert 2 * SIZE <= size_of(deep) - before < 3 * SIZE
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)


def test_more_deep_folders_than_can_be_kept_open_are_told_of(deep: Path) -> None:
    os.chdir(deep)
    for level in range(DEPTH):
        os.chdir(NAME)
        for number in range(200 if 120 < level < 130 else 0):
            os.mkdir(str(number))  # noqa: PTH102

    with pytest.raises(OverflowError):
        size_of(deep)


def test_many_folders_side_by_side_are_counted_and_links_are_not_followed(tmp_path: Path) -> None:
    top, elsewhere = tmp_path / "top", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(bytes(SIZE))
    for number in range(300):
        (top / str(number) / "below").mkdir(parents=True)
    (top / "link").symlink_to(elsewhere)

    assert 300 * 2 * 512 <= size_of(top) < SIZE
