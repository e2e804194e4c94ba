"""Read the event log on disk, oldest first. Works without a host.

The host may rotate the files meanwhile: they are opened before the first is read, and a number
that was seen is not given again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from pynchy.client import Json
from pynchy.errors import HostError

_NAME = "events.jsonl"
_TAIL = 1024 * 1024


def read_events(audit: Path, after: int = 0) -> Iterator[Json]:
    """Yield every recorded event after that number."""
    with ExitStack() as stack:
        for file in [stack.enter_context(file) for file in _open_all(audit)]:
            for raw in file:
                event = _parse(raw)
                if event is not None and event["seq"] > after:
                    after = event["seq"]
                    yield event


def last_sequence(audit: Path) -> int:
    """Return the number of the newest event, 0 where there is none."""
    newest = newest_event(audit)
    return int(newest["seq"]) if newest else 0


def newest_event(audit: Path) -> Json | None:
    """Return the newest event, if there is one."""
    for path in reversed(_paths(audit)):
        with suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            events = [event for raw in file if (event := _parse(raw))]
            if events:
                return max(events, key=lambda event: int(event["seq"]))
    return None


def _open_all(audit: Path) -> list[BinaryIO]:
    files: list[BinaryIO] = []
    for path in _paths(audit):
        with suppress(FileNotFoundError):
            files.append(path.open("rb"))
    return files


def _paths(audit: Path) -> list[Path]:
    try:
        rotated = [path for path in audit.glob(f"{_NAME}.*") if path.suffix[1:].isdigit()]
    except OSError as exc:
        raise HostError(f"{audit}: the event log cannot be read ({exc.strerror})") from exc
    return [*sorted(rotated, key=lambda path: -int(path.suffix[1:])), audit / _NAME]


def _parse(raw: bytes) -> Json | None:
    try:
        event = json.loads(raw)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("seq"), int) else None
