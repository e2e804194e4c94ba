"""Follow the host's events across its restarts.

Nothing is missed: each connection asks for what came after the last event seen, and the first one
begins where the event log on disk ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Self

from pynchy.cli.events import last_sequence
from pynchy.client import EventStream, HostClient, StreamMessage
from pynchy.data_dir import DataFolder
from pynchy.errors import HostError

RECONNECT_SECONDS = 0.5


class HostLink(StrEnum):
    """Whether the host is there."""

    UP = "up"
    GONE = "gone"


class EventFollower:
    """Reads the live stream in a thread of its own, until it is closed.

    `on_message` is told every event, `on_link` whether the host is there.
    """

    def __init__(
        self,
        data: DataFolder,
        on_message: Callable[[StreamMessage], None],
        on_link: Callable[[HostLink], None],
        after: int | None = None,
    ) -> None:
        self._data = data
        self._on_message = on_message
        self._on_link = on_link
        self._after = last_sequence(data.audit) if after is None else after
        self._stream: EventStream | None = None
        self._began = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._stream is not None:
            self._stream.stop()
        self._thread.join(timeout=5)

    @property
    def heard_at(self) -> float:
        """When the host last said something, be it only a comment, by the monotonic clock."""
        return self._stream.heard_at if self._stream is not None else self._began

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._read()
            except HostError:
                self._on_link(HostLink.GONE)
            # Nothing tells of a host that comes back, so its file is looked at.
            self._closed.wait(RECONNECT_SECONDS)

    def _read(self) -> None:
        self._stream = HostClient.of(self._data).events(self._after)
        self._on_link(HostLink.UP)
        try:
            if not self._closed.is_set():
                for message in self._stream:
                    self._after = max(self._after, message.sequence)
                    self._on_message(message)
        finally:
            self._stream.close()
