"""What once got through, named after what it did."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from pynchy import wire
from pynchy.folder import Folder

NOW = datetime(2026, 1, 15, tzinfo=UTC)


def nest(path: Path, depth: int) -> None:
    """Make folders within folders, deeper than any path may be long."""
    fd, name = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY), path.name
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd, name = below, "d"
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)


def test_a_folder_of_three_thousand_levels_ended_the_host_when_it_was_removed(
    tmp_path: Path,
) -> None:
    nest(tmp_path / "x.lease", 3_000)

    Folder(tmp_path).remove("x.lease")

    assert os.listdir(tmp_path) == []


def test_a_link_in_a_folder_that_is_removed_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    trap = tmp_path / "box" / "trap.json"
    trap.mkdir(parents=True)
    (trap / "link").symlink_to(outside, target_is_directory=True)
    (trap / "deeper").mkdir()
    (trap / "deeper" / "link").symlink_to(outside)

    Folder(tmp_path, "box").remove("trap.json")

    assert os.listdir(tmp_path / "box") == []
    assert os.listdir(outside) == ["kept"]


def test_a_request_whose_name_is_not_utf_8_could_not_be_put_aside() -> None:
    record = wire.rejected_json(os.fsdecode(b"\xff\n.json"), "not JSON", NOW, b"\xfe")

    assert json.loads(record)["name"] == "\\udcff\n.json"
