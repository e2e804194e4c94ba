"""A folder shared with an enemy: nothing is followed, nothing blocks, nothing is half written."""

import os
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import pytest

from pynchy.safe_folder import Folder, UnsafeFile


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path, "shared")
    folder.make()
    return folder


def plant(folder: Folder, kind: str) -> str:
    """Put something nasty at a name, and return the name."""
    path, secret = folder.path / "nasty", folder.path.parent / "secret"
    secret.write_text("secret")
    match kind:
        case "symlink":
            path.symlink_to(secret)
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "hard link":
            os.link(secret, path)
        case "huge":
            with path.open("wb") as file:
                file.truncate(8 * 2**30)
        case "growing":
            path.write_bytes(b"x" * 11)
    return path.name


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder", "hard link", "huge", "growing"])
def test_nothing_but_a_small_plain_file_is_read(folder: Folder, kind: str) -> None:
    name = plant(folder, kind)

    with pytest.raises(UnsafeFile):
        folder.read(name, cap=10)


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder", "hard link", "huge"])
def test_whatever_is_at_a_name_can_be_removed_and_nothing_beyond_it(
    folder: Folder, kind: str
) -> None:
    name = plant(folder, kind)
    if kind == "folder":
        (folder.path / name / "deep").mkdir()
        (folder.path / name / "deep" / "link").symlink_to(folder.path.parent / "secret")

    folder.remove(name)

    assert folder.names() == []
    assert (folder.path.parent / "secret").read_text() == "secret"


def test_a_folder_that_became_a_symlink_is_not_entered(tmp_path: Path, folder: Folder) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.path.rmdir()
    folder.path.symlink_to(elsewhere)

    with pytest.raises(OSError, match=r".+"):
        folder.create("a", b"x")

    assert list(elsewhere.iterdir()) == []


def test_a_name_is_created_once(folder: Folder) -> None:
    assert folder.create("a", b"first")
    assert not folder.create("a", b"second")

    assert folder.read("a", 100) == b"first"
    assert folder.names() == ["a"]


def test_creating_over_a_dangling_symlink_writes_nowhere(folder: Folder, tmp_path: Path) -> None:
    (folder.path / "a").symlink_to(tmp_path / "target")

    assert not folder.create("a", b"x")
    assert not (tmp_path / "target").exists()


def test_replacing_a_symlink_leaves_its_target_alone(folder: Folder, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (folder.path / "a").symlink_to(target)

    folder.replace("a", b"new")

    assert target.read_text() == "mine"
    assert folder.read("a", 100) == b"new"


def test_a_failed_write_leaves_nothing_behind(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space"):
        folder.create("a", b"x")
    assert list(folder.path.iterdir()) == []


def test_temporary_names_are_not_listed_and_are_cleared(folder: Folder) -> None:
    (folder.path / ".tmp-1").touch()
    folder.create("a", b"x")

    assert folder.names() == ["a"]
    folder.clear_temporary()
    assert [path.name for path in folder.path.iterdir()] == ["a"]


def names_below(path: Path) -> int:
    return sum(len(folders) + len(files) for _, folders, files in os.walk(path))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_removing_a_full_folder_took_as_long_as_its_owner_liked(folder: Folder, depth: int) -> None:
    for number in range(600 // depth):
        (folder.path / "full" / "/".join([str(number), *"x" * (depth - 1)])).mkdir(parents=True)
    made = names_below(folder.path / "full")

    folder.remove("full")
    left = [names_below(folder.path)]
    while folder.clear_removed(200):
        left.append(names_below(folder.path))

    assert not folder.has("full")
    assert made - left[0] <= 100
    assert all(before - after <= 200 for before, after in pairwise(left))
    assert left[-1] == 0


def test_a_folder_that_is_filled_while_it_is_removed_came_to_no_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.path / "full" / "in").mkdir(parents=True)
    (folder.path / "full" / "in" / "0").mkdir()
    kept = os.open(folder.path / "full" / "in", os.O_RDONLY)
    numbers, real = count(1), os.unlink

    def unlink(name: str, *, dir_fd: int) -> None:
        with suppress(FileNotFoundError):  # once the folder itself is gone
            os.mkdir(str(next(numbers)), dir_fd=kept)
        real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    folder.remove("full")
    removed = folder.clear_removed(500)
    os.close(kept)

    assert removed <= 500
    assert not folder.has("full")


def test_what_cannot_be_removed_keeps_nothing_else(folder: Folder) -> None:
    for name in ("a", "closed", "z"):
        (folder.path / "full" / name / "in").mkdir(parents=True)
    (folder.path / "full" / "closed").chmod(0o500)

    folder.remove("full")
    folder.clear_removed(500)

    [gone] = folder.path.iterdir() if os.getuid() else [folder.path]
    assert not (gone / "a").exists()
    assert not (gone / "z").exists()
    for path in folder.path.rglob("closed"):
        path.chmod(0o700)
