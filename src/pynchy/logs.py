"""Log lines for people and machines: a stable event word, then its values as fields.

What agents and people say is never among the values, nor is any token.
"""

from __future__ import annotations

import json
import logging
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


def set_up_logging(level: str, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Send our log to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
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
