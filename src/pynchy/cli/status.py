"""`pynchy status`: how things stand, in a line for a status bar or in a few for a person.

The line is answered by `pynchy.status_line` before this is imported, unless other options
stand beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.errors import ConfigError, HostError, NoHost, PynchyError
from pynchy.status_line import get_object, short_line

if TYPE_CHECKING:
    from pynchy.cli.agent_views import HostAgent
    from pynchy.cli.status_bars import Bar
    from pynchy.client import HostClient
    from pynchy.data_dir import DataFolder

_LINE_SECONDS = 2.0
# A menu reads no more questions than these.
_MAX_QUESTIONS = 12
_NO_HOST = "No host runs. Start it with: pynchy serve"
_NO_ANSWER = "The host does not answer; see its log"


@click.command("status", short_help="Say how many agents work and what waits for you.")
@click.option(
    "--line", is_flag=True, help="Print one short line, empty if there is nothing to show."
)
@click.option("--menu", "as_menu", is_flag=True, help="Print a menu for SwiftBar or xbar.")
@click.option("--waybar", "as_waybar", is_flag=True, help="Print JSON for a module of Waybar.")
@json_option
@data_dir_option
def status_command(
    data: DataFolder, *, line: bool, as_menu: bool, as_waybar: bool, as_json: bool
) -> None:
    r"""Say how the host is, how many agents are at work, and what waits for you.

    With --line it is one short line for tmux, starship or a menu bar: 🤖 agents at work,
    🔒 permissions and 🔔 questions that wait for you, 📭 answers that were not delivered, ⏳ open
    todos. --menu lists every agent below it, with clicks that open a question or answer it, and
    --waybar does so in a tooltip. How each is set up is in the page status-bars of `pynchy docs`.

    All three are for status bars, which must not break: where no host runs they say so or nothing,
    and the exit code is 0. Without them it is 5 if no host runs.

    \b
    Examples:
      pynchy status
      pynchy status --json
      set -g status-right '#(pynchy status --line)'   in ~/.tmux.conf
      exec pynchy status --menu                       in pynchy.2s.sh, for SwiftBar
    """
    if as_menu + as_waybar + line > 1:
        raise click.UsageError("--line, --menu and --waybar exclude each other")
    if as_json:
        from pynchy.cli.text import to_json  # noqa: PLC0415 - only where it is printed

        click.echo(to_json(_ask(data)))
    elif as_menu or as_waybar:
        click.echo(_bar(data, as_menu=as_menu))
    elif line:
        click.echo(_line(data))
    else:
        _describe(_ask(data))


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


def _bar(data: DataFolder, *, as_menu: bool) -> str:
    """Return what a status bar shows, also where there is no host to ask."""
    from pynchy.cli import status_bars as bars  # noqa: PLC0415 - only where it is printed

    try:
        bar = _look(data, has_questions=as_menu)
    except NoHost:
        return bars.note_menu("🤖", _NO_HOST) if as_menu else bars.note_waybar("", "", "off")
    except (PynchyError, OSError):
        told = bars.note_menu("⚠", _NO_ANSWER)
        return told if as_menu else bars.note_waybar("⚠", _NO_ANSWER, "problem")
    return bars.menu(bar, _own_program(data)) if as_menu else bars.waybar(bar)


def _look(data: DataFolder, *, has_questions: bool) -> Bar:
    from datetime import UTC, datetime  # noqa: PLC0415 - the same

    from pynchy.cli.agent_views import read_agents  # noqa: PLC0415 - the same
    from pynchy.cli.status_bars import Bar  # noqa: PLC0415 - the same
    from pynchy.client import HostClient  # noqa: PLC0415 - the same

    client = HostClient.of(data, _LINE_SECONDS)
    status, agents = _ask(data, _LINE_SECONDS), read_agents(client.agents())
    questions = _questions(client, agents) if has_questions else {}
    return Bar(data.host().url, status, agents, questions, datetime.now(UTC))


def _questions(
    client: HostClient, agents: list[HostAgent]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the questions that can be answered from the menu, the most pressing first."""
    pressing = sorted(agents, key=lambda agent: agent.pressing)
    asks = [ask for agent in pressing for ask in agent.asks if ask.short_id]
    found = {}
    for ask in asks[:_MAX_QUESTIONS]:
        try:
            found[ask.group, ask.request_id] = client.question_of(ask.group, ask.request_id)
        except HostError:
            break  # what it does not say in time is not waited for again
        except PynchyError:
            continue  # it is over meanwhile
    return found


def _own_program(data: DataFolder) -> tuple[str, ...]:
    """Return the words that start this pynchy on the folder, for a click; none if they would not.

    The folder is said by an option that stands before the command.
    """
    from pynchy.own_program import find_own_program  # noqa: PLC0415 - the same

    try:
        return find_own_program(), "--data-dir", str(data.path.absolute())
    except ConfigError:
        return ()


def _agents(status: dict[str, Any]) -> str:
    waiting, idle = int(status.get("agents_waiting", 0)), int(status.get("agents_idle", 0))
    working = int(status.get("agents", 0)) - waiting - idle
    told = [f"{working} at work"] if working or not waiting + idle else []
    told += [f"{idle} idle"] if idle else []
    return ", ".join([*told, *([f"{waiting} waiting for you"] if waiting else [])])


def _describe(status: dict[str, Any]) -> None:
    from pynchy.cli.text import one_line  # noqa: PLC0415 - only where it is printed

    waiting, urgent = status.get("waiting", 0), status.get("urgent", 0)
    problems = [one_line(str(problem)) for problem in status.get("problems", ())]
    click.echo(f"host         {'running, with problems' if problems else 'running'}")
    click.echo(f"agents       {_agents(status)}")
    click.echo(f"waiting      {waiting}{f', {urgent} of them urgent' if urgent else ''}")
    if status.get("permissions_pending"):
        click.echo(f"permissions  {status['permissions_pending']}")
    click.echo(f"undelivered  {status.get('undelivered', 0)}")
    elsewhere = _elsewhere(status)
    if elsewhere:
        click.echo(f"elsewhere    {elsewhere}")
    if status.get("todos"):
        click.echo(f"todos        {status['todos']} open")
    for problem in problems:
        click.echo(f"problem      {problem}")
    if waiting:
        click.echo("Answer with: pynchy inbox")
    if status.get("undelivered"):
        click.echo("See what was not delivered with: pynchy pending")
    if elsewhere:
        click.echo("See who waits at their own screens with: pynchy agents")


def _elsewhere(status: dict[str, Any]) -> str:
    """Say what waits at agents' own screens, and how much of it is a guess; empty if nothing."""
    told = int(status.get("permissions_pending", 0)) + int(status.get("questions_pending", 0))
    more, guessed = told - int(status.get("waiting", 0)), status.get("permissions_guessed", 0)
    if more <= 0:
        return ""
    return f"{more} at agents' own screens{f', {guessed} of them a guess' if guessed else ''}"
