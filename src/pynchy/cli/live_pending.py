"""`pynchy pending --watch`: a live table that outlives the host's restarts.

Events say when to ask the host anew; a slow look behind them means that a lost one costs seconds.
"""

from __future__ import annotations

import queue
import time
from datetime import UTC, datetime

from rich.console import Group
from rich.live import Live
from rich.text import Text

from pynchy.cli.event_follower import EventFollower
from pynchy.cli.output import is_terminal, make_console
from pynchy.cli.questions import print_pending
from pynchy.cli.tables import pending_screen
from pynchy.cli.views import read_question
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

TICK_SECONDS = 1.0
_POLL_SECONDS = 5.0


class LivePending:
    """What the host last said, and whether it is there."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._changes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._looked = float("-inf")
        self.views: list[Json] = []
        self.is_up = True

    def following(self) -> EventFollower:
        """Return a follower that makes this watch look whenever something happened."""
        return EventFollower(
            self._data,
            on_message=lambda _: self._changes.put(None),
            on_link=lambda _: self._changes.put(None),
        )

    def wait(self, seconds: float) -> None:
        """Return after a change or so many seconds, having looked where that is due."""
        changed = self._changed(seconds)
        if changed or time.monotonic() - self._looked >= _POLL_SECONDS:
            self.look()

    def look(self) -> None:
        """Ask the host what waits."""
        self._looked = time.monotonic()
        try:
            self.views = HostClient.of(self._data).pending()
            self.is_up = True
        except HostError:
            self.is_up = False

    def screen(self, now: datetime) -> Group:
        """Return what to show."""
        parts = pending_screen([read_question(view) for view in self.views], now)
        if not self.is_up:
            gone = Text("host gone, waiting for it to come back (pynchy serve)", "bold yellow")
            return Group(gone, *parts) if self.views else Group(gone)
        return Group(*parts)

    def _changed(self, seconds: float) -> bool:
        try:
            self._changes.get(timeout=seconds)
        except queue.Empty:
            return False
        while not self._changes.empty():
            self._changes.get()
        return True


def watch_pending(data: DataFolder, *, as_json: bool) -> None:
    """Show what waits until Ctrl-C. Raise NoHost if there is no host to begin with."""
    data.host()
    watch = LivePending(data)
    try:
        with watch.following():
            watch.look()
            if is_terminal() and not as_json:
                _show_live(watch)
            else:
                _print_changes(watch, as_json=as_json)
    except KeyboardInterrupt:
        return


def _show_live(watch: LivePending) -> None:
    with Live(
        watch.screen(datetime.now(UTC)), console=make_console(), auto_refresh=False, screen=False
    ) as live:
        while True:
            watch.wait(TICK_SECONDS)
            live.update(watch.screen(datetime.now(UTC)), refresh=True)


def _print_changes(watch: LivePending, *, as_json: bool) -> None:
    shown: list[Json] | None = None
    while True:
        if watch.is_up and watch.views != shown:
            shown = watch.views
            print_pending(shown, as_json=as_json)
        watch.wait(_POLL_SECONDS)
