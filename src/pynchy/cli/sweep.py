"""`pynchy sweep`: end what is stale."""

from __future__ import annotations

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.output import show_json
from pynchy.cli.text import one_line
from pynchy.cli.views import read_question
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder


@click.command("sweep", short_help="End what is stale.")
@click.option("--dry-run", is_flag=True, help="Only say what would be ended.")
@json_option
@data_dir_option
def sweep_command(data: DataFolder, *, dry_run: bool, as_json: bool) -> None:
    r"""End what is stale: questions past their deadline or whose group is gone.

    What only a person can mend is reported, and left alone.

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
    what = (
        f"{question.short_id}  {one_line(question.asker)}  {one_line(question.questions[0].text)}"
    )
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
