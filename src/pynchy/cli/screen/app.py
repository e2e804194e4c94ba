"""The inbox as a full-screen application: listens to the host, and hands every key on in order."""

from __future__ import annotations

from textual.app import App
from textual.events import AppFocus, Event
from textual.events import Key as KeyPress
from textual.message import Message
from textual.widgets import Input, TextArea

from pynchy.cli.screen import keymap
from pynchy.cli.screen.feed import Feed, News
from pynchy.cli.screen.inbox import InboxScreen
from pynchy.cli.screen.keymap import Clock
from pynchy.cli.screen.side_screens import SideScreen
from pynchy.data_dir import DataFolder


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
        was_announced, self._announced = self._announced, event.key == keymap.BEFORE_KEYS
        return self._announced or (keymap.is_single(event) and not was_announced)

    async def on_told(self, message: Told) -> None:
        """Pass the news on."""
        await self.inbox.take(message.news)
        if isinstance(self.screen, SideScreen):
            self.screen.look()

    async def action_quit(self) -> None:
        """Leave as q does."""
        self.inbox.leave()

    def on_app_focus(self, _event: AppFocus) -> None:
        """Whoever has just come back may type something that was meant for another window."""
        self.inbox.startle()
