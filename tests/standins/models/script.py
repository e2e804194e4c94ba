"""What the scripted model does: turns, each a list of things that it says and calls.

A turn answers one request. A tool is named as its server names it (`ask_user`); the dialect finds
the name under which the program offers it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Say:
    """The model writes this."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """The model calls a tool that the program offers."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refuse:
    """The API fails with this status instead of a turn."""

    status: int
    message: str = "scripted failure"


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The API accepts the request, and its stream ends before the model has said a word."""


Part = Say | CallTool
Turn = Sequence[Part] | Refuse | BreakOff


def AskUser(question: str, *options: str, **arguments: Any) -> CallTool:  # noqa: N802 - reads as a part
    """Return the call of `ask_user` with one question."""
    asked: dict[str, Any] = {"question": question}
    if options:
        asked["options"] = [{"label": label} for label in options]
    return CallTool("ask_user", {"questions": [asked], **arguments})


def CheckAnswer(request_id: str, seconds: float = 0) -> CallTool:  # noqa: N802 - reads as a part
    """Return the call of `check_answer`. The id `last` stands for the one that was told last."""
    return CallTool("check_answer", {"request_id": request_id, "timeout": seconds})


def load_script(path: Path) -> list[Turn]:
    """Return the turns of a JSON file: a list of lists of {"say"} or {"call", "arguments"}.

    Raise ValueError if it is something else.
    """
    turns = json.loads(path.read_bytes())
    if not isinstance(turns, list) or not all(isinstance(turn, list) for turn in turns):
        raise ValueError(f"{path}: must be a list of turns, each a list of parts")
    return [[_part(path, part) for part in turn] for turn in turns]


def _part(path: Path, fields: object) -> Part:
    match fields:
        case {"say": str(text)}:
            return Say(text)
        case {"call": str(tool), "arguments": dict(arguments)}:
            return CallTool(tool, arguments)
        case {"call": str(tool)}:
            return CallTool(tool)
    raise ValueError(f'{path}: a part is {{"say": text}} or {{"call": tool, "arguments": …}}')
