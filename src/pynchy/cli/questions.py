"""`pynchy pending`, `show`, `history`, `sweep`: which questions there are, open and closed."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import click
from rich.table import Table
from rich.text import Text

from pynchy.cli.live_list import LiveList, watch_list
from pynchy.cli.mailbox import warn_of_misspelling
from pynchy.cli.options import (
    complete_groups,
    data_dir_option,
    find_question,
    id_argument,
    json_option,
)
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.question_text import next_step, question_sheet, story
from pynchy.cli.tables import (
    delivery_mark,
    history_fields,
    history_table,
    pending_screen,
    print_pending,
)
from pynchy.cli.text import one_line
from pynchy.cli.views import read_question
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.model import OutcomeKind

# Events say when to ask the host again; a slow look behind them makes a lost one cost seconds.
_POLL_SECONDS = 5.0


@click.command("pending", short_help="List what waits for a person.")
@click.option("--all", "is_all", is_flag=True, help="All of them, however many there are.")
@click.option("--watch", is_flag=True, help="Stay, and show every change.  [Ctrl-C ends it]")
@json_option
@data_dir_option
def pending_command(data: DataFolder, *, is_all: bool, watch: bool, as_json: bool) -> None:
    r"""List what waits for a person, and answers that did not arrive.

    The most urgent questions come first, and then the newest. Every group has a place near the top.
    A terminal shows 50 questions, and with --all every one. `pynchy show` prints one in full.

    If the output is not a terminal, each question is one line, with tabs between its fields: id,
    asked by, question, options, age, time left, state, why it was not delivered, title.

    With --json the oldest come first. With --watch and --json, every change prints the whole list
    again as one line.

    \b
    Examples:
      pynchy pending
      pynchy pending --watch
      pynchy pending --json | jq -r '.[].short_id'
    """
    if watch:
        watch_pending(data, as_json=as_json)
    else:
        print_pending(HostClient.of(data).pending(), as_json=as_json, is_all=is_all)


@click.command("show", short_help="Show one question in full.")
@id_argument
@json_option
@data_dir_option
def show_command(target: str, data: DataFolder, *, as_json: bool) -> None:
    r"""Show one question in full, open or closed: options, previews, cards, what happened.

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


@click.command("history", short_help="List closed questions, and how each ended.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="Show at most this many.",
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
    r"""List closed questions, newest first, and how each ended.

    What never reached its agent is marked as not delivered. Without a terminal each question is one
    line with tabs between its fields, that mark last.

    \b
    Examples:
      pynchy history --limit 10
      pynchy history --group web-team --outcome declined --json
    """
    views = HostClient.of(data).history(limit, group, outcome)
    if as_json:
        show_json(views)
        return
    if not views and group:
        warn_of_misspelling(data, group)
    questions = [read_question(view) for view in views]
    if not questions:
        click.echo(
            "No question is closed yet."
            if not (group or outcome)
            else "No closed question matches."
        )
    elif is_terminal():
        show([history_table(questions)])
    else:
        for question in questions:
            show_fields([*history_fields(question), delivery_mark(question)])


@click.command("sweep", short_help="End what is stale.")
@click.option("--dry-run", is_flag=True, help="Only say what would be ended.")
@json_option
@data_dir_option
def sweep_command(data: DataFolder, *, dry_run: bool, as_json: bool) -> None:
    r"""End what is stale: questions past their deadline or whose group is gone.

    What only a person can fix is reported, and left alone.

    \b
    Examples:
      pynchy sweep --dry-run
      pynchy sweep
    """
    findings = HostClient.of(data).sweep(dry_run=dry_run)
    if as_json:
        show_json(findings)
        return
    if not findings:
        click.echo("Nothing is stale.")
    for finding in findings:
        click.echo(_describe(finding, dry_run=dry_run))


def _describe(finding: Json, *, dry_run: bool) -> str:
    question = read_question(finding)
    what = f"{question.short_id}  {one_line(question.asker)}  {one_line(question.brief)}"
    outcome = finding.get("would_end_as")
    if outcome:
        verdict = f"would end as {outcome}" if dry_run else f"ended as {outcome}"
    else:
        verdict = f"left alone; {_advice(question.state, question.short_id)}"
    return f"{what}\n      {one_line(str(finding.get('why', '')))}: {verdict}"


def _advice(state: str, short_id: str) -> str:
    if state == "undelivered":
        return f"try again: pynchy retry {short_id}, or: pynchy dismiss {short_id}"
    return f"end it with: pynchy decline {short_id}"


def watch_pending(data: DataFolder, *, as_json: bool) -> None:
    """Show what waits until Ctrl-C. Raise NoHost if there is no host to begin with."""
    data.host()
    watch_list(
        LiveList(data, HostClient.pending, _POLL_SECONDS),
        None if as_json else _draw,
        partial(print_pending, as_json=as_json),
    )


def _draw(views: list[Json], now: datetime) -> list[Table | Text]:
    return pending_screen([read_question(view) for view in views], now)
