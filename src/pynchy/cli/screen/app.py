"""The inbox as a full-screen application: listens to the host, and hands every key on in order."""

from __future__ import annotations

from textual.app import App
from textual.events import AppFocus, Event
from textual.events import Key as KeyPress
from textual.message import Message

from pynchy.cli.screen.aside import Aside
from pynchy.cli.screen.clock import Clock
from pynchy.cli.screen.feed import Feed, News
from pynchy.cli.screen.inbox import InboxScreen
from pynchy.datafolder import DataFolder


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
        is_done = False
        if isinstance(event, KeyPress) and self.screen is self.inbox:
            is_done = await self.inbox.pressed(event)
        if not is_done:
            await super().on_event(event)

    async def on_told(self, message: Told) -> None:
        """Pass the news on."""
        await self.inbox.take(message.news)
        if isinstance(self.screen, Aside):
            self.screen.look()

    async def action_quit(self) -> None:
        """Leave as q does."""
        self.inbox.leave()

    def on_app_focus(self, _event: AppFocus) -> None:
        """Whoever has just come back may type something that was meant for another window."""
        self.inbox.startle()
