"""Stay with a session: print what its runner prints and what happens, until it has ended.

The output goes to stdout and all else to stderr; as JSON, every piece is one line on stdout. A host
that goes away and comes back costs nothing but the wait.
"""

from __future__ import annotations

import queue
import sys
import time

import click

from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.events import describe_event
from pynchy.cli.text import clean, duration, printed, to_json
from pynchy.client import HostClient, Json, StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError
from pynchy.exits import EXIT_FAILED, EXIT_INTERRUPTED

_POLL_SECONDS = 0.5
_WIPE = "\r\x1b[2K"


class FollowedSession:
    """One stay with one session."""

    def __init__(self, data: DataFolder, group: str, session_id: str, *, as_json: bool) -> None:
        self._data = data
        self._group = group
        self._session_id = session_id
        self._as_json = as_json
        self._news: queue.SimpleQueue[Json | HostLink] = queue.SimpleQueue()
        self._link = HostLink.UP
        self._read = 0
        self._state = "working"
        self._began = time.monotonic()
        self._shows_progress = sys.stderr.isatty() and not as_json

    def stay(self) -> int:
        """Return the exit code, when the session has ended or the person goes."""
        try:
            with EventFollower(self._data, self._hear, self._news.put):
                while not self._is_over():
                    self._tick()
                    self._take_news()
                self._take_news(wait=False)
        except KeyboardInterrupt:
            self._say(
                f"Detached; the session goes on. See it with: pynchy sessions; "
                f"end it with: pynchy stop {self._session_id}"
            )
            return EXIT_INTERRUPTED
        return self._farewell()

    def _hear(self, message: StreamMessage) -> None:
        """Runs in the follower's thread."""
        if self._is_ours(message.data):
            self._news.put(message.data)

    def _is_ours(self, view: Json) -> bool:
        return (view.get("group"), view.get("session_id")) == (self._group, self._session_id)

    def _is_over(self) -> bool:
        """Print what the runner has printed since, and say whether that was the last of it."""
        try:
            piece = HostClient.of(self._data).output(
                f"{self._group}/{self._session_id}", self._read
            )
        except HostError:
            return False  # the follower tells when it is back
        text = str(piece.get("text", ""))
        self._read, self._state = int(piece["next"]), str(piece["state"])
        if text:
            self._print(text)
        return self._state == "ended" and not text

    def _take_news(self, *, wait: bool = True) -> None:
        """Print what has happened; if nothing has, wait for a moment."""
        try:
            self._tell(self._news.get(timeout=_POLL_SECONDS if wait else 0.0))
            while True:
                self._tell(self._news.get_nowait())
        except queue.Empty:
            return

    def _tell(self, item: Json | HostLink) -> None:
        if isinstance(item, dict):
            if self._as_json:
                click.echo(to_json(item))
            else:
                self._say(describe_event(item))
        elif item is not self._link:
            self._link = item
            gone = "The host is gone; the session goes on. Waiting for the host."
            self._say(gone if item is HostLink.GONE else "The host is back.")

    def _print(self, text: str) -> None:
        if self._as_json:
            click.echo(to_json({"type": "output", "session_id": self._session_id, "text": text}))
            return
        self._wipe()
        click.echo(printed(text) if sys.stdout.isatty() else text, nl=False)

    def _farewell(self) -> int:
        sessions = HostClient.of(self._data).sessions()
        view = next((s for s in sessions if self._is_ours(s)), {})
        if not self._as_json:
            self._say(f"Ended: {clean(str(view.get('detail') or 'no more is known'))}")
        return EXIT_FAILED if view.get("failed") else 0

    def _tick(self) -> None:
        if self._shows_progress:
            waits = "waiting on you" if self._state == "waiting" else self._state
            lasted = duration(time.monotonic() - self._began)
            click.echo(f"{_WIPE}{waits} ({lasted}; Ctrl-C detaches)", nl=False, err=True)

    def _say(self, text: str) -> None:
        self._wipe()
        click.echo(text, err=True)

    def _wipe(self) -> None:
        if self._shows_progress:
            click.echo(_WIPE, nl=False, err=True)
