"""What the host says of an agent, as values that the commands can show.

Every text is one line and safe to show, whatever an agent has put into it. Lenient: a field that an
older or newer host does not send is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pynchy.cli.text import duration, one_line, read_moment
from pynchy.client import Json
from pynchy.fair_order import fair_order

UNDELIVERED = "undelivered"
# What is most pressing comes first.
_STATES = ("permission", "waiting", "parked", "working", "idle", "ended")
_OURS = "pynchy"
_MAX_NAME = 60
_MAX_TEXT = 200
_GUESS = "may need permission"
_NOT_KNOWN = "connected; what it does is not known"
_WORDS = {
    "permission": "needs a permission",
    "waiting": "waiting on you",
    "parked": "parked, waiting on you",
}
_SIGNS = {"permission": "🔒", "waiting": "🔔", "parked": "🔔", "working": "🤖", "idle": "💤"}


@dataclass(frozen=True, slots=True)
class HostTool:
    """A call that runs; how long is None where its program does not say."""

    tool: str
    argument: str
    elapsed_seconds: float | None
    may_need_permission: bool

    @property
    def what(self) -> str:
        """What runs: "bash: make test"."""
        return f"{self.tool}: {self.argument}" if self.argument else self.tool

    @property
    def how_long(self) -> str:
        """How long it runs, with what may be concluded from that; empty where nothing is known."""
        ran = "" if self.elapsed_seconds is None else duration(self.elapsed_seconds)
        if not self.may_need_permission:
            return ran
        return f"{_GUESS}, running {ran}" if ran else _GUESS


@dataclass(frozen=True, slots=True)
class HostAsk:
    """What an agent waits for; without a `short_id` it is answered at the agent's own screen."""

    is_permission: bool
    title: str
    group: str
    request_id: str
    short_id: str
    text: str
    options: tuple[str, ...]
    agent: str
    is_urgent: bool

    @property
    def in_full(self) -> str:
        """Who asks and what, where the title does not say it all."""
        offered = f" ({' / '.join(self.options)})" if self.options and self.text else ""
        said = f"{self.text}{offered}"
        return f"{self.agent}: {said}" if self.agent and said else said or self.agent


@dataclass(frozen=True, slots=True)
class HostAgent:
    """An agent as the host tells it; `undelivered` are the ids of answers that did not arrive."""

    source: str
    group: str
    name: str
    task: str
    session_id: str
    state: str
    guessed: bool
    since: datetime | None
    title: str
    tools: tuple[HostTool, ...]
    asks: tuple[HostAsk, ...]
    todos: int
    undelivered: tuple[str, ...]

    @property
    def is_unknown(self) -> bool:
        """True if nothing is known of it but that it is there."""
        return self.guessed and self.state == "idle"

    @property
    def sign(self) -> str:
        """The picture of what it does."""
        if self.undelivered and not self.asks:
            return "📭"
        return "⚪" if self.is_unknown else _SIGNS.get(self.state, "⚪")

    @property
    def words(self) -> str:
        """What it does, for a person; a guess is called one."""
        if self.undelivered and not self.asks:
            return "an answer was not delivered"
        if self.is_unknown:
            return _NOT_KNOWN
        told = _WORDS.get(self.state, self.state)
        if self.guessed:
            return f"{_GUESS if self.state == 'permission' else told} (a guess)"
        return told

    @property
    def about(self) -> str:
        """What it works on, where nothing of it waits."""
        return "" if self.asks or self.title == self.task else self.title

    @property
    def place(self) -> str:
        """Its source and group, said once where they are called the same."""
        return " · ".join(_each_once(self.source, self.group))

    @property
    def who(self) -> str:
        """Where it works and its name; no name can pass for another group, which stands first."""
        return " · ".join(_each_once(self.group, self.name, self.task))

    def age(self, now: datetime) -> str:
        """How long it has done that; empty where it is not known."""
        return "" if self.since is None else duration((now - self.since).total_seconds())

    @property
    def order(self) -> tuple[bool, str, str, int, str, str]:
        """What to sort by: ours first, by source and group, the most pressing first."""
        whose = (self.source != _OURS, self.source, self.group)
        return (*whose, self._rank, self.name, self.session_id)

    @property
    def pressing(self) -> tuple[bool, int, tuple[bool, str, str, int, str, str]]:
        """What to sort by where there is no room for all: the most pressing first."""
        is_urgent = any(ask.is_urgent for ask in self.asks)
        return not is_urgent, self._rank, self.order

    @property
    def _rank(self) -> int:
        return _STATES.index(self.state) if self.state in _STATES else len(_STATES)


def read_agents(views: Iterable[Json]) -> list[HostAgent]:
    """Return the agents of the host's list, by source and group."""
    found = [read_agent(view) for view in views if isinstance(view, dict)]
    return sorted(found, key=lambda agent: agent.order)


def by_press(agents: Iterable[HostAgent]) -> list[HostAgent]:
    """Return the agents for a place without room for all; no group takes it from the others."""
    return fair_order(agents, lambda agent: agent.pressing, lambda agent: agent.place)


def read_agent(view: Json) -> HostAgent:
    """Return the agent that the host describes."""
    standing = _text(view, "standing")
    return HostAgent(
        source=_text(view, "source") or _OURS,
        group=_text(view, "group"),
        name=_text(view, "agent", _MAX_NAME) or "an agent",
        task=_text(view, "task"),
        session_id=_text(view, "session_id"),
        state=_text(view, "state") or ("working" if standing == UNDELIVERED else standing),
        guessed=view.get("guessed") is True,
        since=_moment(view.get("since")),
        title=_text(view, "title"),
        tools=tuple(_read_tool(tool) for tool in _objects(view, "tools")),
        asks=tuple(_read_ask(ask) for ask in _objects(view, "asks")),
        todos=_number(view.get("todos")),
        undelivered=tuple(
            _text(item, "short_id")
            for item in _objects(view, "questions")
            if standing == UNDELIVERED
        ),
    )


def _read_tool(view: Json) -> HostTool:
    elapsed = view.get("elapsed_seconds")
    return HostTool(
        tool=_text(view, "tool", _MAX_NAME) or "a tool",
        argument=_text(view, "argument"),
        elapsed_seconds=float(elapsed) if isinstance(elapsed, int | float) else None,
        may_need_permission=view.get("may_need_permission") is True,
    )


def _read_ask(view: Json) -> HostAsk:
    return HostAsk(
        is_permission=view.get("kind") not in {None, "", "question"},
        title=_text(view, "title"),
        group=_text(view, "group"),
        request_id=_text(view, "request_id"),
        short_id=_text(view, "short_id"),
        text=_text(view, "text"),
        options=tuple(one_line(str(option), _MAX_NAME) for option in _list(view, "options")),
        agent=_text(view, "agent", _MAX_NAME),
        is_urgent=view.get("urgency") == "high",
    )


def _each_once(*words: str) -> list[str]:
    found: dict[str, str] = {}
    for word in filter(None, words):
        found.setdefault(word.casefold(), word)
    return list(found.values())


def _objects(view: Json, name: str) -> list[Json]:
    return [item for item in _list(view, name) if isinstance(item, dict)]


def _list(view: Json, name: str) -> list[Any]:
    found = view.get(name)
    return found if isinstance(found, list) else []


def _text(view: Json, name: str, most: int = _MAX_TEXT) -> str:
    return one_line(str(view.get(name) or ""), most)


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _moment(value: object) -> datetime | None:
    try:
        return read_moment(value) if isinstance(value, str) else None
    except ValueError:
        return None
