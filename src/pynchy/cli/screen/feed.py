"""What the host says, live: all of it once for each connection, then every question that changed.

Threads of its own do the talking, so that the screen never waits for the host.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pynchy.cli.event_follower import EventFollower, HostLink
from pynchy.cli.screen.question_list import Key
from pynchy.cli.views import HostQuestion, read_question
from pynchy.client import HostClient, Json, StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError, PynchyError, UnknownQuestion

# A lost event costs at most so long.
POLL_SECONDS = 60.0
RETRY_SECONDS = 1.0
_AT_ONCE = 40


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that the host has, and for how long a choice can be taken back, by urgency."""

    views: tuple[HostQuestion, ...]
    undo_seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Changed:
    """One question as it is now."""

    view: HostQuestion


@dataclass(frozen=True, slots=True)
class Vanished:
    """A question that the host does not know."""

    key: Key


@dataclass(frozen=True, slots=True)
class Linked:
    """Whether the host is there."""

    link: HostLink


News = Listed | Changed | Vanished | Linked


class Feed:
    """Tells the news to whoever made it; `tell` is called by threads."""

    def __init__(self, data: DataFolder, tell: Callable[[News], None]) -> None:
        self._data = data
        self._tell = tell
        # None stands for everything.
        self._wanted: queue.SimpleQueue[Key | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._follower = EventFollower(data, self._happened, self._linked)

    def __enter__(self) -> Self:
        self._wanted.put(None)
        self._thread.start()
        self._follower.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._wanted.put(None)
        self._follower.__exit__()
        # It may wait for a host that hangs; nobody should wait for it.
        self._thread.join(timeout=0.5)

    @property
    def silent_seconds(self) -> float:
        """How long ago the host was last heard."""
        return time.monotonic() - self._follower.heard_at

    def want(self, *keys: Key) -> None:
        """Ask the host about these questions."""
        for key in keys:
            self._wanted.put(key)

    def _happened(self, message: StreamMessage) -> None:
        group, request_id = message.data.get("group"), message.data.get("id")
        if isinstance(group, str) and isinstance(request_id, str):
            self._wanted.put((group, request_id))

    def _linked(self, link: HostLink) -> None:
        if link is HostLink.UP:
            self._wanted.put(None)
        self._tell(Linked(link))

    def _run(self) -> None:
        while not self._closed.is_set():
            wanted = self._next()
            if self._closed.is_set():
                return
            try:
                self._look(wanted)
            except HostError:
                # The follower tells when the host is back; a host that is only slow never left.
                self._closed.wait(RETRY_SECONDS)
                self._wanted.put(None)

    def _next(self) -> set[Key] | None:
        """Wait for something to ask about; None is everything."""
        try:
            found = {self._wanted.get(timeout=POLL_SECONDS)}
        except queue.Empty:
            return None
        while not self._wanted.empty():
            found.add(self._wanted.get())
        keys = {key for key in found if key is not None}
        return None if None in found or len(keys) > _AT_ONCE else keys

    def _look(self, wanted: set[Key] | None) -> None:
        client = HostClient.of(self._data)
        if wanted is None:
            views = [view for raw in client.pending() if (view := understand(raw))]
            self._tell(Listed(tuple(views), _undo_seconds(client)))
            return
        for key in wanted:
            try:
                view = understand(client.question_of(*key))
            except UnknownQuestion:
                self._tell(Vanished(key))
            except HostError:
                raise
            except PynchyError:
                continue
            else:
                if view is not None:
                    self._tell(Changed(view))


def understand(raw: Json) -> HostQuestion | None:
    """Return the question, or None where a host of another version means something else by it."""
    try:
        return read_question(raw)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _undo_seconds(client: HostClient) -> dict[str, float]:
    try:
        told = client.inbox_settings().get("undo_seconds", {})
        return {str(urgency): float(seconds) for urgency, seconds in told.items()}
    except (PynchyError, TypeError, ValueError, AttributeError):
        return {}
