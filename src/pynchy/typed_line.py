"""A line that is typed into a terminal for an answer, and what became of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

# A terminal that reads lines takes at most 4,095 bytes of one.
MAX_TYPED_BYTES = 4_000

_PASTE_END = re.compile("(?:\x1b\\[|\x9b)20[01]~")
_LINE_END = re.compile("[\t\n\x0b\x0c\r\x85\u2028\u2029]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Typed(StrEnum):
    """What became of an answer that was to be typed."""

    YES = "typed"
    NO = "was not typed"
    MAYBE = "may have been typed"


@dataclass(frozen=True, slots=True)
class TypingResult:
    """What became of it, and why it was not typed, or why nobody can tell."""

    typed: Typed
    why: str = ""


def one_typed_line(text: str) -> str:
    """Return the text as one line: without control characters and the marks of a paste."""
    return _CONTROL.sub("", _LINE_END.sub(" ", _PASTE_END.sub("", text))).strip()
