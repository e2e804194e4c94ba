"""A file layer that records what is written and synced, and replays what a power cut may leave.

It stands between `pynchy.safe_folder` and the operating system. Surely on the disk are: the
content of a file after its fsync, and a change of a folder after the folder's fsync. Of everything
else any part may survive in any combination: that is harsher than real file systems are.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a folder: names that appear (with their file) and names that go, together."""

    number: int
    folder: str
    added: tuple[tuple[str, int], ...] = ()
    removed: tuple[str, ...] = ()
    made: str | None = None


@dataclass(slots=True)
class Inode:
    """A file's content, and how much of it is surely on the disk."""

    content: bytes = b""
    synced: bytes | None = None


@dataclass(slots=True)
class Cut:
    """What is known at one moment: what is sure, and what may or may not survive."""

    after: str
    sure: list[Change]
    unsure: list[Change]
    files: dict[int, Inode]
    promises: list[Any]


@dataclass
class Recorder:
    """Looks like the `os` module; records, and passes everything on."""

    root: Path
    promises: list[Any] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    skip_fsync_of: str | None = None

    def __post_init__(self) -> None:
        self._sure: list[Change] = []
        self._unsure: list[Change] = []
        self._files: dict[int, Inode] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._fds: dict[int, tuple[str, int | None]] = {}
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    # What pynchy.safe_folder calls.

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = os.open(path, flags, mode, dir_fd=dir_fd)
        where = self._where(path, dir_fd)
        if flags & os.O_CREAT:
            number = self._number()
            self._files[number] = Inode()
            folder, _, name = where.rpartition("/")
            self._change(folder, added=((name, number),))
            self._fds[fd] = (where, number)
        else:
            self._fds[fd] = (where, None)
        return fd

    def write(self, fd: int, data: Any) -> int:
        written = os.write(fd, data)
        number = self._fds[fd][1]
        assert number is not None
        self._files[number].content += bytes(data[:written])
        self._cut("write")
        return written

    def fsync(self, fd: int) -> None:
        os.fsync(fd)
        where, number = self._fds[fd]
        kind = "file" if number is not None else "folder"
        if self.skip_fsync_of == kind:
            return
        if number is not None:
            self._files[number].synced = self._files[number].content
        else:
            self._sure += [change for change in self._unsure if change.folder == where]
            self._unsure = [change for change in self._unsure if change.folder != where]
        self._cut(f"fsync of a {kind}")

    def link(self, src: str, dst: str, *, src_dir_fd: int, dst_dir_fd: int, **more: Any) -> None:
        os.link(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **more)
        folder = self._fds[dst_dir_fd][0]
        self._change(folder, added=((dst, self._names[folder, src]),))

    def replace(self, src: str, dst: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        os.replace(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        folder = self._fds[dst_dir_fd][0]
        self._change(folder, added=((dst, self._names[folder, src]),), removed=(src,))

    def unlink(self, name: str, *, dir_fd: int) -> None:
        os.unlink(name, dir_fd=dir_fd)
        self._change(self._fds[dir_fd][0], removed=(name,))

    def mkdir(self, name: str, mode: int, *, dir_fd: int) -> None:
        os.mkdir(name, mode, dir_fd=dir_fd)
        self._change(self._fds[dir_fd][0], made=name)

    def close(self, fd: int) -> None:
        os.close(fd)
        self._fds.pop(fd, None)

    # What the test says.

    def promise(self, what: Any) -> None:
        """From now on, this must be true after any power cut."""
        self.promises.append(what)
        self._cut("promise")

    def was_made(self, folder: Path) -> None:
        """Take a folder that was there before."""
        self._sure.append(Change(self._number(), str(folder.parent), made=folder.name))

    def was_written_by_an_agent(self, path: Path) -> None:
        """Take a file that the agent's side has written and synced."""
        number = self._number()
        content = path.read_bytes()
        self._files[number] = Inode(content, content)
        folder = str(path.parent)
        self._names[folder, path.name] = number
        self._sure.append(Change(self._number(), folder, added=((path.name, number),)))

    # Inside.

    def _where(self, path: Any, dir_fd: int | None) -> str:
        return str(path) if dir_fd is None else f"{self._fds[dir_fd][0]}/{path}"

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _change(
        self,
        folder: str,
        added: tuple[tuple[str, int], ...] = (),
        removed: tuple[str, ...] = (),
        made: str | None = None,
    ) -> None:
        for name in removed:
            self._names.pop((folder, name), None)
        for name, number in added:
            self._names[folder, name] = number
        self._unsure.append(Change(self._number(), folder, added, removed, made))
        self._cut("change of a folder")

    def _cut(self, after: str) -> None:
        files = {n: Inode(i.content, i.synced) for n, i in self._files.items()}
        self.cuts.append(
            Cut(after, list(self._sure), list(self._unsure), files, list(self.promises))
        )


def survivors(cut: Cut) -> Iterator[tuple[list[Change], bool]]:
    """Yield what may be there after a cut: some of the unsure changes, unsynced content or not.

    All subsets where there are few; else nothing, all, each one alone, and all but each one.
    """
    few = 4
    unsure = cut.unsure
    if len(unsure) <= few:
        subsets = [list(c) for n in range(len(unsure) + 1) for c in combinations(unsure, n)]
    else:
        alone = [[change] for change in unsure]
        all_but = [[c for c in unsure if c is not one] for one in unsure]
        subsets = [[], list(unsure), *alone, *all_but]
    for subset in subsets:
        for keep_unsynced in (False, True):
            yield sorted([*cut.sure, *subset], key=lambda c: c.number), keep_unsynced


def lay_out(
    cut: Cut, changes: list[Change], root: Path, into: Path, *, keep_unsynced: bool
) -> None:
    """Write the tree that the changes make, as a machine would find it when the power is back."""
    folders: dict[str, dict[str, int]] = {str(root): {}}
    for change in changes:
        if change.folder not in folders:
            continue  # the folder itself did not survive
        names = folders[change.folder]
        for name in change.removed:
            names.pop(name, None)
        names.update(change.added)
        if change.made is not None:
            folders.setdefault(f"{change.folder}/{change.made}", {})
    for folder, names in folders.items():
        target = into / Path(folder).relative_to(root)
        target.mkdir(parents=True, exist_ok=True)
        for name, number in names.items():
            inode = cut.files[number]
            content = inode.content if keep_unsynced else inode.synced
            (target / name).write_bytes(content if content is not None else b"")
