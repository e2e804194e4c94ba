"""Questions as files: the default store.

    pending_questions/<id>.json   replaced atomically as the question goes on
    outcomes/<id>.json            created exclusively: the commit point
    history/<id>.json             what is over

A question is in exactly one of pending_questions and history, but for a crash between the two
writes of `close`, which `load` finishes.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from pynchy import wire
from pynchy.errors import DuplicateRequest
from pynchy.model import Ending, GroupName, PendingQuestion, RequestId, ShortId
from pynchy.pending.base import Conflict, HistoryQuery, Key, StoreChange, Stored
from pynchy.safe_folder import Folder, UnsafeFile

log = logging.getLogger(__name__)

# Host-only files may be larger than any request: they hold the questions and all that happened.
_CAP = 8 * 1024 * 1024
# How far back a short id is looked for among what is over.
_LATELY = 2_000
_FOLDERS = ("pending_questions", "outcomes", "history")


class FileStore:
    """A PendingStore and History below `ipc/<group>/`.

    Nothing is written once `is_ours` says no: the host that has the folder by now has read it
    already, and would never learn of a question or an ending that another one puts there.
    """

    def __init__(self, ipc: Path, is_ours: Callable[[], bool] = lambda: True) -> None:
        self._ipc = ipc
        self._is_ours = is_ours
        self._closed_lately: dict[ShortId, tuple[GroupName, RequestId]] = {}
        self._prepared: set[GroupName] = set()
        # Whoever holds the folder's lock is the only writer, so that its own count is enough.
        self._revisions: Counter[Key] = Counter()
        self.damaged: list[str] = []

    async def load(self) -> list[Stored]:
        """See PendingStore."""
        return await asyncio.to_thread(self._load)

    async def get(self, key: Key) -> Stored | None:
        """See PendingStore."""
        return await asyncio.to_thread(self._get, key)

    async def record(self, pending: PendingQuestion) -> int:
        """See PendingStore."""
        await asyncio.to_thread(self._record, pending)
        return self._revisions[pending.key]

    async def update(self, pending: PendingQuestion, revision: int) -> int:
        """See PendingStore."""
        self._check(pending.key, revision)
        await asyncio.to_thread(self._update, pending)
        self._revisions[pending.key] += 1
        return self._revisions[pending.key]

    async def end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        """See PendingStore."""
        return await asyncio.to_thread(self._end, pending, ending)

    async def close(self, pending: PendingQuestion, revision: int) -> None:
        """See PendingStore."""
        self._check(pending.key, revision)
        await asyncio.to_thread(self._close, pending)
        del self._revisions[pending.key]
        self._closed_lately[pending.short_id] = pending.key
        while len(self._closed_lately) > _LATELY:
            del self._closed_lately[next(iter(self._closed_lately))]

    async def watch(self) -> AsyncIterator[StoreChange]:
        """See PendingStore: the folder's lock keeps all others away."""
        nothing: tuple[StoreChange, ...] = ()
        for change in nothing:
            yield change

    def problems(self) -> list[str]:
        """See PendingStore."""
        return [f"a damaged record was left alone: {path}" for path in self.damaged]

    async def find(self, group: GroupName, request_id: RequestId) -> PendingQuestion | None:
        """See History."""
        return await asyncio.to_thread(self._find, group, request_id)

    async def with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        """See History."""
        return await asyncio.to_thread(self._with_short_id, short_id)

    async def with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        """See History."""
        return await asyncio.to_thread(self._with_request_id, request_id)

    async def recent(self, query: HistoryQuery) -> list[PendingQuestion]:
        """See History."""
        return await asyncio.to_thread(self._recent, query)

    async def prune(self, before: datetime, max_bytes: int) -> int:
        """See History."""
        return await asyncio.to_thread(self._prune, before, max_bytes)

    def _check_ours(self) -> None:
        if not self._is_ours():
            raise OSError(errno.ESTALE, "another host may use the data folder")

    def _check(self, key: Key, revision: int) -> None:
        if self._revisions[key] != revision:
            raise Conflict(key[1])

    def _get(self, key: Key) -> Stored | None:
        group, name = key[0], _name(key[1])
        pending = self._read(self._folder(group, "pending_questions"), name)
        if pending is None:
            return None
        return Stored(pending, self._read_ending(group, name), self._revisions[key])

    def _folder(self, group: GroupName, name: str) -> Folder:
        return Folder(self._ipc, group, name)

    def _prepare(self, group: GroupName) -> None:
        for name in _FOLDERS:
            self._folder(group, name).make()
        self._prepared.add(group)

    def _groups(self) -> list[GroupName]:
        try:
            entries = sorted(os.scandir(self._ipc), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        return [GroupName(e.name) for e in entries if e.is_dir(follow_symlinks=False)]

    def _load(self) -> list[Stored]:
        # What is loaded stays: looking through it for rubbish, again and again, finds nothing.
        gc.disable()
        try:
            return self._load_all()
        finally:
            gc.freeze()
            gc.enable()

    def _load_all(self) -> list[Stored]:
        stored: list[Stored] = []
        for group in self._groups():
            if self._folder(group, "pending_questions").exists():
                self._prepare(group)
                stored.extend(self._load_group(group))
        return stored

    def _load_group(self, group: GroupName) -> Iterator[Stored]:
        for name in _FOLDERS:
            self._folder(group, name).clear_temporary()
        questions = self._folder(group, "pending_questions")
        ended = set(self._folder(group, "outcomes").names())
        over = set(self._folder(group, "history").names())
        for name in questions.names():
            if name in over:
                questions.remove(name)
            elif name.endswith(".json") and (pending := self._read(questions, name)):
                ending = self._read_ending(group, name) if name in ended else None
                if ending is not None or name not in ended:
                    yield Stored(pending, ending)

    def _read(self, folder: Folder, name: str) -> PendingQuestion | None:
        try:
            return wire.read_pending(folder.read(name, _CAP, one_link=False))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, UnsafeFile) as exc:
            self._report_damage(folder, name, exc)
            return None

    def _report_damage(self, folder: Folder, name: str, exc: Exception) -> None:
        path = str(folder.path / name)
        if path not in self.damaged:
            self.damaged.append(path)
            # Only the kind: the error's own text would quote what the record says.
            why = type(exc).__name__
            log.error("store.record_damaged", extra={"path": path, "why": why})

    def _read_ending(self, group: GroupName, name: str) -> Ending | None:
        folder = self._folder(group, "outcomes")
        try:
            return wire.read_ending(folder.read(name, _CAP, one_link=False))
        except FileNotFoundError:
            return None
        except (ValueError, UnsafeFile) as exc:
            self._report_damage(folder, name, exc)
            return None

    def _record(self, pending: PendingQuestion) -> None:
        self._check_ours()
        if pending.group not in self._prepared:
            self._prepare(pending.group)
        name = _name(pending.request_id)
        data = wire.pending_json(pending)
        if self._folder(pending.group, "outcomes").has(name) or not self._create(pending, data):
            raise DuplicateRequest(pending.request_id)

    def _create(self, pending: PendingQuestion, data: bytes) -> bool:
        folder = self._folder(pending.group, "pending_questions")
        try:
            return folder.create(_name(pending.request_id), data)
        except FileNotFoundError:
            # The group's folder was removed and has come back.
            self._prepare(pending.group)
            return folder.create(_name(pending.request_id), data)

    def _update(self, pending: PendingQuestion) -> None:
        self._check_ours()
        folder = self._folder(pending.group, "pending_questions")
        try:
            folder.replace(_name(pending.request_id), wire.pending_json(pending))
        except FileNotFoundError:
            # The group's folder was removed; what it asked is kept all the same.
            self._prepare(pending.group)
            folder.replace(_name(pending.request_id), wire.pending_json(pending))

    def _end(self, pending: PendingQuestion, ending: Ending) -> Ending:
        self._check_ours()
        name = _name(pending.request_id)
        self._folder(pending.group, "outcomes").make()
        if self._folder(pending.group, "outcomes").create(name, wire.ending_json(ending)):
            return ending
        winner = self._read_ending(pending.group, name)
        if winner is None:
            raise FileNotFoundError(name)
        return winner

    def _close(self, pending: PendingQuestion) -> None:
        self._check_ours()
        name = _name(pending.request_id)
        self._prepare(pending.group)
        history = self._folder(pending.group, "history")
        history.replace(name, wire.pending_json(pending))
        # The order of history, finer than the file system's own clock ticks.
        now_ns = time.time_ns()
        os.utime(history.path / name, ns=(now_ns, now_ns), follow_symlinks=False)
        self._folder(pending.group, "pending_questions").remove(name)

    def _find(self, group: GroupName, request_id: RequestId) -> PendingQuestion | None:
        folder = self._folder(group, "history")
        return self._read(folder, _name(request_id)) if folder.exists() else None

    def _with_short_id(self, short_id: ShortId) -> PendingQuestion | None:
        if key := self._closed_lately.get(short_id):
            return self._find(*key)
        newest = islice(self._newest_first(None), _LATELY)
        return next((pending for pending in newest if pending.short_id == short_id), None)

    def _with_request_id(self, request_id: RequestId) -> list[PendingQuestion]:
        if wire.usable_id(request_id) is None:
            return []
        found = [self._find(group, request_id) for group in self._groups()]
        return [pending for pending in found if pending]

    def _recent(self, query: HistoryQuery) -> list[PendingQuestion]:
        found: list[PendingQuestion] = []
        for pending in self._newest_first(query.group):
            if len(found) == query.limit:
                break
            if query.fits(pending):
                found.append(pending)
        return found

    def _newest_first(self, group: GroupName | None) -> Iterator[PendingQuestion]:
        for _, _, name, owner in sorted(self._closed(group), reverse=True):
            if pending := self._read(self._folder(owner, "history"), name):
                yield pending

    def _closed(self, group: GroupName | None) -> Iterator[tuple[int, int, str, GroupName]]:
        """Yield (when, size, name, group) of everything in history."""
        for owner in [group] if group else self._groups():
            folder = self._folder(owner, "history")
            for name in folder.names() if folder.exists() else ():
                try:
                    info = folder.stat(name)
                except FileNotFoundError:
                    continue
                yield info.st_mtime_ns, info.st_size, name, owner

    def _prune(self, before: datetime, max_bytes: int) -> int:
        limit_ns = int(before.astimezone(UTC).timestamp() * 1e9)
        removed = 0
        total: Counter[GroupName] = Counter()
        for when, size, name, group in sorted(self._closed(None), reverse=True):
            total[group] += size
            if when < limit_ns or total[group] > max_bytes:
                # History last: what a crash leaves is found and pruned again.
                self._folder(group, "outcomes").remove(name)
                self._folder(group, "history").remove(name)
                removed += 1
        return removed


def _name(request_id: RequestId) -> str:
    return f"{request_id}.json"
