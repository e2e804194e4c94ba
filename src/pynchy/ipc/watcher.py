"""Notice what appears in every group's `tasks/`, and which groups there are.

Notifications are hints: a watch is armed before the first look, and every folder is looked at
again about once a second, so that a lost notification costs a moment and never a request. A group
whose hints come in a flood loses its watch for a while and is only looked at.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from watchdog.events import FileClosedEvent, FileMovedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from pynchy.model import GROUP_PATTERN, GroupName

log = logging.getLogger(__name__)

RESCAN_SECONDS = 1.0
FLOOD_PER_RESCAN = 400
FLOOD_PAUSE_RESCANS = 10
_MOST_IGNORED = 1_000
_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")


class Listener(Protocol):
    """Who is told what the watcher sees."""

    def noticed(self, group: GroupName, name: str) -> None:
        """A whole file has appeared in the group's tasks."""

    def look(self, group: GroupName) -> None:
        """The group's folder should be looked at."""

    async def joined(self, group: GroupName) -> None:
        """A group has appeared; its folders must exist when this returns."""


@dataclass(slots=True)
class _Watched:
    inode: tuple[int, int]
    watch: ObservedWatch | None
    hints: int = 0
    pause: int = 0


class Watcher:
    """One observer for all groups, and the slow look behind it."""

    def __init__(self, ipc: Path, listener: Listener) -> None:
        self._ipc = ipc
        self._listener = listener
        self._observer: BaseObserver | None = None
        self._groups: dict[GroupName, _Watched] = {}
        self._ignored: set[str] = set()
        self._poked = asyncio.Event()
        self.problem: str | None = None
        self.troubled: dict[GroupName, str] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                self._poked.clear()
                await self.look_around()
                try:
                    async with asyncio.timeout(RESCAN_SECONDS):
                        await self._poked.wait()
                except TimeoutError:
                    continue
        finally:
            self._stop_observer()

    async def look_around(self) -> None:
        """Take up new groups, mend watches, and have every group looked at."""
        try:
            self._keep_observer()
            groups = await asyncio.to_thread(self._list_groups)
        except OSError as exc:
            self._report(f"the mailboxes cannot be looked at ({exc.strerror})")
            return
        for group in groups:
            await self._look_at(group)

    async def _look_at(self, group: GroupName) -> None:
        """Look at one group; what is wrong with it is no reason to leave out the others."""
        try:
            if group not in self._groups:
                await self._listener.joined(group)
            self._keep_watch(group)
            self._listener.look(group)
            self.troubled.pop(group, None)
        except OSError as exc:
            if group not in self.troubled:
                log.warning("a group is in trouble", extra={"group": group, "why": exc.strerror})
            self.troubled[group] = f"group {group}: its mailbox cannot be used ({exc.strerror})"

    def poke(self) -> None:
        """Look around now rather than in a second."""
        self._poked.set()

    def _list_groups(self) -> list[GroupName]:
        try:
            with os.scandir(self._ipc) as entries:
                found = [e for e in entries if not e.name.startswith(".")]
        except FileNotFoundError:
            self._ipc.mkdir(mode=0o700, parents=True, exist_ok=True)
            return []
        good = [e for e in found if _GROUP.match(e.name) and e.is_dir(follow_symlinks=False)]
        for entry in found:
            if entry not in good:
                self._ignore(entry.name)
        return [GroupName(e.name) for e in good]

    def _ignore(self, name: str) -> None:
        if name not in self._ignored and len(self._ignored) < _MOST_IGNORED:
            self._ignored.add(name)
            log.warning("not a group: its name or kind is not allowed", extra={"entry": name})

    def _keep_observer(self) -> None:
        if self._observer is not None and self._observer.is_alive():
            return
        self._stop_observer()
        try:
            observer = Observer()
            observer.start()
        except OSError as exc:
            self._report(f"no file notifications ({exc.strerror}); looking once a second instead")
            return
        self._observer = observer
        self._report(None)
        observer.schedule(
            _Groups(self, asyncio.get_running_loop()), str(self._ipc), recursive=False
        )

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        for watched in self._groups.values():
            watched.watch = None
        if observer is not None:
            observer.stop()
            observer.join(timeout=5)

    def _report(self, problem: str | None) -> None:
        if problem != self.problem:
            log.warning("file notifications changed", extra={"problem": problem})
        self.problem = problem

    def _keep_watch(self, group: GroupName) -> None:
        """Arm the group's watch, anew where the folder was replaced; disarm it in a flood."""
        watched = self._groups.setdefault(group, _Watched((0, 0), None))
        flooded, watched.hints = watched.hints > FLOOD_PER_RESCAN, 0
        if flooded:
            log.warning("too many files at once; watching paused", extra={"group": group})
            watched.pause = FLOOD_PAUSE_RESCANS
        elif watched.pause:
            watched.pause -= 1
        inode = _inode(self._ipc / group / "tasks")
        if watched.watch and (inode != watched.inode or watched.pause):
            self._disarm(watched)
        if inode and not watched.watch and not watched.pause:
            watched.inode = inode
            watched.watch = self._arm(group)

    def _arm(self, group: GroupName) -> ObservedWatch | None:
        if self._observer is None:
            return None
        handler = _Tasks(self, group, asyncio.get_running_loop())
        path = str(self._ipc / group / "tasks")
        try:
            return self._observer.schedule(
                handler, path, recursive=False, event_filter=[FileMovedEvent, FileClosedEvent]
            )
        except OSError as exc:
            self._report(f"a group cannot be watched ({exc.strerror}); looking once a second")
            return None

    def _disarm(self, watched: _Watched) -> None:
        if watched.watch is not None and self._observer is not None:
            self._observer.unschedule(watched.watch)
        watched.watch = None

    def hinted(self, group: GroupName, name: str) -> None:
        """Pass a hint on, and count it."""
        watched = self._groups.get(group)
        if watched is None:
            return
        watched.hints += 1
        if watched.hints == FLOOD_PER_RESCAN + 1:
            self.poke()
        if watched.hints <= FLOOD_PER_RESCAN:
            self._listener.noticed(group, name)


class _Tasks(FileSystemEventHandler):
    """Runs on watchdog's thread: hands a name over to the loop, and nothing else."""

    def __init__(self, watcher: Watcher, group: GroupName, loop: asyncio.AbstractEventLoop) -> None:
        self._pass_on: Callable[[str], None] = lambda name: watcher.hinted(group, name)
        self._loop = loop

    def on_any_event(self, event: FileSystemEvent) -> None:
        path = event.dest_path if isinstance(event, FileMovedEvent) else event.src_path
        name = Path(os.fsdecode(path)).name
        if name and not name.startswith(".") and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on, name)


class _Groups(FileSystemEventHandler):
    """Runs on watchdog's thread: something changed beside the groups."""

    def __init__(self, watcher: Watcher, loop: asyncio.AbstractEventLoop) -> None:
        self._watcher = watcher
        self._loop = loop

    def on_created(self, event: FileSystemEvent) -> None:
        if event.is_directory and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._watcher.poke)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        info = path.lstat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino)
