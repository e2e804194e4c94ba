"""Options that many commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pynchy import paths
from pynchy.data_dir import DataFolder
from pynchy.errors import PynchyError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)


class _Text(click.ParamType[str]):
    """Words that can be sent on. The shell may pass bytes that are no text at all."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail("not valid UTF-8 text", param, ctx)
        return value


TEXT = _Text()


def data_dir_option(function: F) -> F:
    """Add --data-dir; without it the group's option, the environment, then the usual place."""
    return click.option(
        "--data-dir",
        "data",
        type=_PATH,
        callback=_data_folder,
        help="The host's data folder.  [env: PYNCHY_DATA_DIR]",
    )(function)


def config_option(function: F) -> F:
    """Add --config; without it the group's option, the environment, then the usual places."""
    return click.option(
        "--config",
        type=_PATH,
        callback=_settings_path,
        help="The settings file.  [env: PYNCHY_CONFIG]",
    )(function)


def json_option(function: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def complete_groups(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a group: those that have a mailbox in the data folder."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

    from pynchy.cli.mailbox import group_names  # noqa: PLC0415 - the same

    try:
        found = sorted(group_names(data_folder_of(ctx)))
    except PynchyError:
        return []  # A shell that completes must never be spoken to.
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def data_folder_of(ctx: click.Context) -> DataFolder:
    """Return the data folder of a command whose options are not all read yet."""
    given = ctx.params.get("data")
    return given if isinstance(given, DataFolder) else _data_folder(ctx, None, given)


def _data_folder(
    ctx: click.Context, _param: click.Parameter | None, value: Path | None
) -> DataFolder:
    return DataFolder(paths.data_dir(value or shared_path(ctx, "data_dir"), os.environ))


def _settings_path(ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    return paths.find_settings(value or shared_path(ctx, "config"), os.environ)


def shared_path(ctx: click.Context, name: str) -> Path | None:
    """Return the path that was given before the command, if any."""
    # Not ctx.obj, which is not set yet where a shell completes.
    given = ctx.find_root().params.get(name)
    return given if isinstance(given, Path) else None
