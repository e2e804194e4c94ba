"""Log lines for people and machines: a stable event word, then its values as fields.

What agents and people say is never among the values, nor is any token. Nobody waits for the log: a
thread of its own writes it, and what a reader who does not read leaves no room for is counted and
dropped. The same trouble again and again is told a few times, then counted.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pynchy.events import Event, EventKind

log = logging.getLogger(__name__)

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OURS = ("pynchy", "agent_runner")
# What an operator wants to hear of without asking; all else is in the event log.
_LEVELS = {
    EventKind.ASKED: logging.INFO,
    EventKind.SHOWN: logging.INFO,
    EventKind.SHOW_FAILED: logging.WARNING,
    EventKind.ANSWERED: logging.INFO,
    EventKind.DECLINED: logging.INFO,
    EventKind.DEFAULTED: logging.INFO,
    EventKind.EXPIRED: logging.INFO,
    EventKind.WITHDRAWN: logging.INFO,
    EventKind.CLEARED: logging.INFO,
    EventKind.UNDELIVERABLE: logging.WARNING,
    EventKind.RESUMING: logging.INFO,
    EventKind.RESUME_FAILED: logging.WARNING,
    EventKind.UNDELIVERED: logging.WARNING,
    EventKind.DELIVERED: logging.INFO,
    EventKind.REJECTED: logging.WARNING,
    EventKind.ORPHANED: logging.WARNING,
}
# Their reasons are written by pynchy or a channel; others may quote what an agent printed.
_EXPLAINED = {EventKind.SHOW_FAILED, EventKind.UNDELIVERABLE, EventKind.ORPHANED}


# Lines that wait for a reader; at the end they have so long to be written.
_MAX_WAITING = 10_000
_END_SECONDS = 1.0
# The same trouble is told so often within this time.
_REPEATS = 5
_REPEAT_SECONDS = 60.0
_MAX_KINDS = 1_000


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


class TextFormatter(logging.Formatter):
    """Time and level, then `event=` and the fields as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; what was raised follows in lines of its own."""
        told = " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record).items())
        line = f"{self.formatTime(record)} {record.levelname} {told}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object in each line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        body = {"time": at, "level": record.levelname, **_fields(record)}
        if record.exc_info:
            body["exception"] = self.formatException(record.exc_info)
        return json.dumps(body, default=str, ensure_ascii=False)


class RepeatFilter(logging.Filter):
    """Lets what was raised at one place pass a few times a minute, and counts the rest."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is told."""
        if not record.exc_info or record.exc_info[0] is None:
            return True
        kind = (record.pathname, record.lineno, record.exc_info[0].__name__)
        since, told = self._kinds.get(kind, (None, 0))
        now = time.monotonic()
        if since is None or now - since > _REPEAT_SECONDS:
            if told > _REPEATS:
                record.unsaid = told - _REPEATS
            if len(self._kinds) >= _MAX_KINDS:
                self._kinds.clear()
            since, told = now, 0
        self._kinds[kind] = since, told + 1
        return told < _REPEATS


class ThreadedHandler(logging.Handler):
    """Hands lines to a thread that writes them to a file; drops what there is no room for."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._lines: queue.Queue[bytes] = queue.Queue(_MAX_WAITING)
        self._dropped = 0
        threading.Thread(target=self._write, name="log", daemon=True).start()
        atexit.register(self._finish)

    def emit(self, record: logging.LogRecord) -> None:
        """Take the line if there is room."""
        try:
            self._lines.put_nowait(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except queue.Full:
            self._dropped += 1
        except Exception:  # noqa: BLE001 - as every handler does
            self.handleError(record)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            # Past Python's own buffers, whose locks a reader who does not read would keep taken.
            with suppress(OSError):
                while line:
                    line = line[os.write(self._fd, line) :]
            self._lines.task_done()
            if self._dropped and self._lines.empty():
                dropped, self._dropped = self._dropped, 0
                log.warning("log.dropped", extra={"lines": dropped})

    def _finish(self) -> None:
        """Give what waits its time to be written, and no more: the reader may not read."""
        ends = time.monotonic() + _END_SECONDS
        while self._lines.unfinished_tasks and time.monotonic() < ends:
            time.sleep(0.005)


def set_up_logging(level: str, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Send our log to stderr."""
    handler = ThreadedHandler(sys.stderr.fileno())
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # watchdog tells of every file at debug level; that is noise even there.
    logging.getLogger("watchdog").setLevel(max(logging.INFO, logging.getLogger().level))
    # These warn of what any stranger at the port can do, and would let them fill the disk.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    # It tells at debug level what it sends, and that is what agents say.
    logging.getLogger("sse_starlette").setLevel(max(logging.INFO, logging.getLogger().level))


def log_event(event: Event) -> None:
    """Log that something happened to a question, by its ids and never with its text."""
    level = _LEVELS.get(event.kind)
    if level is None:
        return
    fields = {"id": event.short_id, "request": event.request_id, "group": event.group}
    why = event.detail if event.kind in _EXPLAINED else None
    more = {"channel": event.channel, "session": event.session_id, "why": why}
    if event.kind is EventKind.UNDELIVERABLE:
        # Or the `delivered` that follows would seem to contradict it.
        more["then"] = "the agent is told that nobody could be asked"
    told = {key: value for key, value in (fields | more).items() if value}
    log.log(level, "question.%s", event.kind.value, extra=told)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the event word and the values; of foreign libraries, who says what."""
    ours = record.name.split(".")[0] in _OURS
    word = record.getMessage() if ours else record.name
    extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    said = {} if ours else {"message": record.getMessage()}
    return {"event": word, **said, **extra}


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isascii() and text.replace("_", "").replace(".", "").replace("-", "").isalnum()
    return text if plain else json.dumps(text, ensure_ascii=False)
