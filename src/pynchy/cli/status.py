"""`pynchy status`: how things stand, in a line for a status bar or in a few for a person.

The line is answered by `pynchy.status_line` before this is imported, unless other options
stand beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.errors import HostError
from pynchy.status_line import get_object, short_line

if TYPE_CHECKING:
    from pynchy.data_dir import DataFolder

_LINE_SECONDS = 2.0


@click.command("status", short_help="Say how many agents work and what waits for you.")
@click.option(
    "--line", is_flag=True, help="Print one short line, empty if there is nothing to show."
)
@json_option
@data_dir_option
def status_command(data: DataFolder, *, line: bool, as_json: bool) -> None:
    r"""Say how the host is, how many agents are at work, and what waits for you.

    With --line it is one short line for tmux, starship or a menu bar: 🤖 agents at work,
    🔔 questions that wait for you, 📭 answers that were not delivered. It is empty, with exit
    code 0, if there is nothing to show or no host runs: a status bar must not break. Without
    --line the exit code is 5 if no host runs.

    \b
    Examples:
      pynchy status
      pynchy status --json
      set -g status-right '#(pynchy status --line)'   in ~/.tmux.conf
    """
    if line and not as_json:
        click.echo(_line(data))
        return
    status = _ask(data)
    if as_json:
        from pynchy.cli.text import to_json  # noqa: PLC0415 - only where it is printed

        click.echo(to_json(status))
    else:
        _describe(status)


def _line(data: DataFolder) -> str:
    try:
        return short_line(_ask(data, _LINE_SECONDS))
    except (HostError, OSError):
        return ""


def _ask(data: DataFolder, seconds: float = 15.0) -> dict[str, Any]:
    address = data.host()
    try:
        return get_object(address.url, address.token, "/api/status", seconds)
    except (OSError, ValueError) as exc:
        raise HostError(f"the pynchy host does not answer ({exc}); see its log") from exc


def _agents(status: dict[str, Any]) -> str:
    waiting = int(status.get("agents_waiting", 0))
    working = int(status.get("agents", 0)) - waiting
    told = [f"{working} at work"] if working or not waiting else []
    return ", ".join([*told, *([f"{waiting} waiting for you"] if waiting else [])])


def _describe(status: dict[str, Any]) -> None:
    from pynchy.cli.text import one_line  # noqa: PLC0415 - only where it is printed

    waiting, urgent = status.get("waiting", 0), status.get("urgent", 0)
    problems = [one_line(str(problem)) for problem in status.get("problems", ())]
    click.echo(f"host         {'running, with problems' if problems else 'running'}")
    click.echo(f"agents       {_agents(status)}")
    click.echo(f"waiting      {waiting}{f', {urgent} of them urgent' if urgent else ''}")
    click.echo(f"undelivered  {status.get('undelivered', 0)}")
    for problem in problems:
        click.echo(f"problem      {problem}")
    if waiting:
        click.echo("Answer with: pynchy inbox")
    if status.get("undelivered"):
        click.echo("See what was not delivered with: pynchy pending")
