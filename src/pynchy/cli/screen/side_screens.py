"""Two lists beside the inbox: who is waiting, and what is over. Escape goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.worker import Worker

from pynchy.cli.agent_views import HostAgent, read_agent
from pynchy.cli.screen import answering, markdown_text
from pynchy.cli.screen.card import ending_text, head, put
from pynchy.cli.screen.feed import understand
from pynchy.cli.screen.keys import Clock
from pynchy.cli.screen.question_list import Key, search_text
from pynchy.cli.screen.rows import brief
from pynchy.cli.text import clean, duration, moment, one_line, read_moment
from pynchy.cli.views import HostQuestion
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import PynchyError

POLL_SECONDS = 5.0
_MAX_OVER = 1_000
_MAX_NAME = 40
_MAX_BRIEF = 70
_MAX_TOOLS = 20
_STANDINGS = {
    "undelivered": ("answer not delivered", "bold red"),
    "waiting": ("waiting on you", "bold yellow"),
    "parked": ("parked, waits on you", "bold yellow"),
    "resuming": ("answer on its way", "cyan"),
    "working": ("working", "green"),
    "idle": ("idle", "dim"),
    "ended": ("ended", "dim"),
}
_OUTCOME_STYLES = {"answered": "green", "declined": "yellow"}


class SideScreen(Screen[None]):
    """A list that is fetched again now and then, with a line that says how it went."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "leave", "Back"),
        ("j", "step(1)", "Next"),
        ("k", "step(-1)", "Previous"),
    ]
    name_shown = ""
    hints = ""

    def __init__(self, data: DataFolder, by: str, clock: Clock) -> None:
        super().__init__()
        self._data = data
        self._by = by
        self._clock = clock
        self._is_stale = False
        self._is_looking = False

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Static(Text(self.name_shown, "bold"), id="bar")
        yield from self.above()
        yield OptionList(id="list", compact=True)
        yield from self.below()
        yield Static(Text(self.hints, "dim"), id="hints")

    def above(self) -> ComposeResult:
        """Return what stands above the list."""
        return iter(())

    def below(self) -> ComposeResult:
        """Return what stands below the list."""
        yield Static(id="status")

    def on_mount(self) -> None:
        """Look, and go on looking."""
        self.set_focus(self.choices)
        self.look()
        self.set_interval(POLL_SECONDS, self.look)

    @property
    def choices(self) -> OptionList:
        """The list."""
        return self.query_one("#list", OptionList)

    def look(self) -> None:
        """Ask the host again; whoever asks meanwhile is answered by one more look."""
        self._is_stale = True
        if not self._is_looking:
            self._is_looking = True
            self._worker: Worker[None] = self.run_worker(self._look)

    async def _look(self) -> None:
        while self._is_stale:
            self._is_stale = False
            try:
                fetched = await asyncio.to_thread(self.fetch)
            except PynchyError as exc:
                self.say(clean(str(exc)), bad=True)
            else:
                self.show(fetched)
        self._is_looking = False

    # Not abstract by `abc`: Textual's screens have a metaclass of their own.

    def fetch(self) -> list[Json]:
        """Return what the host has; called by a thread."""
        raise NotImplementedError

    def show(self, fetched: Sequence[Json]) -> None:
        """List it."""
        raise NotImplementedError

    def fill(self, rows: Sequence[Text]) -> None:
        """List these rows; what is highlighted stays where it is."""
        at = self.choices.highlighted
        self.choices.clear_options()
        self.choices.add_options(rows)
        if rows:
            self.choices.highlighted = min(at or 0, len(rows) - 1)

    def say(self, text: str, *, bad: bool = False) -> None:
        """Tell the person something."""
        for status in self.query("#status").results(Static):
            put(status, Text(text, "bold red" if bad else "bold"))

    def action_step(self, by: int) -> None:
        """Go up or down."""
        if by > 0:
            self.choices.action_cursor_down()
        else:
            self.choices.action_cursor_up()

    def action_leave(self) -> None:
        """Go back to what waits."""
        self.dismiss(None)


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One line of who is waiting; `key` where its answer could not be delivered."""

    text: Text
    key: Key | None = None


class AgentsScreen(SideScreen):
    """Every agent that lives or has something open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("r", "act('retry')", "Try again"),
        ("x", "act('dismiss')", "Stop keeping it"),
    ]
    name_shown = "Who is waiting"
    hints = "j/k move  r deliver again  x stop keeping the answer  Esc back"

    def __init__(self, data: DataFolder, by: str, clock: Clock) -> None:
        super().__init__(data, by, clock)
        self._rows: list[AgentRow] = []

    def fetch(self) -> list[Json]:
        """See Aside."""
        return HostClient.of(self._data).agents()

    def show(self, fetched: Sequence[Json]) -> None:
        """See Aside."""
        self._rows = [row for agent in fetched for row in self._rows_of(agent)]
        nobody = "No agent is here. One is listed while its server runs or something of it is open."
        self.fill([row.text for row in self._rows] or [Text(nobody, "dim")])

    def _rows_of(self, agent: Json) -> list[AgentRow]:
        standing, read = str(agent.get("standing", "")), read_agent(agent)
        is_unknown = read.is_unknown and standing == "idle"
        known = _STANDINGS.get(standing, (one_line(standing), ""))
        word, style = ("connected", "dim") if is_unknown else known
        line = Text(no_wrap=True, overflow="ellipsis").append(f"{word:<21}", style)
        line.append(one_line(str(agent.get("group", ""))), "bold")
        line.append(f"  {one_line(str(agent.get('agent') or 'An agent'), _MAX_NAME)}")
        line.append(f"  {one_line(str(agent.get('task') or ''), _MAX_NAME)}")
        is_known = agent.get("lives") or standing == "parked"
        line.append("" if is_known else "  its process has ended", "dim")
        line.append("  what it does is not known" if is_unknown else "", "dim")
        items = [self._item(agent, item) for item in agent.get("questions") or ()]
        return [AgentRow(line), *_elsewhere(read), *items]

    def _item(self, agent: Json, item: Json) -> AgentRow:
        line = Text("    ").append(f"#{one_line(str(item.get('short_id', '')))} ", "bold")
        line.append(one_line(str(item.get("brief", "")), _MAX_BRIEF))
        try:
            age = self._clock.now() - read_moment(str(item.get("asked_at")))
            line.append(f"  {duration(age.total_seconds())}", "dim")
        except ValueError:
            pass
        if agent.get("standing") != "undelivered":
            return AgentRow(line)
        line.append(f"\n      {one_line(str(item.get('error') or 'no reason is known'))}", "red")
        return AgentRow(line, (str(agent.get("group", "")), str(item.get("request_id", ""))))

    async def action_act(self, verb: str) -> None:
        """Try again to deliver the answer of the line, or stop keeping it."""
        at = self.choices.highlighted
        key = self._rows[at].key if at is not None and at < len(self._rows) else None
        if key is None:
            self.say("Choose an answer that was not delivered first.")
            return
        self.say("Sending…")
        result = await asyncio.to_thread(answering.send, self._data, key, verb, {"by": self._by})
        done = "Trying again." if verb == "retry" else "No longer kept; history has it."
        self.say(result.text if result.is_bad else done, bad=result.is_bad)
        self.look()


def _elsewhere(agent: HostAgent) -> list[AgentRow]:
    """Return the tools that it runs, and what it asks at its own screen alone."""
    lines = []
    for tool in agent.tools[:_MAX_TOOLS]:
        style = "dark_orange" if tool.may_need_permission else "dim"
        mark = f"{tool.how_long} (a guess)" if tool.may_need_permission else tool.how_long
        lines.append(
            Text("    ").append(one_line(tool.what, _MAX_BRIEF)).append(f"  {mark}", style)
        )
    for ask in agent.asks:
        if not ask.short_id:
            line = Text(f"    {one_line(ask.title, _MAX_BRIEF)}")
            line.append("  urgent" if ask.is_urgent else "", "bold red")
            line.append(f"  {one_line(ask.in_full, _MAX_BRIEF)}" if ask.in_full else "")
            lines.append(line.append("  at its own screen", "dim"))
    return [AgentRow(line) for line in lines]


class HistoryScreen(SideScreen):
    """What is over, newest first."""

    BINDINGS: ClassVar[list[BindingType]] = [("slash", "search", "Search")]
    name_shown = "What is over"
    hints = "j/k move  / search  Esc back"

    def __init__(self, data: DataFolder, by: str, clock: Clock) -> None:
        super().__init__(data, by, clock)
        self._views: list[HostQuestion] = []
        self._shown: list[HostQuestion] = []

    def above(self) -> ComposeResult:
        """See Aside."""
        yield Input(id="search", classes="used", placeholder="search ( / )", compact=True)

    def below(self) -> ComposeResult:
        """See Aside."""
        with VerticalScroll(id="detail"):
            yield Static(id="whole")
        yield Static(id="status")

    def fetch(self) -> list[Json]:
        """See Aside."""
        return HostClient.of(self._data).history(_MAX_OVER, None, None)

    def show(self, fetched: Sequence[Json]) -> None:
        """See Aside."""
        views = [view for raw in fetched if (view := understand(raw))]
        if views != self._views or not views:
            self._views = views
            self._filter()

    def _filter(self) -> None:
        typed = self.query_one("#search", Input).value.lower().split()
        self._shown = [v for v in self._views if all(word in search_text(v) for word in typed)]
        nothing = "Nothing has ended yet."
        if typed:
            all_ = len(self._views) < _MAX_OVER
            nothing = "Nothing fits." if all_ else f"Nothing fits among the newest {_MAX_OVER:,}."
        self.fill([_over_row(view) for view in self._shown] or [Text(nothing, "dim")])
        self._detail()

    def on_input_changed(self) -> None:
        """List what fits."""
        self._filter()

    def on_input_submitted(self) -> None:
        """Go to the list."""
        self.set_focus(self.choices)

    def on_option_list_option_highlighted(self) -> None:
        """Show the one that is highlighted."""
        self._detail()

    def _detail(self) -> None:
        at = self.choices.highlighted
        chosen = at is not None and at < len(self._shown)
        text = _whole(self._shown[at or 0], self._clock) if chosen else Text()
        put(self.query_one("#whole", Static), text)

    def action_search(self) -> None:
        """Type what to look for."""
        self.set_focus(self.query_one("#search", Input))

    def action_leave(self) -> None:
        """Leave the search field, else go back to what waits."""
        if isinstance(self.focused, Input):
            self.set_focus(self.choices)
        else:
            super().action_leave()


def _over_row(view: HostQuestion) -> Text:
    outcome = view.ending.outcome if view.ending else view.state
    line = Text(no_wrap=True, overflow="ellipsis").append(f"{view.short_id:<6}", "bold")
    line.append(f"{one_line(outcome):<14}", _OUTCOME_STYLES.get(outcome, "red"))
    line.append(f"{moment(view.ending.at) if view.ending else '':<21}", "dim")
    line.append(f"{one_line(view.asker)}  ", "cyan")
    return line.append(brief(view))


def _whole(view: HostQuestion, clock: Clock) -> Text:
    text = head(view, clock.now()).append("\n")
    for question in view.questions:
        text.append("\n").append_text(markdown_text.markdown(question.text)).append("\n")
    if view.ending is not None:
        text.append("\n").append_text(ending_text(view, view.ending))
    return text
