"""`pynchy init`: write a settings file to begin with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click

from pynchy.cli.options import data_folder_of, shared_path
from pynchy.config import example_settings
from pynchy.data_dir import SETTINGS_NAME
from pynchy.errors import ConfigError
from pynchy.own_program import own_call


@click.command("init", short_help="Write a settings file to start from.")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.pass_context
def init_command(ctx: click.Context, path: Path | None, *, force: bool) -> None:
    r"""Write a settings file in which every setting is a comment with its default.

    It goes to PATH, or to pynchy.toml in this folder. A file that is there is not overwritten.

    \b
    Examples:
      pynchy init
      pynchy init ~/.config/pynchy/pynchy.toml
    """
    path = path or shared_path(ctx, "config") or Path(SETTINGS_NAME)
    if path.is_dir():
        path /= SETTINGS_NAME
    _write(path, force=force)
    with suppress(ConfigError):  # without a home there is no host that has run before
        data_folder_of(ctx).accept(path)
    where = "" if path == Path(SETTINGS_NAME) else f" --config {path}"
    click.echo(f"Wrote {path}. Next:")
    click.echo("  edit it            every setting is there, as a comment with its default")
    click.echo(f"  {own_call()} serve{where}       run the host")
    click.echo(f"  {own_call()} doctor{where}      see whether all is well")


def _write(path: Path, *, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if force else os.O_EXCL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, flags, 0o644)
    except FileExistsError:
        raise ConfigError(
            f"{path}: is there already and was left alone; replace it with --force"
        ) from None
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be written: {exc.strerror}") from exc
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(example_settings())
