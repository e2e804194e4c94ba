"""`pynchy show`: one question whole."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pynchy.cli.ids import find_question, id_argument
from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.output import show, show_json
from pynchy.cli.question_text import next_step, question_sheet, story
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder


@click.command("show", short_help="Show one question whole.")
@id_argument
@json_option
@data_dir_option
def show_command(target: str, data: DataFolder, *, as_json: bool) -> None:
    r"""Show one question whole, open or over: options, previews, cards, what happened.

    \b
    Example:
      pynchy show k7qm
    """
    client = HostClient.of(data)
    view = find_question(client, target)
    if as_json:
        show_json(view)
        return
    question = read_question(view)
    show(question_sheet(question))
    show(story(question, datetime.now(UTC)))
    show(next_step(question))
