"""`pynchy history`: what is over, and how it ended."""

from __future__ import annotations

import click

from pynchy.cli.options import complete_groups, data_dir_option, json_option
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.tables import history_fields, history_table
from pynchy.cli.views import read_question
from pynchy.client import HostClient
from pynchy.data_dir import DataFolder
from pynchy.model import OutcomeKind


@click.command("history", short_help="List what is over, and how it ended.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many."
)
@click.option("--group", metavar="NAME", shell_complete=complete_groups, help="Only this group's.")
@click.option(
    "--outcome", type=click.Choice([kind.value for kind in OutcomeKind]), help="Only this outcome."
)
@json_option
@data_dir_option
def history_command(
    data: DataFolder, limit: int, group: str | None, outcome: str | None, *, as_json: bool
) -> None:
    r"""List what is over, newest first, and how it ended.

    \b
    Examples:
      pynchy history --limit 10
      pynchy history --group web-team --outcome declined --json
    """
    views = HostClient.of(data).history(limit, group, outcome)
    if as_json:
        show_json(views)
        return
    questions = [read_question(view) for view in views]
    if not questions:
        click.echo("Nothing is over yet." if not (group or outcome) else "Nothing like that.")
    elif is_terminal():
        show([history_table(questions)])
    else:
        for question in questions:
            show_fields(history_fields(question))
