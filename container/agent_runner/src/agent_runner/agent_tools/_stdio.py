"""Lines in and out over file descriptors, without ever blocking the event loop.

Each direction has a daemon thread of its own: a client that does not read stops the writer's
thread and nothing else, and neither thread keeps the process from ending.
"""

import asyncio
import os
import queue
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_QUEUED_EXTRAS = 32

_CHUNK_BYTES = 64 * 1024


class Framer:
    """Cuts bytes into lines. A line past the limit comes out as None, once."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that these bytes complete, without their line breaks."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            yield from self._flush()
        self._add(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Yield what is left when the input ends."""
        yield from self._flush()

    def _add(self, piece: bytes) -> None:
        self._skipping = self._skipping or len(self._buffer) + len(piece) > self._limit
        if self._skipping:
            self._buffer.clear()
        else:
            self._buffer += piece

    def _flush(self) -> Iterator[bytes | None]:
        line, skipped = bytes(self._buffer).strip(), self._skipping
        self._buffer.clear()
        self._skipping = False
        if skipped:
            yield None
        elif line:
            yield line


def start_reader(
    handle: int, on_line: Callable[[bytes | None], None], on_end: Callable[[], None]
) -> None:
    """Call `on_line` in this loop for each line, then `on_end`. None stands for one too long."""
    loop = asyncio.get_running_loop()

    def cross_threads(function: Callable[..., None], *args: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(function, *args)

    def run() -> None:
        framer = Framer()
        while data := _read(handle):
            for line in framer.feed(data):
                cross_threads(on_line, line)
        for line in framer.finish():
            cross_threads(on_line, line)
        cross_threads(on_end)

    threading.Thread(target=run, name="stdin", daemon=True).start()


class Writer:
    """Writes lines in order, in a thread. `on_broken` is called in this loop if nobody can read."""

    def __init__(self, handle: int, on_broken: Callable[[], None]) -> None:
        self._handle = handle
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Send a line, however long the client takes to read it."""
        self._lines.put(line)

    def write_extra(self, line: bytes) -> None:
        """Send a line that may be dropped when the client does not keep up."""
        if self._lines.qsize() < MAX_QUEUED_EXTRAS:
            self._lines.put(line)

    def close(self, seconds: float) -> None:
        """Give the client that long to read what is left."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                _write(self._handle, line)
            except OSError:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._on_broken)
                return


def is_read(handle: int) -> bool:
    """Say whether anybody can still read what is written there."""
    poll = select.poll()
    poll.register(handle, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _read(handle: int) -> bytes:
    while True:
        try:
            return os.read(handle, _CHUNK_BYTES)
        except BlockingIOError:  # a parent made our stdin non-blocking
            select.select([handle], [], [])
        except OSError:
            return b""


def _write(handle: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            select.select([], [handle], [])
