"""`pynchy dismiss`: stop keeping an answer that could not be delivered."""

from __future__ import annotations

import click

from pynchy.cli.ids import by_option, find_question, id_argument, reply_to
from pynchy.cli.options import data_dir_option
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("dismiss", short_help="Stop keeping an answer that could not be delivered.")
@id_argument
@by_option
@data_dir_option
def dismiss_command(target: str, by: str, data: DataFolder) -> None:
    r"""Stop keeping an answer that could not be delivered; history keeps it.

    Such answers are in `pynchy pending` with the reason, until somebody comes for them with
    check_answer, `pynchy retry` delivers them, or answer_ttl has passed once more.

    \b
    Example:
      pynchy dismiss k7qm
    """
    client = HostClient.of(data)
    view = reply_to(client, find_question(client, target), "dismiss", by=by)
    click.echo(f"{read_question(view).short_id}: dismissed; it is in: pynchy history")
