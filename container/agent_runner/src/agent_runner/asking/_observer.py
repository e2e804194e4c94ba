"""watchdog, kept apart: importing it costs more than everything else here together.

Whatever gives a file its name (rename, link, a plain write) calls `on_name` with that name, in a
thread of watchdog's.
"""

import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    FileClosedEvent,
    FileCreatedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver


class _Names(FileSystemEventHandler):
    def __init__(self, on_name: Callable[[str], None]) -> None:
        self._on_name = on_name

    def dispatch(self, event: FileSystemEvent) -> None:
        path = event.dest_path or event.src_path
        self._on_name(os.fsdecode(path).rpartition(os.sep)[2])


def start_observer(folder: Path, on_name: Callable[[str], None]) -> BaseObserver:
    """Watch the folder. Raise OSError where no inotify instance or watch can be had."""
    observer = Observer()
    observer.schedule(
        _Names(on_name),
        str(folder),
        event_filter=[FileMovedEvent, FileCreatedEvent, FileClosedEvent],
    )
    observer.start()
    return observer
