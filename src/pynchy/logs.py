"""Log lines for people and machines: a constant message, then its values as key=value.

What agents and people say is never among the values, nor is any token.
"""

from __future__ import annotations

import json
import logging

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FieldFormatter(logging.Formatter):
    """Puts the record's extra fields behind its message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().format(record)
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        told = " ".join(f"{key}={json.dumps(str(value))}" for key, value in fields.items())
        head, newline, rest = line.partition("\n")
        return f"{head} {told}".rstrip() + newline + rest


def set_up_logging(level: str) -> None:
    """Send our log to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # watchdog tells of every file at debug level; that is noise even there.
    logging.getLogger("watchdog").setLevel(max(logging.INFO, logging.getLogger().level))
    # These warn of what any stranger at the port can do, and would let them fill the disk.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    # It tells at debug level what it sends, and that is what agents say.
    logging.getLogger("sse_starlette").setLevel(max(logging.INFO, logging.getLogger().level))
