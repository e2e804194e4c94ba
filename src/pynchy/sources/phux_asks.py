"""What a terminal of phux asks, by what is heard of it, and what is typed for an answer. Pure.

    asked ─► stands ─┬─ the same again ─► nothing
                     ├─ something else ─► the older one is over, this one stands
                     └─ another title, or the terminal is closed ─► asked no more

The same words that are asked anew after that are another ask.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from pynchy import wire
from pynchy.model import (
    GROUP_PATTERN,
    ID_PATTERN,
    GroupName,
    PendingQuestion,
    Question,
    RequestId,
)
from pynchy.pending.base import Key
from pynchy.phux import Asked, parse_title
from pynchy.typed_line import MAX_TYPED_BYTES, one_typed_line
from pynchy.unicode_safety import clip

SOMETHING_ELSE = "the program asks something else"
NO_MORE = "the program asks it no more"
CLOSED = "its terminal is closed"

_MAX_TITLE = 200
_REPORT = re.compile(rf"pynchy:({GROUP_PATTERN}):({ID_PATTERN})(?:#[0-9]+)?")
_REQUEST_ID = re.compile(r"phux-([0-9]{1,10})-[0-9a-f]{24}")


class CannotType(ValueError):
    """Why this answer is none that can be typed, in words for a person."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that is asked. `serial` tells it from what was asked before, in whatever words.

    `is_found`: it stood when we came, so that it may have been asked and answered long ago.
    """

    asked: Asked
    serial: int
    is_found: bool = False


class TerminalAsks:
    """What one terminal asks, as far as it has been heard."""

    def __init__(self) -> None:
        self.title = ""
        self.ask: Ask | None = None
        self.why_over = NO_MORE
        # Nothing was heard yet: what was asked before may stand or not.
        self.is_silent = True
        self._serial = 0

    def hear(self, line: wire.PhuxLine) -> None:
        """Note what phux tells."""
        match line.event:
            case "asked":
                self._note(line.asked, SOMETHING_ELSE)
            case "title_changed":
                self.find_title(line.title or "", is_found=False)
            case "pane_closed":
                self._note(None, CLOSED)
            case _:
                pass  # nothing that is asked

    def find_title(self, title: str, *, is_found: bool = True) -> None:
        """Note the terminal's title. Of one that asks, phux tells itself where it has changed."""
        asked = parse_title(title)
        if asked is None:
            self.title = clip(one_typed_line(title), _MAX_TITLE)
            self._note(None, NO_MORE)
        elif is_found:
            self._note(asked, SOMETHING_ELSE, is_found=True)

    def _note(self, asked: Asked | None, why: str, *, is_found: bool = False) -> None:
        self.is_silent = False
        if asked is None:
            self.ask, self.why_over = None, why
        elif self.ask is None or _plain(self.ask.asked) != _plain(asked):
            self._serial += 1
            self.ask, self.why_over = Ask(asked, self._serial, is_found), why


def _plain(asked: Asked) -> tuple[str, ...]:
    """Return what tells asks apart: a title is not always read to the letter."""
    return (asked.id, asked.question.strip(), *(one.strip() for one in asked.suggestions))


def request_id_of(terminal: str, asked: Asked, number: int) -> RequestId:
    """Return the same id for the same ask of a terminal; `number` counts how often it was asked."""
    told = json.dumps([terminal, *_plain(asked), number])
    digest = hashlib.sha256(told.encode(errors="replace")).hexdigest()
    return RequestId(f"phux-{terminal.removeprefix('@')}-{digest[:24]}")


def terminal_of(request_id: RequestId) -> str:
    """Return the terminal that asks under that id; empty if it is none of ours."""
    found = _REQUEST_ID.fullmatch(request_id)
    return f"@{found[1]}" if found else ""


def reported_question(ask_id: str) -> Key | None:
    """Return the question of ours that was reported to phux under that id, if it looks so."""
    found = _REPORT.fullmatch(ask_id)
    return (GroupName(found[1]), RequestId(found[2])) if found else None


def typed_line(pending: PendingQuestion) -> tuple[str, bool]:
    """Return the line that answers, and whether it is what the program offered. Raise CannotType.

    It is one line without anything that a terminal takes for a command.
    """
    answer = pending.ending.answers[0] if pending.ending and pending.ending.answers else None
    if answer is None:
        raise CannotType("there is no answer")
    chosen = [_value(pending.questions[0], label) for label in answer.selected]
    if len(chosen) == 1 and not answer.text:
        return chosen[0], True
    line = one_typed_line(", ".join(part for part in (*chosen, answer.text) if part))
    if not line:
        raise CannotType("it is empty")
    if len(line.encode()) > MAX_TYPED_BYTES:
        raise CannotType(f"it is longer than {MAX_TYPED_BYTES:,} bytes")
    return line, False


def _value(question: Question, label: str) -> str:
    return next((o.value for o in question.options if o.label == label), label)
