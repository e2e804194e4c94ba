"""Wait for a name to appear in `responses/`, with one observer however many calls wait.

A notification is only a reason to look: what is on disk decides, also at the deadline, and a slow
re-scan finds what no notification told. Where no observer can be had, look often instead.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

RESCAN_SECONDS = 1.0
POLL_SECONDS = 0.02

_T = TypeVar("_T")


class Observing(Protocol):
    """What is needed of a running observer."""

    def stop(self) -> None:
        """End it."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""


StartObserver = Callable[[Path, Callable[[str], None]], Observing]


def start_watchdog(folder: Path, on_name: Callable[[str], None]) -> Observing:
    """Call `on_name`, in a thread of watchdog's, with each name that a file in the folder gets.

    Raise OSError where no inotify instance or watch can be had.
    """
    # Imported here: it costs more than all the rest together, and tools/list must not pay for it.
    from watchdog import events  # noqa: PLC0415
    from watchdog.observers import Observer  # noqa: PLC0415

    class Names(events.FileSystemEventHandler):
        def dispatch(self, event: events.FileSystemEvent) -> None:
            path = event.dest_path or event.src_path
            on_name(os.fsdecode(path).rpartition(os.sep)[2])

    observer = Observer()
    # A rename, a link, a plain write: whatever gives a file its name.
    named = [events.FileMovedEvent, events.FileCreatedEvent, events.FileClosedEvent]
    observer.schedule(Names(), str(folder), event_filter=named)
    observer.start()
    return observer


class Waiter:
    """Wakes whoever waits for a file's name in one folder."""

    def __init__(self, folder: Path, *, start_observer: StartObserver = start_watchdog) -> None:
        self._folder = folder
        self._start_observer = start_observer
        self._observer: Observing | None = None
        self._expected: dict[str, set[asyncio.Event]] = {}

    def arm(self) -> Exception | None:
        """Start the observer unless it runs. Return why not, where it cannot."""
        if self._observer is not None:
            return None
        loop = asyncio.get_running_loop()

        def cross_threads(name: str) -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(self._wake, name)

        try:
            self._observer = self._start_observer(self._folder, cross_threads)
        except (OSError, RuntimeError) as exc:  # no instance of inotify, or no thread, to be had
            return exc
        return None

    async def wait_for(
        self, name: str, look: Callable[[], _T | None], seconds: float, other: str = ""
    ) -> _T | None:
        """Return what `look` finds, as soon as it finds something; None when the time is over.

        It looks when a file of either name appears.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        with self._expecting(name, other or name) as appeared:
            while True:
                appeared.clear()
                # Look first: what is there at the deadline counts.
                left = deadline - clock()
                if (found := look()) is not None or left <= 0:
                    return found
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, self._pause_seconds)):
                        await appeared.wait()

    def stop(self) -> None:
        """End the observer and its threads."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(RESCAN_SECONDS)

    @property
    def _pause_seconds(self) -> float:
        return POLL_SECONDS if self._observer is None else RESCAN_SECONDS

    @contextmanager
    def _expecting(self, *names: str) -> Iterator[asyncio.Event]:
        appeared = asyncio.Event()
        for name in names:
            self._expected.setdefault(name, set()).add(appeared)
        try:
            yield appeared
        finally:
            for name in set(names):
                self._expected[name].discard(appeared)
                if not self._expected[name]:
                    del self._expected[name]

    def _wake(self, name: str) -> None:
        for appeared in self._expected.get(name, ()):
            appeared.set()


async def finish_in_thread(job: Callable[[], None]) -> None:
    """Run a write off the loop; a caller that is cancelled still waits until it is done."""
    running = asyncio.ensure_future(asyncio.to_thread(job))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
