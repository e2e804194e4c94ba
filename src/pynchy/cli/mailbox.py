"""Give a group its mailbox, so that it can ask before any host has seen it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from pynchy.data_dir import DataFolder
from pynchy.errors import HostError
from pynchy.model import GROUP_PATTERN
from pynchy.safe_folder import Folder

_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")


def make_mailbox(data: DataFolder, group: str) -> Path:
    """Return the group's mailbox, made if it is new. Raise BadParameter for an unusable name."""
    if not _GROUP.match(group):
        raise click.BadParameter("letters, digits, - _ and . only", param_hint="--group")
    data.make()
    try:
        for name in ("tasks", "responses", "input"):
            Folder(data.ipc, group, name).make()
    except OSError as exc:
        raise HostError(
            f"{data.ipc / group}: the group's mailbox cannot be made ({exc.strerror}); "
            "run: pynchy doctor"
        ) from exc
    return data.ipc / group


def group_names(data: DataFolder) -> list[str]:
    """Return the groups that have a mailbox."""
    try:
        return [path.name for path in data.ipc.iterdir() if (path / "tasks").is_dir()]
    except OSError:
        return []
