"""The event log: every transition, in order, on disk and as a live stream.

A line is in the file before anybody is told of it, its number is never used again, and readers
are told in the order of the numbers, so one that was away asks for everything after the last
number it saw and misses nothing that is still kept. A disk that refuses a line is the exception:
it is told all the same, and its number may come again after a restart.

The oldest file is shared out: in it every group keeps its newest lines, so that a group with many
events drives out its own rather than those of the others.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread

from aiofiles.threadpool import wrap

from pynchy import wire
from pynchy.events import Event
from pynchy.logs import log_event

log = logging.getLogger(__name__)

_NAME = "events.jsonl"
_QUEUE = 1_000
_QUEUE_BYTES = 8 * 1024 * 1024
_TAIL = 64 * 1024
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One event as it is stored and sent."""

    sequence: int
    kind: str
    data: bytes


@dataclass(eq=False, slots=True)
class AuditFeed:
    """One reader. What it has been given it gets in full, also when it is sent home."""

    lines: deque[AuditLine] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False
    waiting_bytes: int = 0

    @property
    def keeps_up(self) -> bool:
        """True while there is room for what happens next."""
        return len(self.lines) < _QUEUE and self.waiting_bytes < _QUEUE_BYTES

    def give(self, line: AuditLine) -> None:
        """Let the reader have a line."""
        self.lines.append(line)
        self.waiting_bytes += len(line.data)
        self.wake.set()

    def finish(self) -> None:
        """Tell the reader that no further line comes."""
        self.over = True
        self.wake.set()

    async def next(self) -> AuditLine | None:
        """Return the next line, or None after the last."""
        while not self.lines:
            if self.over:
                return None
            self.wake.clear()
            await self.wake.wait()
        line = self.lines.popleft()
        self.waiting_bytes -= len(line.data)
        return line

    async def wait(self) -> bool:
        """Return True as soon as there is a line, False after the last."""
        while not self.lines and not self.over:
            self.wake.clear()
            await self.wake.wait()
        return bool(self.lines)

    def take_all(self) -> list[AuditLine]:
        """Return all lines that are there."""
        taken = list(self.lines)
        self.lines.clear()
        self.waiting_bytes = 0
        return taken


class AuditLog:
    """Appends events to rotated files and passes them on."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._subscribers: set[AuditFeed] = set()
        self._fd = -1
        self._size = 0
        self._written = 0
        self._told = 0
        self._ready: dict[int, AuditLine] = {}
        self._sharing: Thread | None = None
        self._renaming = Lock()
        self.problem: str | None = None

    @property
    def sequence(self) -> int:
        """The number of the newest event that was told."""
        return self._told

    def open(self) -> None:
        """Find where the log left off, and make it ready for more."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        newest_first = map(_last_sequence, reversed(self._files()))
        self._written = self._told = next(filter(None, newest_first), 0)
        self._open_file()
        if self._max_files > 1:
            self._share_out()  # a crash may have interrupted it

    def send_home(self) -> None:
        """Send every reader home."""
        for subscriber in self._subscribers:
            subscriber.finish()

    def close(self) -> None:
        """Let go of the files."""
        self._close_file()
        self._finish_sharing()

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @contextmanager
    def publishing(self, events: Iterable[Event]) -> Iterator[None]:
        """Write the events down at once, and pass them on when the block is over, however it ends.

        Until then whatever is written later waits too.
        """
        lines: list[AuditLine] = []
        try:
            lines.extend(self._append(event) for event in events)
            yield
        finally:
            for line in lines:
                self._publish(line)

    def publish(self, event: Event) -> None:
        """Write the event down and pass it on."""
        with self.publishing([event]):
            pass

    def _append(self, event: Event) -> AuditLine:
        """Write the event down. A full disk is reported and costs the line, never the question."""
        log_event(event)
        # A number is taken only by what can be told: readers wait for every one.
        data = wire.event_json(self._written + 1, event)
        self._written += 1
        line = AuditLine(self._written, event.kind.value, data)
        try:
            self._write(data + b"\n")
            self.problem = None
        except OSError as exc:
            if self.problem is None:
                log.exception("audit.write_failed")
            self.problem = f"the event log cannot be written: {exc.strerror}"
        return line

    def _publish(self, line: AuditLine) -> None:
        """Pass the line on to everybody who listens, once all before it were passed on."""
        self._ready[line.sequence] = line
        while (following := self._ready.pop(self._told + 1, None)) is not None:
            self._told += 1
            self._pass_on(following)

    def _pass_on(self, line: AuditLine) -> None:
        """Give the line to every reader; one that does not keep up is sent home."""
        for subscriber in list(self._subscribers):
            if subscriber.keeps_up:
                subscriber.give(line)
            else:
                self._subscribers.discard(subscriber)
                subscriber.finish()

    async def stream(self, after: int | None) -> AsyncIterator[AuditLine]:
        """Yield what came after that number and then what happens; None for only what happens."""
        with self.feed() as subscriber:
            seen = self._told if after is None else after
            if seen < self._told:
                async for line in self._read_between(seen, self._told):
                    yield line
            while (fresh := await subscriber.next()) is not None:
                if fresh.sequence > seen:
                    yield fresh

    @contextmanager
    def feed(self) -> Iterator[AuditFeed]:
        """Give what is told from now on, to a reader who looks at many lines at a time."""
        subscriber = AuditFeed()
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)

    async def _read_between(self, after: int, last: int) -> AsyncIterator[AuditLine]:
        """Yield the lines after that number, up to the last that was told when this was called."""
        # All are opened before the first is read: a rotation in between would hide one.
        with ExitStack() as stack:
            with self._renaming:
                files = [stack.enter_context(path.open("rb")) for path in self._files()]
            for file in map(wrap, files):
                while chunk := await file.readlines(_CHUNK):
                    for line in map(_parse, chunk):
                        if line and after < line.sequence <= last:
                            after = line.sequence  # a crash may have left a line in two files
                            yield line

    def _files(self) -> list[Path]:
        """Return the log's files, oldest first."""
        rotated = [p for p in self._folder.glob(f"{_NAME}.*") if p.suffix[1:].isdigit()]
        old = sorted(rotated, key=lambda p: int(p.suffix[1:]), reverse=True)
        current = self._folder / _NAME
        return [*old, current] if current.exists() else old

    def _open_file(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._folder / _NAME, flags, 0o600)
        self._size = os.fstat(self._fd).st_size
        if self._size and not _ends_with_newline(self._folder / _NAME):
            self._size += os.write(self._fd, b"\n")

    def _write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        if self._fd < 0:
            self._open_file()
        written = os.write(self._fd, data)
        self._size += written
        if written < len(data):  # the disk is full: the next line must not be glued to this one
            self._close_file()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self) -> None:
        self._close_file()
        self._size = 0
        if self._max_files == 1:
            self._file(0).unlink()
            return
        self._finish_sharing()
        files = [self._file(number) for number in range(self._max_files + 1)]
        for newer, older in reversed(list(pairwise(files))):
            if newer.exists():
                newer.rename(older)
        self._share_out()

    def _file(self, number: int) -> Path:
        return self._folder / (f"{_NAME}.{number}" if number else _NAME)

    def _share_out(self) -> None:
        """Merge the file that is too many into the oldest that is kept, off the loop."""
        too_many, oldest = self._file(self._max_files), self._file(self._max_files - 1)
        if too_many.exists():
            sharing = Thread(target=partial(self._merge_into, oldest, too_many), name="audit")
            try:
                sharing.start()
            except RuntimeError:  # no thread is to be had
                log.exception("audit.not_shared_out")
            else:
                self._sharing = sharing

    def _finish_sharing(self) -> None:
        if self._sharing is not None:
            self._sharing.join()
            self._sharing = None

    def _merge_into(self, oldest: Path, too_many: Path) -> None:
        merged = self._folder / f"{_NAME}.new"
        try:
            files = [path for path in (too_many, oldest) if path.exists()]
            _merge(files, self._max_bytes, merged)
            with self._renaming:
                merged.replace(oldest)
                too_many.unlink()
        except OSError:  # the next rotation does without the file that is too many
            log.exception("audit.not_shared_out")


def _merge(paths: Sequence[Path], room: int, merged: Path) -> None:
    """Write the newest lines of every group into a file of about that size, in their order."""
    groups: list[str] = []
    sizes: Counter[str] = Counter()
    last = 0
    for raw in _lines(paths):
        number, group = wire.read_event_group(raw)
        is_new = number > last  # a crash may have left a line in both
        groups.append(group if is_new else "")
        sizes[groups[-1]] += len(raw)
        last = max(last, number)
    del sizes[""]
    shares = _shares(sizes, room)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(merged, flags, 0o600), "wb") as file:
        for raw, group in zip(_lines(paths), groups, strict=True):
            is_last = sizes[group] == len(raw)
            if group and (sizes[group] <= shares[group] or is_last):
                file.write(raw)
            else:
                sizes[group] -= len(raw)


def _lines(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            yield from file


def _shares(sizes: Mapping[str, int], room: int) -> dict[str, int]:
    """Divide the room: who needs less than an equal share leaves the rest to the others."""
    shares = {}
    for done, (group, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[group] = min(size, room // (len(sizes) - done))
        room -= shares[group]
    return shares


def _parse(raw: bytes) -> AuditLine | None:
    sequence = wire.read_sequence(raw)
    if sequence is None:
        return None
    return AuditLine(sequence, wire.read_event_kind(raw), raw.rstrip(b"\n"))


def _last_sequence(path: Path) -> int:
    """Return the file's newest number, 0 if it has none. The last line may be a long one."""
    size, tail, newest = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        while not newest and tail < size:
            tail = min(tail * 4 or _TAIL, size)
            file.seek(-tail, os.SEEK_END)
            newest = max(wire.read_sequence(line) or 0 for line in file.read().splitlines())
    return newest


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
