"""`pynchy status`: how things stand, for a person, and for status bars and their menus.

The line of a status bar is answered by `pynchy.status_line` before this is imported, unless other
options stand beside it. Menus are made anew every two seconds, so that little is imported. Nothing
that an agent wrote can add a line, a parameter or markup to one. A click allows only what can be
read whole in the menu, and never more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pynchy.cli.options import data_dir_option, json_option
from pynchy.cli.text import clean, flat, one_line, to_json
from pynchy.client import HostClient, Json
from pynchy.errors import ConfigError, HostError, NoHost, PynchyError
from pynchy.fair_order import fair_order
from pynchy.fences import split_code
from pynchy.status_line import get_object, short_line

if TYPE_CHECKING:
    from pynchy.cli.agent_views import HostAgent, HostAsk
    from pynchy.data_dir import DataFolder

_LINE_SECONDS = 2.0
# A menu reads no more questions than these.
_MAX_QUESTIONS = 12
_NO_HOST = "No host runs. Start it with: pynchy serve"
_NO_ANSWER = "The host does not answer; see its log"
_ROBOT = "🤖"
_MAX_AGENTS = 30
_MAX_TOOLS = 8
_MAX_TITLE = 70
_MAX_NAME = 40
_MAX_PROBLEMS = 5
# A question that is longer is opened, not answered from here.
_MAX_TEXT = 600
_MAX_LINES = 10
_MAX_LINE = 100
_MAX_OPTIONS = 6
_DIM = {"size": "12"}
_ORANGE = {"color": "orange"}
_DECIDED = {"approve": "approve", "deny": "deny"}

# Menus put pictures in the place of these; xbar reads what follows a backslash.
_SHORT_CODE = re.compile(r":(?=[\w.+-]+:)")
_NOT_IN_TITLE = str.maketrans({"|": "│", "\\": "\u29f5"})
_VALUE = re.compile(r"[^\"'|\\\x00-\x1f\x7f\ud800-\udfff]+\Z")
_PANGO = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


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
        click.echo(to_json(_ask(data)))
    elif as_menu or as_waybar:
        click.echo(_bar(data, as_menu=as_menu))
    elif line:
        click.echo(_short(data))
    else:
        _describe(_ask(data))


def _short(data: DataFolder) -> str:
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
    try:
        bar = _look(data, has_questions=as_menu)
    except NoHost:
        return note_menu("🤖", _NO_HOST) if as_menu else note_waybar("", "", "off")
    except (PynchyError, OSError):
        told = note_menu("⚠", _NO_ANSWER)
        return told if as_menu else note_waybar("⚠", _NO_ANSWER, "problem")
    return menu(bar, _own_program(data)) if as_menu else waybar(bar)


def _look(data: DataFolder, *, has_questions: bool) -> Bar:
    from pynchy.cli.agent_views import by_press, read_agents  # noqa: PLC0415 - only for bars

    client = HostClient.of(data, _LINE_SECONDS)
    status, agents = _ask(data, _LINE_SECONDS), by_press(read_agents(client.agents()))
    questions = _questions(client, agents) if has_questions else {}
    return Bar(data.host().url, status, agents, questions, datetime.now(UTC))


def _questions(
    client: HostClient, agents: list[HostAgent]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the questions that can be answered from the menu, in the order of the agents."""
    asks = [ask for agent in agents for ask in agent.asks if ask.short_id]
    fair = fair_order(range(len(asks)), lambda at: at, lambda at: asks[at].group)
    found = {}
    for ask in (asks[at] for at in fair[:_MAX_QUESTIONS]):
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
    unknown = int(status.get("agents_unknown", 0))
    working = int(status.get("agents", 0)) - waiting - idle
    told = [f"{working} at work"] if working or not waiting + idle else []
    told += [f"{idle - unknown} idle"] if idle > unknown else []
    told += [f"{waiting} waiting for you"] if waiting else []
    told += [f"{unknown} connected (what they do is not known)"] if unknown else []
    return ", ".join(told)


def _describe(status: dict[str, Any]) -> None:
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


@dataclass(frozen=True, slots=True)
class Bar:
    """What the host told: its address, figures, agents by press, and questions by group and id."""

    url: str
    status: Json
    agents: Sequence[HostAgent]
    questions: dict[tuple[str, str], Json]
    now: datetime


def menu(bar: Bar, program: Sequence[str]) -> str:
    """Return the menu. `program` are the words that start this pynchy; empty if none would."""
    lines = [_line(short_line(bar.status) or _ROBOT), "---"]
    for agent in bar.agents[:_MAX_AGENTS]:
        lines += _agent_lines(bar, agent, program)
    if more := bar.agents[_MAX_AGENTS:]:
        lines.append(_line(f"… and {len(more)} more", href=f"{bar.url}/agents"))
    if not bar.agents:
        lines.append(_line("No agent is here"))
    lines.append("---")
    for problem in _problems(bar.status):
        lines.append(_line(f"⚠ {problem}", **_ORANGE))
    lines.append(_line("Open the inbox", href=f"{bar.url}/"))
    lines.append(_line("Look again", refresh="true"))
    return "\n".join(lines)


def note_menu(sign: str, text: str) -> str:
    """Return a menu that has nothing to show but why."""
    return "\n".join([_line(sign), "---", _line(text)])


def waybar(bar: Bar) -> str:
    """Return the JSON of a custom module: what to show, what to say under it, and its class."""
    told = [line for agent in bar.agents[:_MAX_AGENTS] for line in _spoken(agent, bar.now)]
    told += [f"… and {more} more"] if (more := len(bar.agents) - _MAX_AGENTS) > 0 else []
    told += [f"⚠ {problem}" for problem in _problems(bar.status)]
    return note_waybar(short_line(bar.status), "\n".join(told), _class(bar.status))


def note_waybar(text: str, tooltip: str, kind: str) -> str:
    """Return that JSON with the texts, which become no markup."""
    shown = {"text": text.translate(_PANGO), "tooltip": tooltip.translate(_PANGO)}
    return to_json({**shown, "class": kind, "alt": kind})


def _class(status: Json) -> str:
    names = {
        "permissions_pending": "permission",
        "questions_pending": "waiting",
        "undelivered": "undelivered",
        "agents_working": "working",
    }
    calm = "problem" if _problems(status) else "idle"
    return next((name for figure, name in names.items() if status.get(figure)), calm)


def _problems(status: Json) -> list[str]:
    found = status.get("problems")
    listed = found if isinstance(found, list) else []
    return [one_line(str(problem), _MAX_TITLE) for problem in listed[:_MAX_PROBLEMS]]


def _spoken(agent: HostAgent, now: datetime) -> Iterator[str]:
    """Say what the agent does, in lines without markup."""
    age = agent.age(now)
    yield f"{agent.sign} {agent.words}{f' {age}' if age else ''}: {_who(agent)}"
    for tool in agent.tools[:_MAX_TOOLS]:
        yield f"    🔧 {_tool(tool.what, tool.how_long)}"
    for ask in agent.asks[:_MAX_TOOLS]:
        yield f"    └ “{one_line(ask.title, _MAX_TITLE)}”"


def _who(agent: HostAgent) -> str:
    """Say which agent it is, and what it works on where nothing of it waits."""
    who = one_line(agent.who, max(_MAX_TITLE, len(agent.group) + _MAX_NAME))
    return f"{who}: {one_line(agent.about, _MAX_TITLE)}" if agent.about else who


def _tool(what: str, how_long: str) -> str:
    cut = one_line(what, _MAX_TITLE)
    return f"{cut} ({how_long})" if how_long else cut


def _agent_lines(bar: Bar, agent: HostAgent, program: Sequence[str]) -> Iterator[str]:
    is_permission = agent.state == "permission"
    style = _ORANGE if is_permission else {}
    age = agent.age(bar.now)
    text = f"{agent.sign} {_who(agent)}{f' ({age})' if age else ''}"
    todos = f"  ⏳ {agent.todos}" if agent.todos else ""
    yield _line(f"{text}{todos}", href=f"{bar.url}/agents", **style)
    if agent.is_unknown and not agent.undelivered:
        yield _line(f"└ {agent.words}", **_DIM)
    for tool in agent.tools[:_MAX_TOOLS]:
        marked = _ORANGE if tool.may_need_permission else {}
        yield _line(f"🔧 {_tool(tool.what, tool.how_long)}", **_DIM, **marked)
    for ask in agent.asks[:_MAX_TOOLS]:
        yield from _ask_lines(bar, ask, program)
    for short_id in agent.undelivered[:_MAX_TOOLS]:
        yield _line(f"└ the answer to {short_id} was not delivered", **_DIM)
        yield from _click("Try again", program, "retry", short_id)


def _ask_lines(bar: Bar, ask: HostAsk, program: Sequence[str]) -> Iterator[str]:
    style = {**_DIM, **(_ORANGE if ask.is_permission else {})}
    page = f"{bar.url}/q/{quote(ask.group, safe='')}/{quote(ask.request_id, safe='')}"
    title = f'└ "{one_line(ask.title, _MAX_TITLE)}"'
    if not ask.short_id:
        yield _line(f"{title} (at its own screen)", **style)
        return
    question = bar.questions.get((ask.group, ask.request_id), {})
    choices = _choices(question, ask.short_id) if program else []
    yield _line(title, **style, **({} if choices else {"href": page}))
    if choices:
        for line in _readable(question):
            yield _line(f"--┊ {line}", **_DIM)
        for label, words in choices:
            yield from _click(label, program, *words)
        yield _line("--Open…", href=page)


def _choices(view: Json, short_id: str) -> list[tuple[str, list[str]]]:
    """Return what a click may say, each with the words of its command.

    An option that makes a rule or needs more reading is left to the inbox.
    """
    asked = _only_question(view)
    if asked is None or view.get("ending") or asked.get("multiSelect"):
        return []
    options = [option for option in asked.get("options") or () if isinstance(option, dict)]
    is_short = bool(_readable(view))
    if asked.get("needs_word"):
        return [
            (str(option.get("label", "")), [_DECIDED[value], short_id])
            for option in options
            if (value := str(option.get("value", ""))) in _DECIDED
            and (is_short or not option.get("needs_sight"))
        ]
    labels = [_label(number, option) for number, option in enumerate(options, start=1)]
    if not is_short or not all(labels) or len(labels) > _MAX_OPTIONS:
        return []
    return [
        (label, ["answer", short_id, str(number)]) for number, label in enumerate(labels, start=1)
    ]


def _label(number: int, option: Json) -> str:
    """Return all that the option says; empty where a line has no room for it.

    The number stands before it, so that no label begins as a line of another menu does.
    """
    label, more = str(option.get("label", "")), str(option.get("description") or "")
    text = f"{number}. {flat(label)}{f': {flat(more)}' if more else ''}"
    is_whole = not (option.get("preview") or option.get("confirm")) and len(text) <= _MAX_TITLE
    return text if is_whole else ""


def _only_question(view: Json) -> Json | None:
    asked = view.get("questions")
    alone = isinstance(asked, list) and len(asked) == 1 and isinstance(asked[0], dict)
    return asked[0] if isinstance(asked, list) and alone else None


def _readable(view: Json) -> list[str]:
    """Return all that is asked, line by line, if a menu has room for it; else nothing."""
    asked = _only_question(view)
    text = str(asked.get("question", "")) if asked else ""
    if len(text) > _MAX_TEXT:
        return []
    told = "\n".join(part.text for part in split_code(clean(text)))
    lines = [flat(line) for line in told.split("\n") if line.strip()]
    fits = len(lines) <= _MAX_LINES and all(len(line) <= _MAX_LINE for line in lines)
    return lines if fits else []


def _click(label: str, program: Sequence[str], *words: str) -> Iterator[str]:
    """Return the line below the last one that runs the command, if it can be written."""
    values = [*program, *words]
    if not program or not all(map(_VALUE.match, values)):
        return
    named = {"bash": values[0]} | {f"param{n}": word for n, word in enumerate(values) if n}
    yield _line(f"--{one_line(label, _MAX_TITLE)}", **named, terminal="false", refresh="true")


def _line(text: str, **parameters: str) -> str:
    """Return one line of the menu, whatever is in its text."""
    title = _SHORT_CODE.sub("\u2236", " ".join(text.splitlines()).translate(_NOT_IN_TITLE))
    usable = {name: value for name, value in parameters.items() if _VALUE.match(value)}
    told = " ".join(f'{name}="{value}"' for name, value in usable.items())
    return f"{title} | {told}" if told else title
