"""Give a group its mailbox, so that it can ask before any host has seen it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from pynchy.data_dir import DataFolder, find_settings, groups_in_settings
from pynchy.errors import ConfigError, HostError
from pynchy.misspelling import similar_group
from pynchy.model import GROUP_PATTERN
from pynchy.safe_folder import Folder

MAILBOX_FOLDERS = ("tasks", "responses", "input")
_OF_COMMANDS = "cli"

_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")


def make_mailbox(data: DataFolder, group: str) -> Path:
    """Return the group's mailbox, made if it is new. Raise BadParameter for an unusable name."""
    if not _GROUP.match(group):
        raise click.BadParameter("letters, digits, - _ and . only", param_hint="--group")
    data.make()
    try:
        for name in MAILBOX_FOLDERS:
            Folder(data.ipc, group, name).make()
    except OSError as exc:
        raise HostError(
            f"{data.ipc / group}: the group's mailbox cannot be made ({exc.strerror}); "
            "run: pynchy doctor"
        ) from exc
    return data.ipc / group


def own_group(data: DataFolder) -> str:
    """Return the group whose runner we are in, if any: its session is resumed by its launcher."""
    mailbox = Path(os.environ.get("PYNCHY_IPC_DIR", ""))
    return mailbox.name if mailbox.is_absolute() and mailbox.parent == data.ipc else _OF_COMMANDS


def misspelt_group(data: DataFolder, group: str) -> str:
    """Say which group was probably meant, empty where the name may be right."""
    named = groups_of_settings(data)
    if group in named:
        return ""
    is_there = (data.ipc / group).exists()
    if near := similar_group(group, named):
        own = f"{group} is a group of its own, with the default settings" if is_there else ""
        return f"the settings have no group {group}; did you mean {near}? {own}".rstrip()
    near = "" if is_there else similar_group(group, group_names(data))
    return f"group {group} is new; did you mean {near}?" if near else ""


def warn_of_misspelling(data: DataFolder, group: str) -> None:
    """Say on stderr if the group is probably not the one that was meant."""
    if warning := misspelt_group(data, group):
        click.echo(f"Warning: {warning} (pynchy groups lists them)", err=True)


def groups_of_settings(data: DataFolder) -> list[str]:
    """Return the groups in the settings of the running host, or else of one started here."""
    origin = data.origin()
    try:
        named = groups_in_settings(origin.path if origin else find_settings(None, os.environ))
    except ConfigError:
        return []
    # The file may be one that an agent has left here: what cannot be a group is not told on.
    return [name for name in named if _GROUP.match(name)]


def group_names(data: DataFolder) -> list[str]:
    """Return the groups that have a mailbox."""
    try:
        found = [path.name for path in data.ipc.iterdir() if (path / "tasks").is_dir()]
    except OSError:
        return []
    return [name for name in found if _GROUP.match(name)]
