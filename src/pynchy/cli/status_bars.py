"""What a menu bar shows: the menu of SwiftBar and xbar, and the module of Waybar.

They are made anew every two seconds, so that little is imported. Nothing that an agent wrote can
add a line, a parameter or markup. A click allows only what can be read whole in the menu, and never
more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from pynchy.cli.agent_views import HostAgent, HostAsk
from pynchy.cli.text import clean, flat, one_line, to_json
from pynchy.client import Json
from pynchy.status_line import short_line

_ROBOT = "🤖"
_MAX_AGENTS = 30
_MAX_TOOLS = 8
_MAX_TITLE = 70
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
# An empty line, or the fence of a piece of code.
_SAYS_NOTHING = re.compile(r"\s*(?:`{3,}[a-z]{0,12})?\s*\Z")
_VALUE = re.compile(r"[^\"'|\\\x00-\x1f\x7f\ud800-\udfff]+\Z")
_PANGO = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


@dataclass(frozen=True, slots=True)
class Bar:
    """What the host told: its address, the figures, the agents, and questions by group and id."""

    url: str
    status: Json
    agents: Sequence[HostAgent]
    questions: dict[tuple[str, str], Json]
    now: datetime


def menu(bar: Bar, program: Sequence[str]) -> str:
    """Return the menu. `program` are the words that start this pynchy; empty if none would."""
    lines = [_line(short_line(bar.status) or _ROBOT), "---"]
    shown = sorted(bar.agents, key=lambda agent: agent.pressing)
    for agent in shown[:_MAX_AGENTS]:
        lines += _agent_lines(bar, agent, program)
    if more := shown[_MAX_AGENTS:]:
        lines.append(_line(f"… and {len(more)} more", href=f"{bar.url}/agents"))
    if not shown:
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
    who = one_line(agent.who, _MAX_TITLE)
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
    lines = [flat(line) for line in clean(text).split("\n") if not _SAYS_NOTHING.match(line)]
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
