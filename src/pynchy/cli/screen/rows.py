"""The list: two lines for each question, drawn only where they are seen, and the line above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pynchy.cli.event_follower import HostLink
from pynchy.cli.screen.question_list import Key, ListedQuestion, QuestionList
from pynchy.cli.screen.saved_state import SavedState
from pynchy.cli.text import duration, one_line
from pynchy.cli.views import HostQuestion

# The host says something at least every 15 seconds.
SILENT_SECONDS = 25.0

_HEIGHT = 2
_URGENCY = {"high": ("!", "bold red"), "low": ("·", "dim")}


def counts(question_list: QuestionList, kept: SavedState, search: str) -> Text:
    """Return how many wait, are urgent, did not arrive or are hidden, and what is searched."""
    asleep = kept.asleep()
    waiting = question_list.keys() - asleep.keys()
    urgent = sum(question_list.is_urgent(key) for key in waiting)
    bar = Text(no_wrap=True, overflow="ellipsis").append("pynchy  ", "bold")
    bar.append(f"{len(waiting)} waiting" if waiting else "nothing waits")
    bar.append(f" · {urgent} urgent" if urgent else "", "bold red")
    stuck = question_list.undelivered
    bar.append(f" · {stuck} not delivered (a)" if stuck else "", "red")
    bar.append(f" · {len(asleep)} hidden (z)" if asleep else "", "dim")
    return bar.append(f" · search: {one_line(search)}" if search else "", "yellow")


def link_text(link: HostLink | None, silent_seconds: float) -> Text:
    """Return how the connection is."""
    ago = f"last seen {duration(silent_seconds)} ago"
    if link is HostLink.GONE:
        return Text(f"○ reconnecting, {ago}", "bold yellow")
    if link is None:
        return Text("○ connecting…", "yellow")
    if silent_seconds > SILENT_SECONDS:
        return Text(f"○ the host is silent, {ago}", "bold yellow")
    return Text("● live", "green")


class Rows(ScrollView, can_focus=False):
    """What waits, most urgent first."""

    class Picked(Message):
        """A row was clicked."""

        def __init__(self, key: Key) -> None:
            super().__init__()
            self.key = key

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(id="rows")
        self._now = now
        self._entries: Sequence[ListedQuestion] = ()
        self._selected: Key | None = None
        self._drawn: list[str] = []

    @property
    def entries(self) -> Sequence[ListedQuestion]:
        """What is listed."""
        return self._entries

    def show(self, entries: Sequence[ListedQuestion], selected: Key | None) -> None:
        """List these; the selected one keeps its place on the screen if it had one."""
        before = self._top_of(selected) if selected == self._selected else None
        self._entries, self._selected = entries, selected
        self.virtual_size = Size(self.size.width, len(entries) * _HEIGHT)
        after = self._place(selected)
        if after is not None and before is not None:
            self._scroll(after - before)
        elif after is not None:
            self._reveal(after)
        self.refresh()

    def tick(self) -> None:
        """Draw the lines again that time has changed."""
        for y, text in enumerate(self._visible()):
            if y >= len(self._drawn) or text != self._drawn[y]:
                self.refresh(Region(0, y, self.size.width, 1))

    def _visible(self) -> list[str]:
        return [line.plain for y in range(self.size.height) if (line := self._line(y))]

    def _place(self, key: Key | None) -> int | None:
        found = (at for at, entry in enumerate(self._entries) if entry.key == key)
        at = next(found, None)
        return None if at is None else at * _HEIGHT

    def _top_of(self, key: Key | None) -> int | None:
        place = self._place(key)
        return None if place is None else place - round(self.scroll_y)

    def _reveal(self, place: int) -> None:
        height = max(self.size.height, _HEIGHT)
        if place < self.scroll_y:
            self._scroll(place)
        elif place + _HEIGHT > self.scroll_y + height:
            self._scroll(place + _HEIGHT - height)

    def _scroll(self, y: int) -> None:
        self.scroll_to(y=max(y, 0), animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Measure again."""
        self.show(self._entries, self._selected)

    def on_click(self, event: Click) -> None:
        """Pick the row under the pointer."""
        at = (event.y + round(self.scroll_y)) // _HEIGHT
        if 0 <= at < len(self._entries):
            self.post_message(self.Picked(self._entries[at].key))

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        width, text = self.size.width, self._line(y)
        if text is None:
            return Strip.blank(width, self.rich_style)
        self._drawn += [""] * (y + 1 - len(self._drawn))
        self._drawn[y] = text.plain
        chosen = self._entries[self._at(y)[0]].key == self._selected
        style = self.rich_style + (Style(bgcolor="grey23") if chosen else Style())
        segments = list(text.render(self.app.console, end=""))
        return Strip(Segment.apply_style(segments, style)).adjust_cell_length(width, style)

    def _at(self, y: int) -> tuple[int, int]:
        return divmod(y + round(self.scroll_y), _HEIGHT)

    def _line(self, y: int) -> Text | None:
        at, part = self._at(y)
        if at >= len(self._entries):
            return None
        entry, draw = self._entries[at], (first_line, second_line)[part]
        return draw(entry, self._now(), self.size.width, chosen=entry.key == self._selected)


def first_line(entry: ListedQuestion, now: datetime, width: int, *, chosen: bool) -> Text:
    """Say who asks, and for how long already."""
    view = entry.view
    mark, style = _URGENCY.get(view.urgency, (" ", ""))
    line = Text(no_wrap=True).append("▌" if chosen else " ", "bold cyan")
    line.append(mark if entry.seen or mark != " " else "●", style or "cyan")
    line.append(f"{view.short_id} ", "bold" if entry.over_since is None else "dim")
    line.append(f"{view.group} ", "cyan" if entry.over_since is None else "dim")
    line.append(one_line(view.agent) or "An agent", "dim")
    return _with_end(line, duration((now - view.asked_at).total_seconds()), width)


def second_line(entry: ListedQuestion, now: datetime, width: int, *, chosen: bool) -> Text:
    """Say what is asked and how long there is, or how it ended."""
    view = entry.view
    line = Text(no_wrap=True).append("▌ " if chosen else "  ", "bold cyan")
    if view.ending is not None:
        mark = "✓ " if view.ending.outcome == "answered" else "- "
        told = f"{mark}{view.kind_word}{one_line(view.ending.summary)}"
        return _with_end(line.append(told, "dim"), "", width)
    line.append(brief(view), "")
    if waits := view.waits_seconds(now):
        return _with_end(line, f"waits {duration(waits)}", width)
    return _with_end(line, f"{duration((view.due_at - now).total_seconds())} left", width)


def brief(view: HostQuestion) -> str:
    """Return the question in one line."""
    asked = one_line(view.title) or one_line(view.brief)
    more = f" (+{len(view.questions) - 1})" if len(view.questions) > 1 else ""
    return f"{view.kind_word}{asked}{more}"


def _with_end(line: Text, end: str, width: int) -> Text:
    """Return the line cut to the width, with its end at the right edge."""
    line.truncate(max(width - len(end) - 2, 1), overflow="ellipsis", pad=True)
    return line.append(f" {end} ", "dim")
