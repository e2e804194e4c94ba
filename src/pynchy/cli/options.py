"""Options that many commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pynchy import paths
from pynchy.datafolder import DataFolder

F = TypeVar("F", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)


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


def _data_folder(ctx: click.Context, _param: click.Parameter, value: Path | None) -> DataFolder:
    return DataFolder(paths.data_dir(value or _shared(ctx, "data_dir"), os.environ))


def _settings_path(ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    return paths.find_settings(value or _shared(ctx, "config"), os.environ)


def _shared(ctx: click.Context, name: str) -> Path | None:
    shared = ctx.find_root().obj
    return shared.get(name) if isinstance(shared, dict) else None
