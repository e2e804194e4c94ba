"""The event log: every transition, in order, on disk and as a live stream.

A line is in the file before anybody is told of it, its number is never used again, and readers
are told in the order of the numbers, so one that was away asks for everything after the last
number it saw and misses nothing that is still kept. A disk that refuses a line is the exception:
it is told all the same, and its number may come again after a restart.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
class _Subscriber:
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
        self.lines.append(line)
        self.waiting_bytes += len(line.data)
        self.wake.set()

    def finish(self) -> None:
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


class AuditLog:
    """Appends events to rotated files and passes them on."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._subscribers: set[_Subscriber] = set()
        self._fd = -1
        self._size = 0
        self._written = 0
        self._told = 0
        self._ready: dict[int, AuditLine] = {}
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

    def send_home(self) -> None:
        """Send every reader home."""
        for subscriber in self._subscribers:
            subscriber.finish()

    def close(self) -> None:
        """Let go of the file."""
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
        with self._subscribed() as subscriber:
            seen = self._told if after is None else after
            if seen < self._told:
                async for line in self._read_between(seen, self._told):
                    yield line
            while (fresh := await subscriber.next()) is not None:
                if fresh.sequence > seen:
                    yield fresh

    @contextmanager
    def _subscribed(self) -> Iterator[_Subscriber]:
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)

    async def _read_between(self, after: int, last: int) -> AsyncIterator[AuditLine]:
        """Yield the lines after that number, up to the last that was told when this was called."""
        # All are opened before the first is read: a rotation in between would hide one.
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in self._files()]
            for file in map(wrap, files):
                while chunk := await file.readlines(_CHUNK):
                    for line in map(_parse, chunk):
                        if line and after < line.sequence <= last:
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
            self.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self) -> None:
        self.close()
        self._size = 0
        base = self._folder / _NAME
        if self._max_files == 1:
            base.unlink()
            return
        base.with_name(f"{_NAME}.{self._max_files - 1}").unlink(missing_ok=True)
        for number in range(self._max_files - 2, 0, -1):
            path = base.with_name(f"{_NAME}.{number}")
            if path.exists():
                path.rename(base.with_name(f"{_NAME}.{number + 1}"))
        base.rename(base.with_name(f"{_NAME}.1"))


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
