"""`pynchy agents`: every agent, ours and foreign, and what each is doing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from pynchy.cli.agent_views import HostAgent, HostAsk, HostTool, read_agents
from pynchy.cli.live_list import LiveList, watch_list
from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.output import is_terminal, show, show_fields, show_json
from pynchy.cli.text import one_line
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder

# Events tell of questions. What else a foreign agent does has none.
_POLL_SECONDS = 2.0
_STYLES = {
    "permission": "bold dark_orange",
    "waiting": "bold yellow",
    "parked": "yellow",
    "working": "green",
}
_GUESS_STYLE = "dark_orange"
# What is shown of one agent, whatever it has going on.
_MAX_LINES = 20
_NOBODY = (
    'No agent is here. Start one with: pynchy run GROUP "prompt"; let yours ask with: pynchy '
    "connect claude (or codex, opencode); see OpenCode's agents: [sources.opencode] in the settings"
)


@click.command("agents", short_help="List every agent, and what each is doing.")
@click.option("--watch", is_flag=True, help="Stay, and show every change.  [Ctrl-C ends it]")
@json_option
@data_dir_option
def agents_command(data: DataFolder, *, watch: bool, as_json: bool) -> None:
    r"""List every agent that pynchy knows, its own and foreign ones, and what each is doing.

    They are grouped by source and group: 🤖 working, with every tool that runs and for how long,
    💤 idle, 🔔 waiting for you and 🔒 for a permission, with what can be answered here by its id.
    "May need permission" is a guess, by how long a tool runs, where its program does not tell. Of a
    program that a person started and connected, ⚪, nothing is known while it asks nothing.

    If the output is not a terminal, each agent is one line, with tabs between its fields: source,
    group, agent, session, state, whether that is a guess, since, title, ids of what can be answered
    here, tools, open todos, task.

    With --watch and --json, every change prints the whole list again as one line.

    \b
    Examples:
      pynchy agents
      pynchy agents --watch
      pynchy agents --json | jq -r '.[] | select(.state == "permission") | .title'
    """
    if not watch:
        host = HostClient.of(data)
        print_agents(host.agents(), as_json=as_json)
        for problem in () if as_json else host.problems():
            click.echo(f"problem: {one_line(problem)}", err=True)
        return
    data.host()
    watch_list(
        LiveList(data, HostClient.agents, _POLL_SECONDS),
        None if as_json else agents_screen,
        partial(print_agents, as_json=as_json),
        _without_clocks,
    )


def print_agents(views: list[Json], *, as_json: bool) -> None:
    """Print the list once, as the reader wants it."""
    now = datetime.now(UTC)
    if as_json:
        show_json(views)
    elif is_terminal() or not views:
        # A console would join lines of text that stand alone, and wrap them.
        show([Group(*agents_screen(views, now))])
    else:
        for agent in read_agents(views):
            show_fields(_fields(agent, now))


def agents_screen(views: list[Json], now: datetime) -> list[Text]:
    """Return every agent below its source and group."""
    lines = []
    for place, agents in groupby(read_agents(views), lambda agent: agent.place):
        lines += [Text(""), Text(place, "bold underline")]
        lines += [line for agent in agents for line in _lines(agent, now)]
    return lines[1:] or [Text(_NOBODY)]


def _lines(agent: HostAgent, now: datetime) -> list[Text]:
    is_guess = agent.guessed and not agent.is_unknown
    style = _GUESS_STYLE if is_guess else _STYLES.get(agent.state, "dim")
    first = _line(f"  {agent.sign} ").append(agent.name, "bold").append("  ")
    if agent.task:
        first.append(f"{agent.task}  ", "dim")
    first.append(agent.words, "bold red" if agent.sign == "📭" else style)
    if age := agent.age(now):
        first.append(f"  {age}", "dim")
    if agent.todos:
        first.append(f"  ⏳ {_counted(agent.todos, 'todo')}", "dim")
    if agent.about:
        first.append(f"  {agent.about}", "dim")
    undelivered = [
        _line("     └ ").append(f"pynchy retry {short_id}", "cyan")
        for short_id in agent.undelivered
    ]
    return [
        first,
        *_some([_tool_line(tool) for tool in agent.tools], "tool"),
        *_some([_ask_line(ask) for ask in agent.asks], "question"),
        *_some(undelivered, "answer"),
    ]


def _some(lines: list[Text], what: str) -> list[Text]:
    more = len(lines) - _MAX_LINES
    if more <= 0:
        return lines
    return [*lines[:_MAX_LINES], Text(f"     … and {_counted(more, f'more {what}')}", "dim")]


def _tool_line(tool: HostTool) -> Text:
    line = _line(f"     🔧 {tool.what}")
    if how_long := tool.how_long:
        # In front, where no long argument pushes it out of sight.
        mark = f"{how_long} (a guess)" if tool.may_need_permission else how_long
        style = _GUESS_STYLE if tool.may_need_permission else "dim"
        line = _line("     🔧 ").append(f"{mark}  ", style).append(tool.what)
    return line


def _ask_line(ask: HostAsk) -> Text:
    line = _line("     └ ")
    if ask.short_id:
        verb = "approve" if ask.is_permission else "answer"
        line.append(f"pynchy {verb} {ask.short_id}", "cyan").append("  ")
    else:
        line.append("at its own screen", "dim").append("  ")
    line.append(f"“{ask.title}”" if ask.title else "")
    if ask.is_urgent:
        line.append("  urgent", "bold red")
    # What can be answered here is told in full by its card.
    return line if ask.short_id or not ask.in_full else line.append(f"  {ask.in_full}", "dim")


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _fields(agent: HostAgent, now: datetime) -> Sequence[str]:
    tools = [f"{t.what} ({t.how_long})" if t.how_long else t.what for t in agent.tools]
    asked = [ask.short_id for ask in agent.asks if ask.short_id]
    return [
        agent.source,
        agent.group,
        agent.name,
        agent.session_id,
        agent.state,
        "guess" if agent.guessed else "",
        agent.age(now),
        agent.title,
        " ".join(asked or agent.undelivered),
        "; ".join(tools),
        str(agent.todos),
        agent.task,
    ]


def _without_clocks(views: list[Json]) -> list[Any]:
    """Return the list without how long tools run, which is never the same twice."""
    return [
        {**view, "tools": [{**tool, "elapsed_seconds": None} for tool in view.get("tools") or ()]}
        for view in views
    ]
