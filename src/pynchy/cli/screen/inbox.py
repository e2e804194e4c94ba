"""What a person does with the list and the question that is being looked at.

No accidental answer: a number only marks, and Escape never declines. The application hands every
key on in order.
"""

from __future__ import annotations

from textual.app import App
from textual.events import AppFocus, Event
from textual.events import Key as KeyPress
from textual.message import Message
from textual.widgets import Button, Input, TextArea

from pynchy.cli.screen import keys
from pynchy.cli.screen.answering import is_plain
from pynchy.cli.screen.base_screen import LULL_SECONDS, BaseScreen
from pynchy.cli.screen.card import Choice, Folding, OwnWords
from pynchy.cli.screen.feed import Feed, News
from pynchy.cli.screen.keys import AskNap, AskReason, Clock, Help, Nap, naps
from pynchy.cli.screen.rows import Rows
from pynchy.cli.screen.side_screens import AgentsScreen, HistoryScreen, SideScreen
from pynchy.data_dir import DataFolder
from pynchy.inbox.keys import Action, ScreenAction


class InboxScreen(BaseScreen):
    """What keys, clicks and buttons do."""

    async def show_help(self) -> None:
        """Show the keys."""

        def closed(_: None) -> None:
            self.show_hints()

        await self.app.push_screen(Help(self._by, self._kept), closed)

    async def pressed(self, event: KeyPress) -> bool:
        """Do what the key is for. Return False if it belongs to the field or button in use."""
        if self._is_typed_on(event):
            return True
        focused = self.focused
        if event.key == "ctrl+enter" and isinstance(focused, OwnWords):
            self._submit(at_once=True)
            return True
        is_typing = isinstance(focused, (TextArea, Input)) and event.key != "escape"
        if is_typing or (event.key == "enter" and isinstance(focused, (Button, Folding))):
            return False
        name = keys.name_of(event)
        action = keys.action_of(name)
        if action is None:
            return False
        await self._do(action, name)
        return True

    def _is_typed_on(self, event: KeyPress) -> bool:
        """True for keys that still belong to a text whose field is gone."""
        now = self._clock.monotonic()
        if now >= self._lull_until:
            return False
        self._lull_until = 0.0 if event.key == "escape" else now + LULL_SECONDS
        return True

    async def _do(self, action: Action | ScreenAction, name: str) -> None:  # noqa: C901, PLR0912 - a table
        if self.ignores_keys and action not in keys.HARMLESS:
            return
        match action:
            case Action.NEXT | Action.PREVIOUS:
                self._step(1 if action is Action.NEXT else -1)
            case Action.NEXT_WAITING:
                self._step_to_waiting()
            case Action.CHOOSE:
                self._mark(self._here() or 0, int(name))
            case Action.SEND:
                self._enter()
            case Action.WRITE:
                self._write()
            case Action.DECLINE:
                await self._ask_reason()
            case Action.UNDO:
                self._take_back()
            case Action.SNOOZE:
                await self._ask_nap()
            case Action.SEARCH:
                self._start_search()
            case Action.HELP:
                await self.show_help()
            case Action.LEAVE:
                self._leave()
            case ScreenAction.AGENTS:
                await self.app.push_screen(AgentsScreen(self._data, self._by, self._clock))
            case ScreenAction.HISTORY:
                await self.app.push_screen(HistoryScreen(self._data, self._by, self._clock))
            case ScreenAction.QUIT:
                self.leave()
            case ScreenAction.UNFOLD:
                self._pane.unfold()
            case ScreenAction.HIDDEN:
                self._show_hidden = not self._show_hidden
            case ScreenAction.COPY:
                self._copy()
            case ScreenAction.DISCARD:
                self._discard()
            case _:
                return
        await self._refresh()

    def _step(self, by: int) -> None:
        rows = self.query_one(Rows).entries
        if not rows:
            return
        places = [at for at, entry in enumerate(rows) if entry.key == self.question_list.selected]
        at = places[0] + by if places else (0 if by > 0 else len(rows) - 1)
        self._select(rows[min(max(at, 0), len(rows) - 1)].key)

    async def on_rows_picked(self, message: Rows.Picked) -> None:
        """Show the question whose row was clicked."""
        self._select(message.key)
        await self._refresh()

    def _mark(self, at: int, number: int) -> None:
        entry = self.current
        if entry is None or self._is_unread() or not self._answering.mark(entry, at, number):
            return
        if entry.view.questions[at].multi_select:
            if not isinstance(self.focused, Choice):
                choice = next(c for c in self._pane.asked[at].query(Choice) if c.number == number)
                self.set_focus(choice, scroll_visible=False)
        elif (following := self._here()) is not None and following != at:
            self._pane.scroll_to_question(following)

    def _is_unread(self) -> bool:
        """True if a part of what is asked was never shown: nobody answers what they did not see."""
        entry, unread = self.current, self._pane.unread
        if entry is None or unread is None or self._answering.is_busy(entry):
            return False
        self._answering.say(entry.key, "Not all of it was shown yet: f shows it.", bad=True)
        self._pane.scroll_to_question(unread)
        return True

    async def on_choice_pressed(self, message: Choice.Pressed) -> None:
        """Mark an option; a click on one that is enough sends it, after a while to think."""
        entry = self.current
        if entry is None or self.ignores_keys or self._answering.is_busy(entry):
            return
        must_agree = self._answering.must_agree(entry, message.question, message.number)
        self._mark(message.question, message.number)
        if message.clicked and is_plain(entry) and not must_agree:
            self._submit(at_once=False)
        await self._refresh()

    async def on_button_pressed(self, message: Button.Pressed) -> None:
        """Do what the button says."""
        if self.ignores_keys:
            return
        match message.button.id:
            case "do-send":
                self._submit(at_once=False)
            case "do-snooze":
                await self._ask_nap()
            case "do-decline":
                await self._ask_reason()

    def _enter(self) -> None:
        """Send what is marked; on an option that is enough, that one."""
        entry = self.current
        focused = self.focused
        if entry is not None and isinstance(focused, Choice) and is_plain(entry):
            marked = self._answering.parts(entry)[focused.question].options
            if focused.numbers.isdisjoint(marked):
                place = (focused.question, focused.number)
                must_agree = self._answering.must_agree(entry, *place)
                self._mark(*place)
                if must_agree:
                    return
        self._submit(at_once=True)

    def _submit(self, *, at_once: bool) -> None:
        entry = self.current
        if entry is not None and not self._is_unread():
            self._collect()
            self._answering.submit(entry, self._errands, at_once=at_once)
            if self._answering.is_busy(entry):
                self.set_focus(self._pane)
            elif (missing := self._answering.missing(entry)) is not None:
                self._go_to(missing)

    def _go_to(self, at: int) -> None:
        """Let keys go to that question; where there is nothing to mark, typing does."""
        asked = self._pane.asked[at]
        self._pane.scroll_to_question(at)
        self.set_focus(self._pane if asked.query(Choice) else asked.query_one(OwnWords))

    def _write(self) -> None:
        entry = self.current
        if entry is None or self._answering.is_busy(entry):
            return
        fields = {field.question: field for field in self._pane.query(OwnWords)}
        here = self._here() or 0
        # Where only the options count, the next field that there is.
        at = min((at for at in fields if at >= here), default=max(fields, default=None))
        if at is None:
            self._answering.say(entry.key, "Only the options count here: choose one.", bad=True)
        else:
            self.set_focus(fields[at])

    async def _ask_reason(self) -> None:
        entry = self.current
        if entry is None or self._answering.is_busy(entry):
            return
        key = entry.key
        if entry.view.needs_word:
            self._answering.say(key, "Choose Deny: what you write beside it is told.", bad=True)
            return

        def decline(reason: str | None) -> None:
            if reason is not None:
                self._answering.decline(key, reason, self._errands)

        dialog = AskReason(entry.view, self._clock)
        await self.app.push_screen(dialog, decline)
        dialog.set_focus(dialog.query_one(Input))

    async def _ask_nap(self) -> None:
        entry = self.current
        if entry is None or self._answering.is_busy(entry):
            return
        key = entry.key
        if key in self._kept.asleep():
            self._kept.rouse(key)
            return
        choices = naps(entry.view, self._clock.now())
        if not choices:
            self._answering.say(key, "It ends too soon to be hidden.", bad=True)
            return

        def hide(nap: Nap | None) -> None:
            if nap is not None:
                self._kept.snooze(key, nap.until)
                self._step(1)
                if self.question_list.selected == key:
                    self.question_list.selected = None
                self.call_later(self._refresh)

        await self.app.push_screen(AskNap(entry.view, choices), hide)

    def _take_back(self) -> None:
        entry = self.current
        if entry is not None:
            self._collect()
            self._answering.take_back(entry)

    def _copy(self) -> None:
        entry = self.current
        text = self._kept.written(entry.key) if entry else ""
        if entry and text:
            self.app.copy_to_clipboard(text)
            say = self._answering.say if entry.view.ending is None else self._answering.say_late
            say(entry.key, "Copied, where the terminal lets us.")

    def _discard(self) -> None:
        entry = self.current
        if entry is not None and entry.view.ending is not None:
            self._kept.forget(entry.key)
            self._built = ()

    def _start_search(self) -> None:
        field = self.query_one("#search", Input)
        field.add_class("used")
        self.set_focus(field)

    async def on_input_changed(self, event: Input.Changed) -> None:
        """List what fits the search."""
        self._search = event.value.strip()
        await self._refresh()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Leave the search field; what fits stays listed."""
        self._leave()

    def _leave(self) -> None:
        """Leave a field. Nothing else: Escape answers and declines nothing."""
        field = self.query_one("#search", Input)
        if not field.value:
            field.remove_class("used")
        self.set_focus(self._pane)


class Told(Message):
    """The host said something."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class InboxApp(App[None]):
    """The application: the feed, and the screen that shows it."""

    CSS_PATH = "inbox.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "pynchy"
    BINDINGS = [("ctrl+c", "quit", "Leave")]  # noqa: RUF012 - as textual has it
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - the same

    def __init__(self, data: DataFolder, by: str, clock: Clock | None = None) -> None:
        super().__init__()
        self._announced = False
        self.feed = Feed(data, self._tell)
        self.inbox = InboxScreen(data, by, clock or Clock(), self.feed)

    def _tell(self, news: News) -> None:
        self.post_message(Told(news))

    async def on_mount(self) -> None:
        """Show the list, and begin to listen."""
        await self.push_screen(self.inbox)
        self.feed.__enter__()

    def on_unmount(self) -> None:
        """Write down what was begun, and stop listening."""
        self.inbox.save()
        self.feed.__exit__()

    async def on_event(self, event: Event) -> None:
        """Let every key be done with before the next: what follows `w` belongs to the field."""
        # What was forwarded to a field bubbles back here; it has been looked at.
        if isinstance(event, KeyPress) and not event.is_forwarded:
            if self._is_not_meant(event):
                return
            if self.screen is self.inbox and await self._did(event):
                return
        await super().on_event(event)

    async def _did(self, event: KeyPress) -> bool:
        if event.key == "f1":
            await self.inbox.show_help()
            return True
        return await self.inbox.pressed(event)

    def _is_not_meant(self, event: KeyPress) -> bool:
        """True for a key that does nothing by itself, where single keys are off."""
        has_commands = isinstance(self.screen, (InboxScreen, SideScreen))
        is_typing = isinstance(self.focused, (Input, TextArea))
        if not has_commands or is_typing or self.inbox.single_keys:
            return False
        was_announced, self._announced = self._announced, event.key == keys.BEFORE_KEYS
        return self._announced or (keys.is_single(event) and not was_announced)

    async def on_told(self, message: Told) -> None:
        """Pass the news on."""
        await self.inbox.take(message.news)
        # News may come while the application is being closed.
        if self.screen_stack and isinstance(self.screen, SideScreen):
            self.screen.look()

    async def action_quit(self) -> None:
        """Leave as q does."""
        self.inbox.leave()

    def on_app_focus(self, _event: AppFocus) -> None:
        """Whoever has just come back may type something that was meant for another window."""
        self.inbox.ignore_keys_briefly()
