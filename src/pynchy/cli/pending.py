"""`pynchy pending`: what waits for a person, once or as it changes."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.tables import pending_fields, pending_screen
from pynchy.cli.views import read_question
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder


@click.command("pending", short_help="List what waits for a person.")
@click.option("--watch", is_flag=True, help="Stay, and show every change.  [Ctrl-C ends it]")
@json_option
@data_dir_option
def pending_command(data: DataFolder, *, watch: bool, as_json: bool) -> None:
    r"""List what waits for a person, and answers that did not arrive.

    Without a terminal each question is one line with tabs between its fields. With --watch and
    --json, every change prints the whole list again as one line.

    \b
    Examples:
      pynchy pending
      pynchy pending --watch
      pynchy pending --json | jq -r '.[].short_id'
    """
    if watch:
        from pynchy.cli.live_pending import watch_pending  # noqa: PLC0415 - threads only where needed

        watch_pending(data, as_json=as_json)
    else:
        print_pending(HostClient.of(data).pending(), as_json=as_json)


def print_pending(views: list[Json], *, as_json: bool) -> None:
    """Print the list once, as the reader wants it."""
    now = datetime.now(UTC)
    if as_json:
        show_json(views)
    elif is_terminal() or not views:
        show(pending_screen([read_question(view) for view in views], now))
    else:
        for view in views:
            question = read_question(view)
            show_fields([*pending_fields(question, now), question.delivery_error])
