"""`pynchy decline`: end a question without an answer."""

from __future__ import annotations

import click

from pynchy.cli.ids import by_option, find_question, id_argument, reply_to, telling_what_won
from pynchy.cli.options import TEXT, data_dir_option, json_option
from pynchy.cli.text import to_json
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("decline", short_help="End a question without an answer.")
@id_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Tell the agent why.")
@json_option
@by_option
@data_dir_option
def decline_command(
    target: str, reason: str | None, by: str, data: DataFolder, *, as_json: bool
) -> None:
    r"""End a question without an answer; the agent is told that this is no consent.

    With --json the question is printed as it is now, also where somebody else was first.

    Exit code: 0 it is declined, 4 it was already over, 5 no host, 1 anything else.

    \b
    Example:
      pynchy decline k7qm --reason "ask again after the release"
    """
    client = HostClient.of(data)
    view = find_question(client, target)
    body = {"by": by} | ({"reason": reason} if reason else {})
    if as_json:
        with telling_what_won(client, view):
            view = reply_to(client, view, "decline", **body)
        click.echo(to_json(view))
        return
    view = reply_to(client, view, "decline", **body)
    click.echo(f"{read_question(view).short_id} declined")
