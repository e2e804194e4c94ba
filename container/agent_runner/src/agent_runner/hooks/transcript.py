"""What Claude Code's transcript tells of a call: whether it is alone in its turn.

Claude Code calls a tool while the model may still be writing the next call, and writes the turn
down when it is complete. Of several calls in one turn it can put off only one, and loses others.
"""

import json
import os
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any

_TAIL_BYTES = 8 * 1024 * 1024


class Turn(Enum):
    """How a call stands in its turn. UNSEEN: the turn is not written down, or not complete."""

    UNSEEN = auto()
    ALONE = auto()
    TOGETHER = auto()


def look(path: Path, call_id: str) -> Turn:
    """Return how the call stands, as far as the transcript tells."""
    messages = list(_messages(_tail(path)))
    own = next((m for m in messages if call_id in _calls(m)), None)
    if own is None:
        return Turn.UNSEEN
    calls = {call for m in messages if m.get("id") == own.get("id") for call in _calls(m)}
    if len(calls) > 1:
        return Turn.TOGETHER
    return Turn.ALONE if own.get("id") and own.get("stop_reason") else Turn.UNSEEN


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    except OSError:
        return b""


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield what the model said, a piece for each line."""
    for line in data.splitlines():
        if b'"tool_use"' not in line:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut at the beginning of the tail, or not written to its end
        message = entry.get("message") if isinstance(entry, dict) else None
        if isinstance(message, dict) and entry.get("type") == "assistant":
            yield message


def _calls(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [
        str(block.get("id"))
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "tool_use"
    ]
