"""`pynchy retry`: deliver an answer again that did not arrive."""

from __future__ import annotations

import click

from pynchy.cli.ids import by_option, find_question, id_argument, reply_to
from pynchy.cli.options import data_dir_option
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("retry", short_help="Deliver an answer again that did not arrive.")
@id_argument
@by_option
@data_dir_option
def retry_command(target: str, by: str, data: DataFolder) -> None:
    r"""Deliver an answer again that did not reach its agent.

    Such answers are in `pynchy pending` with the reason. Where the next attempt is still to come,
    it is made now. See what came of it with `pynchy show`.

    \b
    Example:
      pynchy retry k7qm
    """
    client = HostClient.of(data)
    view = reply_to(client, find_question(client, target), "retry", by=by)
    short_id = read_question(view).short_id
    click.echo(f"{short_id}: trying again; see what comes of it with: pynchy show {short_id}")
