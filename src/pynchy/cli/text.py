"""Make text that others wrote safe to print, and say times in few letters.

What comes out of `clean` cannot move the cursor, colour the screen, set a title or reorder what
is read, and nothing of it is left out: a character that would do so is shown by its number. Who
says yes must have seen all that was asked.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from pynchy.unicode_safety import CONTROLS, HIDDEN, SURROGATES, name_all, number_of

# Colours alone, and no more than a program would write: digits could say something, too.
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")
_RISKY_IN_JSON = re.compile(f"[{CONTROLS}{HIDDEN}{SURROGATES}]")
# Terminals do not agree on how wide these are: a line of them runs out of sight.
_OF_NO_WIDTH = re.compile("([\u200d\U0001f3fb-\U0001f3ff])\\1*")
_LINE_BREAK = " ⏎ "
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){4,}")
_GAP = re.compile(r"[^\S\n]{4,}")
# What a list prints of one text, whatever an agent put into it; `pynchy show` prints the whole.
_MAX_LINE = 500

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def clean(text: str) -> str:
    """Return the text as it may be shown in a terminal, whole; line breaks stay."""
    named = name_all(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4))
    # Many empty lines would push what follows out of sight.
    named = _EMPTY_LINES.sub(lambda gap: f"\n⟨{gap[0].count(chr(10)) - 1} empty lines⟩\n", named)
    return _OF_NO_WIDTH.sub(number_of, named)


def flat(text: str) -> str:
    """Return the whole text in one line, safe to show; line breaks and wide gaps are named.

    A gap could push what follows to where another line would begin.
    """
    line = _LINE_BREAK.join(line.strip() for line in clean(text).split("\n") if line.strip())
    return _GAP.sub(lambda gap: f" ⟨{len(gap[0])} spaces⟩ ", line)


def printed(text: str) -> str:
    """Return what a program printed, safe to show, without its colours."""
    return clean(_COLOURS.sub("", text))


def one_line(text: str, most: int | None = None) -> str:
    """Return the first line of the text, safe to show, with … where more was cut off.

    What is far behind the cut is not looked at: lists are drawn often, of texts that others wrote.
    """
    begin = text.lstrip()
    looked_at = begin[: 2 * _MAX_LINE]
    lines = [line.strip() for line in clean(looked_at).split("\n") if line.strip()]
    first = lines[0] if lines else ""
    limit = _MAX_LINE if most is None else most
    if len(first) > limit:
        return first[: limit - 1] + "…"
    if len(lines) <= 1 and len(begin) == len(looked_at):
        return first
    return f"{first} …" if len(first) + 2 <= limit else first[: limit - 1] + "…"


def to_json(value: object) -> str:
    """Return JSON in one line that is safe to show in a terminal, and the same value to parse."""
    text = json.dumps(value, ensure_ascii=False)
    return _RISKY_IN_JSON.sub(lambda found: json.dumps(found.group())[1:-1], text)


def duration(seconds: float) -> str:
    """Return the duration in its two largest units, such as 2h 5m."""
    left = max(0, int(seconds))
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0s"


def moment(at: datetime) -> str:
    """Return the moment as the person's own clock shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def read_moment(text: str) -> datetime:
    """Return the moment that the host wrote. Raise ValueError if it is none."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
