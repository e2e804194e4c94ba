"""A folder that may be shared with an enemy, and writes that survive a crash.

No name is ever followed through a symlink, no read blocks or grows past its cap, and a file
appears under its name only when it is whole and on the disk.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# EAGAIN is a file on which its owner holds a lease (fcntl): it would make a reader wait.
_UNREADABLE = {errno.ENXIO, errno.ENODEV, errno.EACCES, errno.EPERM, errno.EAGAIN}
TMP_PREFIX = ".tmp-"
# A folder that was removed has such a name until what is in it is gone too.
GONE_PREFIX = ".gone-"
# So much of a folder's content is removed with its name. The rest is left to `clear_removed`.
_REMOVED_AT_ONCE = 100
_BATCH = 1_000
# What an agent can do to its own folder: that is no trouble of the host's.
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EACCES, errno.EPERM}


class UnsafeFile(Exception):
    """The name is there but is not a small regular file of one link."""


class Folder:
    """A folder below a trusted root, opened again for every operation.

    That costs some microseconds and means that a folder which was removed or replaced is noticed
    rather than written into unseen.
    """

    def __init__(self, root: Path, *parts: str, owner: int | None = None) -> None:
        self._root = root
        self._parts = parts
        self._owner = owner

    def __repr__(self) -> str:
        return f"Folder({self.path})"

    @property
    def path(self) -> Path:
        """Where it is, for messages and for programs that are given a path."""
        return self._root.joinpath(*self._parts)

    def make(self) -> None:
        """Create it and what is missing above it, for its owner alone."""
        fd = os.open(self._root, _FOLDER_FLAGS)
        try:
            for part in self._parts:
                fd = _descend(fd, part, make=True)
            if self._owner is not None and os.fstat(fd).st_uid != self._owner:
                os.fchown(fd, self._owner, -1)
        finally:
            os.close(fd)

    def exists(self) -> bool:
        """True if it is there and is a real folder all the way down.

        Raise OSError where that cannot be told: a disk in trouble must not pass for absence.
        """
        try:
            with self._opened():
                return True
        except OSError as exc:
            if exc.errno in _ABSENT:
                return False
            raise

    def names(self, limit: int | None = None) -> list[str]:
        """Return the names in it, temporary ones left out; look at no more than `limit` names."""
        return [name for name in self.entries(limit) if not name.startswith(".")]

    def entries(self, limit: int | None = None) -> Iterator[str]:
        """Yield the names in it, also temporary ones, at most `limit` of them."""
        with self._opened() as fd, os.scandir(fd) as entries:
            for entry in islice(entries, limit):
                yield entry.name

    def has(self, name: str) -> bool:
        """True if anything at all is at that name."""
        try:
            self.stat(name)
        except FileNotFoundError:
            return False
        return True

    def stat(self, name: str) -> os.stat_result:
        """Return what is known of the name itself, never of what a link points to."""
        with self._opened() as fd:
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

    def read(self, name: str, cap: int, *, one_link: bool = True) -> bytes:
        """Return the content of a regular file. Raise UnsafeFile for anything else."""
        with self._opened() as folder_fd:
            fd = _open_plainly(folder_fd, name)
            try:
                return _read_capped(fd, cap, one_link=one_link)
            finally:
                os.close(fd)

    def open_file(self, name: str) -> int:
        """Return a descriptor of the regular file, for locking it. Raise UnsafeFile otherwise."""
        with self._opened() as folder_fd:
            fd = _open_plainly(folder_fd, name)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise UnsafeFile("not a regular file")
        return fd

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file durably. Return False, changing nothing, if the name is taken."""
        with self._opened() as fd, self._temporary(fd, data) as tmp:
            try:
                os.link(tmp, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
            except FileExistsError:
                return False
            _discard(fd, tmp)
            try:
                os.fsync(fd)
            except OSError:
                # The caller hears that it failed, so the next one must not find it done.
                _discard(fd, name)
                raise
            return True

    def replace(self, name: str, data: bytes) -> None:
        """Write a file durably in place of what is there; readers see the old one or the new."""
        with self._opened() as fd, self._temporary(fd, data) as tmp:
            os.replace(tmp, name, src_dir_fd=fd, dst_dir_fd=fd)
            os.fsync(fd)

    def rename(self, old: str, new: str) -> None:
        """Give what is at that name another one, durably. Raise FileNotFoundError without it."""
        with self._opened() as fd:
            os.rename(old, new, src_dir_fd=fd, dst_dir_fd=fd)
            os.fsync(fd)

    def remove(self, name: str) -> None:
        """Remove the name if it is there, whatever it is.

        The name of a folder is free at once, however much is in it: `clear_removed` does the rest.
        """
        with self._opened() as fd:
            if _is_unlinked(fd, name):
                return
            gone = f"{GONE_PREFIX}{os.urandom(8).hex()}"
            with suppress(FileNotFoundError):
                os.rename(name, gone, src_dir_fd=fd, dst_dir_fd=fd)
                _remove_some(fd, gone, _REMOVED_AT_ONCE)

    def clear_removed(self, limit: int) -> int:
        """Remove at most `limit` names below folders that were removed. Return how many it were."""
        found = [name for name in self.entries(limit) if name.startswith(GONE_PREFIX)]
        left = limit
        with self._opened() as fd:
            for name in found:
                left -= _remove_some(fd, name, left)
        return limit - left

    def clear_temporary(self, before: datetime | None = None, limit: int | None = None) -> None:
        """Remove what writers that died, before that moment if one is given, have left behind.

        Of a folder that an agent may have filled, look at no more than `limit` names.
        """
        oldest = before.timestamp() if before else math.inf
        found = [name for name in self.entries(limit) if name.startswith(TMP_PREFIX)]
        with self._opened() as fd:
            for name in found:
                with suppress(OSError):
                    if os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime < oldest:
                        os.unlink(name, dir_fd=fd)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        fd = os.open(self._root, _FOLDER_FLAGS)
        try:
            for part in self._parts:
                fd = _descend(fd, part, make=False)
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _temporary(self, folder_fd: int, data: bytes) -> Iterator[str]:
        tmp = f"{TMP_PREFIX}{os.urandom(8).hex()}"
        fd = os.open(tmp, _CREATE_FLAGS, 0o600, dir_fd=folder_fd)
        try:
            try:
                _write_all(fd, data)
                if self._owner is not None:
                    os.fchown(fd, self._owner, -1)
                os.fsync(fd)
            finally:
                os.close(fd)
            yield tmp
        finally:
            _discard(folder_fd, tmp)


def _descend(fd: int, part: str, *, make: bool) -> int:
    """Open `part` below `fd`, which is closed in any case but an error."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=fd)
            os.fsync(fd)
    below = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=fd)
    os.close(fd)
    return below


def _open_plainly(folder_fd: int, name: str) -> int:
    try:
        return os.open(name, _READ_FLAGS, dir_fd=folder_fd)
    except FileNotFoundError:
        raise
    except OSError as exc:
        if exc.errno in {errno.ELOOP, errno.EMLINK}:
            raise UnsafeFile("a symbolic link") from exc
        if exc.errno in _UNREADABLE:
            raise UnsafeFile("not a readable regular file") from exc
        raise


def _read_capped(fd: int, cap: int, *, one_link: bool) -> bytes:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise UnsafeFile("not a regular file")
    if one_link and info.st_nlink != 1:
        raise UnsafeFile("a file with more than one link")
    if info.st_size > cap:
        raise UnsafeFile(f"larger than {cap} bytes")
    chunks: list[bytes] = []
    left = cap + 1
    while left and (chunk := os.read(fd, left)):
        chunks.append(chunk)
        left -= len(chunk)
    if not left:
        raise UnsafeFile(f"larger than {cap} bytes")
    return b"".join(chunks)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _discard(folder_fd: int, name: str) -> None:
    """Remove the name if that can be done; what is left of it does no harm."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder_fd)


def _remove_some(folder_fd: int, name: str, limit: int) -> int:
    """Remove at most `limit` names in the folder, then itself. Return how many were removed.

    What is deep in it is moved up into it, so that no depth of nesting exhausts the stack or the
    descriptors. What cannot be removed is left.
    """
    removed = 0
    try:
        fd = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder_fd)
    except OSError:
        return int(_is_removed(folder_fd, name))
    try:
        while inner := _some_names(fd, min(_BATCH, limit - removed)):
            before = removed
            for each in inner:
                removed += _is_removed(fd, each) or _move_up(fd, each, limit - removed)
                if removed >= limit:
                    return removed
            if removed == before:
                return removed
    finally:
        os.close(fd)
    return removed + _is_removed(folder_fd, name)


def _move_up(folder_fd: int, name: str, limit: int) -> int:
    """Move what is in the folder up beside it. Return how much it was, at most `limit`."""
    moved = 0
    with suppress(OSError):
        below = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder_fd)
        try:
            for inner in _some_names(below, limit):
                if not _is_removed(below, inner):
                    fresh = os.urandom(8).hex()
                    os.rename(inner, fresh, src_dir_fd=below, dst_dir_fd=folder_fd)
                moved += 1
        finally:
            os.close(below)
    return moved


def _some_names(fd: int, limit: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in islice(entries, limit)]


def _is_removed(folder_fd: int, name: str) -> bool:
    """Remove the name unless it is a folder that is not empty, or is refused."""
    with suppress(OSError):
        if not _is_unlinked(folder_fd, name):
            os.rmdir(name, dir_fd=folder_fd)
        return True
    return False


def _is_unlinked(folder_fd: int, name: str) -> bool:
    """Remove the name unless it is a folder. Return False if it is one."""
    try:
        os.unlink(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        # macOS answers EPERM for a folder, Linux EISDIR.
        return False
    return True
