"""`pynchy postbox`: the cards, one line for each."""

from __future__ import annotations

from pathlib import Path

import click

from pynchy import ConfigError, config_option, load_settings
from pynchy_postbox.channel import PostboxSettings


@click.command("postbox", short_help="List the cards in the postbox.")
@config_option
def postbox_command(config: Path | None) -> None:
    r"""List the cards in the postbox, with the first line of each.

    \b
    Example:
      pynchy postbox
    """
    table = load_settings(config).channels.get("postbox")
    if not isinstance(table, PostboxSettings):
        raise ConfigError("there is no [channels.postbox] in the settings")
    for path in sorted(table.folder.glob("*/cards/*.txt")):
        first, _, _ = path.read_text(encoding="utf-8").partition("\n")
        click.echo(f"{path.relative_to(table.folder)}: {first}")
