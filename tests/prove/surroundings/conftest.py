"""Places that break: disks that fill up or become read-only, and all of inotify taken."""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.acceptance.conftest import group, runs, shared_host, start_host

__all__ = ["group", "runs", "shared_host", "start_host"]

DISK_MIB = 80


class Disk:
    """A small file system of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Take all that is left, to the last block."""
        with self._filler.open("ab", buffering=0) as filler, contextlib.suppress(OSError):
            for size in (2**20, 2**12):
                with contextlib.suppress(OSError):
                    while filler.write(bytes(size)):
                        pass

    def free(self) -> None:
        self._filler.unlink()

    def lock(self) -> None:
        """Make all of it read-only.

        A second mount over the first: the first is busy with what the host has open for writing.
        """
        _run("mount", "--bind", str(self.path), str(self.path))
        _run("mount", "-o", "remount,bind,ro", str(self.path))

    def unlock(self) -> None:
        _run("umount", "-l", str(self.path))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk that the test may fill; where none can be mounted, CI fails and others skip."""
    path = tmp_path / "disk"
    path.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(f"a file system must be mounted here: {exc}")
        pytest.skip(f"no file system can be mounted: {exc}")
    try:
        yield Disk(path)
    finally:
        _run("umount", "-l", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def take_all_inotify() -> Iterator[Callable[[], Callable[[], None]]]:
    """Take every inotify instance that this user may have; the result gives them back."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken: list[int] = []

    def give_back() -> None:
        while taken:
            os.close(taken.pop())

    def take() -> Callable[[], None]:
        while (handle := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
            taken.append(handle)
        assert taken, "no instance was left to take"
        return give_back

    yield take
    give_back()
