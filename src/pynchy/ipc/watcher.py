"""Notice what appears in every group's `tasks/`, and which groups there are.

Notifications are hints: a watch is armed before the first look, and every folder is looked at
again about once a second, so that a lost notification costs a moment and never a request; where
there are thousands, less often, so that looking takes a small share of the time. A group whose
hints come in a flood loses its watch for a while and is only looked at.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from pynchy.ipc.mailbox import is_removed
from pynchy.model import GROUP_PATTERN, GroupName

log = logging.getLogger(__name__)

RESCAN_SECONDS = 1.0
# A look that takes long is followed by a rest of so many times its length, up to a limit.
_REST_SHARE = 19.0
_REST_MAX_SECONDS = 10.0
FLOOD_PER_RESCAN = 400
FLOOD_PAUSE_RESCANS = 10
_MAX_IGNORED = 1_000
# watchdog has a thread for each watch, which wakes up this often for nothing.
_WAKE_SECONDS = 60.0
_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")


class WatchListener(Protocol):
    """Who is told what the watcher sees."""

    def noticed(self, group: GroupName, name: str) -> None:
        """A whole file has appeared in the group's tasks."""

    def look(self, group: GroupName) -> None:
        """The group's folder should be looked at."""

    def is_whole(self, group: GroupName) -> bool:
        """Say whether the group has its folders."""

    async def joined(self, group: GroupName) -> None:
        """A group has appeared or lost folders; they must exist when this returns."""


@dataclass(slots=True)
class _Watched:
    inode: tuple[int, int]
    watch: ObservedWatch | None
    hints: int = 0
    pause: int = 0


class Watcher:
    """One observer for all groups, and the slow look behind it."""

    def __init__(self, ipc: Path, listener: WatchListener) -> None:
        self._ipc = ipc
        self._listener = listener
        self._observer: BaseObserver | None = None
        self._groups: dict[GroupName, _Watched] = {}
        self._ignored: set[str] = set()
        self._poked = asyncio.Event()
        self._home = _Watched((0, 0), None)
        self._dead: set[ObservedWatch] = set()
        self._trouble: str | None = None
        self.problem: str | None = None
        self.troubled: dict[GroupName, str] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                self._poked.clear()
                began = time.monotonic()
                await self.look_around()
                rest = min((time.monotonic() - began) * _REST_SHARE, _REST_MAX_SECONDS)
                try:
                    async with asyncio.timeout(max(RESCAN_SECONDS, rest)):
                        await self._poked.wait()
                except TimeoutError:
                    continue
        finally:
            self._stop_observer()

    async def look_around(self) -> None:
        """Take up new groups, repair watches, and have every group looked at."""
        self._trouble = None
        try:
            self._keep_observer()
            groups = await asyncio.to_thread(self._list_groups)
            damaged = await asyncio.to_thread(self._damaged, groups)
        except OSError as exc:
            self._report(f"the mailboxes cannot be looked at ({exc.strerror})")
            return
        self._forget_missing(groups)
        for group in groups:
            await self._look_at(group, damaged=group in damaged)
        self._report(self._trouble)

    def _forget_missing(self, groups: list[GroupName]) -> None:
        """Forget groups that are gone: one that comes back is a new one, and has to be greeted."""
        for group in self._groups.keys() - set(groups):
            self._disarm(self._groups.pop(group))
            self.troubled.pop(group, None)

    def _damaged(self, groups: list[GroupName]) -> set[GroupName]:
        known = [group for group in groups if group in self._groups]
        return {group for group in known if not self._listener.is_whole(group)}

    async def _look_at(self, group: GroupName, *, damaged: bool) -> None:
        """Look at one group; what is wrong with it is no reason to leave out the others."""
        try:
            if damaged:
                log.warning("group.folders_recreated", extra={"group": group})
            if damaged or group not in self._groups:
                await self._listener.joined(group)
            self._keep_watch(group)
            self._listener.look(group)
            self.troubled.pop(group, None)
        except OSError as exc:
            if group not in self.troubled:
                log.warning("group.mailbox_failed", extra={"group": group, "why": exc.strerror})
            self.troubled[group] = f"group {group}: its mailbox cannot be used ({exc.strerror})"

    def poke(self) -> None:
        """Look around now rather than in a second."""
        self._poked.set()

    def _list_groups(self) -> list[GroupName]:
        try:
            with os.scandir(self._ipc) as entries:
                found = [e for e in entries if not e.name.startswith(".")]
        except FileNotFoundError:
            # Not what is above it: a data folder that was moved must be free to come back.
            self._ipc.mkdir(mode=0o700, exist_ok=True)
            return []
        good = [e for e in found if _GROUP.match(e.name) and e.is_dir(follow_symlinks=False)]
        for entry in found:
            if entry not in good:
                self._ignore(entry.name)
        return [GroupName(e.name) for e in good if not _is_removed(Path(e.path))]

    def _ignore(self, name: str) -> None:
        if name not in self._ignored and len(self._ignored) < _MAX_IGNORED:
            self._ignored.add(name)
            log.warning("group.name_refused", extra={"entry": name})

    def _keep_observer(self) -> None:
        """Have an observer where one can be had, and let it watch for new groups."""
        if self._observer is None or not self._observer.is_alive():
            self._stop_observer()
            self._start_observer()
        if self._observer is not None:
            self._dead = {e.watch for e in self._observer.emitters if not e.is_alive()}
            loop = asyncio.get_running_loop()
            self._keep_armed(self._home, self._ipc, partial(_Groups, self, loop))

    def _start_observer(self) -> None:
        try:
            observer = Observer(timeout=_WAKE_SECONDS)
            observer.start()
        except (OSError, RuntimeError) as exc:
            self._no_notifications(exc)
        else:
            self._observer = observer

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        for watched in (self._home, *self._groups.values()):
            watched.watch = None
        if observer is not None:
            observer.stop()
            observer.join(timeout=5)

    def _report(self, problem: str | None) -> None:
        if problem != self.problem:
            log.warning("watcher.notifications_changed", extra={"problem": problem})
        self.problem = problem

    def _keep_watch(self, group: GroupName) -> None:
        """Arm the group's watch, again where the folder was replaced; disarm it in a flood."""
        watched = self._groups.setdefault(group, _Watched((0, 0), None))
        flooded, watched.hints = watched.hints > FLOOD_PER_RESCAN, 0
        if flooded:
            log.warning("watcher.paused", extra={"group": group})
            watched.pause = FLOOD_PAUSE_RESCANS
        elif watched.pause:
            watched.pause -= 1
        handler = partial(_Tasks, self, group, asyncio.get_running_loop())
        self._keep_armed(watched, self._ipc / group / "tasks", handler)

    def _keep_armed(self, watched: _Watched, path: Path, handler: Callable[[], _Hints]) -> None:
        inode = _inode(path)
        lost = inode != watched.inode or watched.watch in self._dead
        if watched.watch and (lost or watched.pause):
            self._disarm(watched)
        if inode and not watched.watch and not watched.pause:
            watched.inode = inode
            watched.watch = self._arm(path, handler())

    def _arm(self, path: Path, handler: _Hints) -> ObservedWatch | None:
        if self._observer is None:
            return None
        try:
            return self._observer.schedule(
                handler, str(path), recursive=False, event_filter=list(handler.events)
            )
        except (OSError, RuntimeError) as exc:
            self._no_notifications(exc)
            return None

    def _no_notifications(self, exc: OSError | RuntimeError) -> None:
        """Say that no instance, no watch or no thread is to be had."""
        why = exc.strerror if isinstance(exc, OSError) else exc
        self._trouble = f"no file notifications ({why}); looking once a second instead"

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


class _Hints(FileSystemEventHandler):
    """A handler that says which events it wants."""

    events: tuple[type[FileSystemEvent], ...] = ()


class _Tasks(_Hints):
    """Runs on watchdog's thread: hands a name over to the loop, and nothing else."""

    events = (FileMovedEvent, FileClosedEvent)

    def __init__(self, watcher: Watcher, group: GroupName, loop: asyncio.AbstractEventLoop) -> None:
        self._pass_on: Callable[[str], None] = lambda name: watcher.hinted(group, name)
        self._loop = loop

    def on_any_event(self, event: FileSystemEvent) -> None:
        path = event.dest_path if isinstance(event, FileMovedEvent) else event.src_path
        name = Path(os.fsdecode(path)).name
        if name and not name.startswith(".") and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on, name)


class _Groups(_Hints):
    """Runs on watchdog's thread: something changed beside the groups."""

    events = (DirCreatedEvent, DirMovedEvent)

    def __init__(self, watcher: Watcher, loop: asyncio.AbstractEventLoop) -> None:
        self._watcher = watcher
        self._loop = loop

    def on_any_event(self, event: FileSystemEvent) -> None:
        del event
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._watcher.poke)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        info = path.lstat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino)


def _is_removed(path: Path) -> bool:
    try:
        return is_removed(path)
    except OSError:  # what is wrong with it is found out, and told, when it is looked at
        return False
