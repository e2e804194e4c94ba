"""A person's file is replaced whole, with its mode, its links and its manner, or left alone."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pynchy.cli.connect.document import read_document, replace_document
from pynchy.errors import ConfigError

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


def change(path: Path, text: str) -> Path | None:
    return replace_document(read_document(path), text, NOW, 0o600)


def test_a_new_file_is_for_its_owner_alone_and_so_is_its_folder(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"

    assert change(path, "a = 1\n") is None

    assert path.read_text() == "a = 1\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_mode_and_a_copy_are_kept_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("old")
    path.chmod(0o640)

    first, second = change(path, "new"), change(path, "newer")

    assert first is not None
    assert second is not None
    assert (first.read_text(), second.read_text()) == ("old", "new")
    assert first.name == "settings.json.before-pynchy-20261116T123000"
    assert {one.stat().st_mode & 0o777 for one in (path, first, second)} == {0o640}
    assert set(tmp_path.iterdir()) == {path, first, second}


def test_a_symlink_stays_one_and_its_target_is_changed(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text("old")
    path = tmp_path / ".claude.json"
    path.symlink_to(target)

    copy = change(path, "new")

    assert path.is_symlink()
    assert target.read_text() == "new"
    assert copy is not None
    assert copy.parent == target.parent


@pytest.mark.parametrize(
    ("raw", "text", "new"),
    [
        (b"\xef\xbb\xbf{}\n", "{}\n", b"\xef\xbb\xbf{1}\n"),
        (b"{\r\n}\r\n", "{\n}\n", b"{1}\r\n"),
        (b"{\r\n}\n", "{\r\n}\n", b"{1}\n"),
        ("ü\n".encode(), "ü\n", b"{1}\n"),
    ],
)
def test_byte_order_mark_and_line_ends_are_kept(
    tmp_path: Path, raw: bytes, text: str, new: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)

    assert read_document(path).text == text
    change(path, "{1}\n")

    assert path.read_bytes() == new


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)

    with pytest.raises(ConfigError, match="read-only"):
        change(path, "new")

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_somebody_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    document = read_document(path)
    path.write_text("theirs")

    with pytest.raises(ConfigError, match="somebody else"):
        replace_document(document, "new", NOW, 0o600)

    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    document = read_document(tmp_path / "file")
    (tmp_path / "file").write_text("theirs")

    with pytest.raises(ConfigError, match="somebody else"):
        replace_document(document, "new", NOW, 0o600)

    assert (tmp_path / "file").read_text() == "theirs"


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"ok\n\xfc\n")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    for name, words in (("pipe", "regular"), ("latin", "latin:2"), ("loop", "loop")):
        with pytest.raises(ConfigError, match=words):
            read_document(tmp_path / name)
