"""A listing that stays and shows every change, over restarts of the host. Ctrl-C ends it."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from pynchy.cli.event_follower import EventFollower
from pynchy.cli.output import is_terminal, make_console
from pynchy.client import HostClient, Json
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

_TICK_SECONDS = 1.0
_GONE = "host gone, waiting for it to come back (pynchy serve)"


class LiveList:
    """What the host last said, and whether it is there: outlives the host's restarts.

    Events say when to ask the host again; a look every `poll_seconds` finds what has no event.
    """

    def __init__(
        self, data: DataFolder, fetch: Callable[[HostClient], list[Json]], poll_seconds: float
    ) -> None:
        self._data = data
        self._fetch = fetch
        self._poll_seconds = poll_seconds
        self._changes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._looked = float("-inf")
        self.views: list[Json] = []
        self.is_up = True

    def following(self) -> EventFollower:
        """Return a follower that makes this list look whenever something happened."""
        return EventFollower(
            self._data,
            on_message=lambda _: self._changes.put(None),
            on_link=lambda _: self._changes.put(None),
        )

    def wait(self, seconds: float) -> None:
        """Return after a change or so many seconds, having looked where that is due."""
        left = self._poll_seconds - (time.monotonic() - self._looked)
        changed = self._changed(max(0.0, min(seconds, left)))
        if changed or time.monotonic() - self._looked >= self._poll_seconds:
            self.look()

    def look(self) -> None:
        """Ask the host."""
        self._looked = time.monotonic()
        try:
            self.views = self._fetch(HostClient.of(self._data))
            self.is_up = True
        except HostError:
            self.is_up = False

    def _changed(self, seconds: float) -> bool:
        try:
            self._changes.get(timeout=seconds)
        except queue.Empty:
            return False
        while not self._changes.empty():
            self._changes.get()
        return True


Draw = Callable[[list[Json], datetime], Sequence[RenderableType]]


def watch_list(
    watch: LiveList,
    draw: Draw | None,
    print_once: Callable[[list[Json]], None],
    told: Callable[[list[Json]], object] = lambda views: views,
) -> None:
    """Show the list until Ctrl-C: drawn on a terminal, else printed after every change.

    Without `draw` it is printed on a terminal, too. `told` returns what counts as a change.
    """
    try:
        with watch.following():
            watch.look()
            if draw is not None and is_terminal():
                _show_live(watch, draw)
            else:
                _print_changes(watch, print_once, told)
    except KeyboardInterrupt:
        return


def _show_live(watch: LiveList, draw: Draw) -> None:
    from rich.live import Live  # noqa: PLC0415 - slow to import, and rarely wanted

    def screen() -> Group:
        drawn = draw(watch.views, datetime.now(UTC))
        if watch.is_up:
            return Group(*drawn)
        return Group(Text(_GONE, "bold yellow"), *(drawn if watch.views else ()))

    with Live(screen(), console=make_console(), auto_refresh=False, screen=False) as live:
        while True:
            watch.wait(_TICK_SECONDS)
            live.update(screen(), refresh=True)


def _print_changes(
    watch: LiveList,
    print_once: Callable[[list[Json]], None],
    told: Callable[[list[Json]], object],
) -> None:
    shown: object = None
    while True:
        if watch.is_up and (now := told(watch.views)) != shown:
            shown = now
            print_once(watch.views)
        watch.wait(float("inf"))
