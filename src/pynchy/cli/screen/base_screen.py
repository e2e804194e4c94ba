"""The list and the question that is being looked at: what is shown of the news.

Nothing is selected because it is new, and what has just appeared is deaf for a moment. While
somebody types, a question that ends swallows what is still being typed, so that letters do not turn
into commands.
"""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, Static, TextArea

from pynchy.cli.event_follower import HostLink
from pynchy.cli.screen import keys, rows
from pynchy.cli.screen.answering import Errands, PersonReplies
from pynchy.cli.screen.card import CardPane, OwnWords, QuestionBox, put
from pynchy.cli.screen.feed import Changed, Feed, Linked, Listed, News, Vanished
from pynchy.cli.screen.keys import IGNORE_KEYS_SECONDS, Clock
from pynchy.cli.screen.question_list import Key, ListedQuestion, QuestionList
from pynchy.cli.screen.rows import Rows
from pynchy.data_dir import DataFolder

TICK_SECONDS = 0.2
SLOW_TICK_SECONDS = 1.0
SAVE_SECONDS = 2.0
# Whoever types on makes no longer pauses than this.
LULL_SECONDS = 1.0


class BaseScreen(Screen[None]):
    """The list and the question that is being looked at, as the host tells of them."""

    def __init__(self, data: DataFolder, by: str, clock: Clock, feed: Feed) -> None:
        super().__init__()
        self._data = data
        self._by = by
        self._clock = clock
        self._feed = feed
        self._link: HostLink | None = None
        self._listed = False
        self._ignores_keys_until = 0.0
        self._lull_until = 0.0
        self._search = ""
        self._show_hidden = False
        self._built: tuple[object, ...] = ()
        self._showing = asyncio.Lock()
        self.question_list = QuestionList()
        self._answering = PersonReplies(data, by, clock, self.question_list)
        self._kept = self._answering.kept
        self._errands = Errands(self.run_worker, self._sent)
        self._leaving: frozenset[Key] = frozenset()
        self._left = False

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Static(id="bar")
        yield Input(id="search", placeholder="search", compact=True)
        with Horizontal(id="body"):
            yield Rows(self._clock.now)
            yield CardPane()
        yield Static(id="hints")

    async def on_mount(self) -> None:
        """Begin with nothing selected."""
        self.set_focus(self._pane)
        self.set_interval(TICK_SECONDS, self._tick)
        self.set_interval(SLOW_TICK_SECONDS, self._slow_tick)
        self.set_interval(SAVE_SECONDS, self.save)
        await self._refresh()

    def on_resize(self) -> None:
        """Show as many keys as fit."""
        self.show_hints()

    def show_hints(self) -> None:
        """Say which keys there are, in the line at the bottom."""
        width = self.size.width - 2
        put(self.query_one("#hints", Static), keys.hints(width, single_keys=self.single_keys))

    @property
    def _pane(self) -> CardPane:
        return self.query_one(CardPane)

    @property
    def current(self) -> ListedQuestion | None:
        """The question that is being looked at."""
        return self.question_list.get(self.question_list.selected)

    @property
    def ignores_keys(self) -> bool:
        """True while keys on the card are ignored."""
        return self._clock.monotonic() < self._ignores_keys_until

    def save(self) -> None:
        """Write down what outlives the screen."""
        self._kept.save()

    @property
    def single_keys(self) -> bool:
        """True if keys work on their own."""
        return self._kept.single_keys

    def ignore_keys_briefly(self) -> None:
        """Be deaf for a moment."""
        self._ignores_keys_until = self._clock.monotonic() + IGNORE_KEYS_SECONDS

    async def take(self, news: News) -> None:
        """Show what the host said."""
        at = self._clock.monotonic()
        match news:
            case Listed(views=views, undo_seconds=undo):
                self._answering.undo_seconds |= undo
                self._feed.want(*self.question_list.sync(views, at))
                self._kept.tidy(self.question_list.keys())
                if not self._listed:
                    self._listed = True
                    self._step_to_waiting()
            case Changed(view=view):
                self.question_list.put(view, at)
            case Vanished(key=key):
                self.question_list.drop(key)
            case Linked(link=link):
                self._link = link
        await self._refresh()

    @property
    def _is_gone(self) -> bool:
        """True once it was left, or is being taken down: news may still come then."""
        return self._left or not all(self.query(part) for part in (Rows, CardPane, "#bar"))

    async def _refresh(self) -> None:
        """Show everything as it is now. An open question that is shown already is left alone."""
        if not self.is_mounted or self._is_gone:
            return
        # News and keys come side by side, and a card cannot be built twice at once.
        async with self._showing:
            if self._is_gone:
                return
            asleep = () if self._show_hidden else self._kept.asleep()
            rows = self.question_list.rows(asleep, self._search)
            self.query_one(Rows).show(rows, self.question_list.selected)
            shape = self._shape(rows)
            if shape != self._built:
                await self._build(shape)
        self._tick()
        self._slow_tick()

    def _shape(self, rows: list[ListedQuestion]) -> tuple[object, ...]:
        entry = self.current
        if entry is None:
            return (None, bool(rows), self._listed)
        view = entry.view
        if view.ending is None:
            return (entry.key, "open")
        return (entry.key, view.state, view.delivered, view.delivery_error)

    async def _build(self, shape: tuple[object, ...]) -> None:
        typing = isinstance(self.focused, OwnWords)
        self._collect()
        same = bool(self._built) and self._built[0] == shape[0]
        self._built = shape
        entry = self.current
        if entry is None:
            await self._pane.clear(_nothing(listed=self._listed, rows=bool(shape[1])))
        else:
            entry.seen = True
            over = entry.view.ending is not None
            self._answering.settle(entry.view)
            unsent = self._kept.written(entry.key) if over else ""
            await self._pane.build(entry, self._answering.parts(entry), unsent)
        if typing:
            self._lull_until = self._clock.monotonic() + LULL_SECONDS
        if typing or not same:
            self.ignore_keys_briefly()
            self.set_focus(self._pane)

    def _tick(self) -> None:
        """Let time pass."""
        if not self.is_mounted or self._is_gone:
            return
        self._answering.send_due(self._errands)
        entry = self.current
        if entry is not None:
            now, parts = self._clock.now(), self._answering.parts(entry)
            status = self._answering.status(entry)
            if not status and isinstance(self.focused, OwnWords):
                status = Text("Ctrl+↵ sends it; or Esc, then ↵", "dim")
            self._pane.tick(now, status, parts, self._here())

    def _slow_tick(self) -> None:
        """Let more time pass: what has to look at every question."""
        if not self.is_mounted or self._is_gone:
            return
        self._wake()
        line = rows.counts(self.question_list, self._kept, self._search).append("   ")
        line.append_text(rows.link_text(self._link, self._feed.silent_seconds))
        put(self.query_one("#bar", Static), line)
        self.query_one(Rows).tick()

    def _wake(self) -> None:
        at = self._clock.monotonic()
        awoken = self._kept.awoken()
        for key in awoken:
            self.question_list.wake(key, at)
        drafted = [key for key in self.question_list.over() if self._kept.written(key)]
        if self.question_list.tidy(at, drafted) or awoken:
            self.call_later(self._refresh)

    def leave(self) -> None:
        """Leave. What waits to be sent is sent first; what cannot be keeps the screen open."""
        on_way = self._answering.send_all(self._errands)
        if self._leaving or not on_way:
            self._exit()
            return
        self._leaving = on_way
        self.notify("Sending what you said, then leaving. Once more leaves now.")

    def _exit(self) -> None:
        # News that comes now has nothing left to be shown in.
        self._left = True
        self.app.exit()

    async def _sent(self) -> None:
        """Show what came of it, and leave if that was waited for."""
        sent = self._leaving
        if sent and not self._answering.on_way():
            self._leaving = frozenset()
            lost = [key for key in sent if not self._answering.counts(key)]
            if not lost:
                self._exit()
                return
            if self.app.screen is not self:
                self.app.pop_screen()
            self._select(lost[0])
        await self._refresh()

    def _step_to_waiting(self) -> None:
        """Go to the next one below that waits, and from the last to the first."""
        rows = self.question_list.rows(self._kept.asleep(), self._search)
        here = next((at for at, e in enumerate(rows, 1) if e.key == self.question_list.selected), 0)
        following = next((e for e in [*rows[here:], *rows[:here]] if e.view.waits), None)
        if following is not None:
            self._select(following.key)

    def _select(self, key: Key) -> None:
        self._collect()
        self.question_list.selected = key

    def _collect(self) -> None:
        """Keep what is in the fields."""
        entry = self._pane.entry
        if entry is None:
            return
        self._answering.write(entry, {f.question: f.text for f in self._pane.query(OwnWords)})

    def on_text_area_changed(self, _event: TextArea.Changed) -> None:
        """Keep what is being written."""
        self._collect()

    def _here(self) -> int | None:
        """Return the question that keys go to: the one in use, else the first without an answer."""
        entry = self.current
        if entry is None:
            return None
        for widget in self.focused.ancestors_with_self if self.focused else ():
            if isinstance(widget, QuestionBox):
                return widget.at
        return self._answering.missing(entry) or 0


def _nothing(*, listed: bool, rows: bool) -> Text:
    if not listed:
        return Text("Asking the host…", "dim")
    if rows:
        return Text("n goes to the first question that waits, j and k move.", "dim")
    text = Text().append("Nothing waits for you.\n\n", "bold")
    text.append("When an agent asks, its question appears here by itself. ")
    text.append("To see one, ask something yourself:\n\n")
    text.append('  pynchy ask "Deploy?" -o Yes -o No', "cyan")
    return text
