"""Which text of a reply belongs to which question of a card.

Parts are given by their numbers, “1: 2, 2: 1 3” or line by line; by one line for each that is
missing; or one after another, where the reply is for the first that is missing.
"""

from __future__ import annotations

import re
from itertools import islice

from pynchy.channels.numbered import hints
from pynchy.channels.numbered.choosing import Picked, choose
from pynchy.channels.numbered.counting import count
from pynchy.channels.numbered.normalize import narrow
from pynchy.channels.numbered.types import Hint, NumberedCard

# “1:30” and “1.5” are no parts.
_MARKER = re.compile(
    r"(?<![^\s,;、،])(?:[qQ](?:uestion)?[ \t]{0,3})?([0-9]{1,2})[ \t]{0,3}"
    r"(?::(?![0-9]{2}(?![0-9]))|=|[.)](?=\s))"
)
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}\Z")
_COMMA = re.compile(r"[,;、،]")
_AROUND = ",;、،， \t\r\n"
_MAX_MARKERS = 50


def split(card: NumberedCard, text: str) -> dict[int, str] | Hint:
    """Return the text for each question that the reply is about."""
    if len(card.questions) == 1:
        return {1: text}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [_MARKER.match(narrow(line)) for line in lines]
    if all(marked):
        return _gather(card, [part for line in lines for part in _marked(card, line)])
    if any(marked):
        return hints.unclear_parts(card)
    if len(lines) > 1:
        in_order = len(lines) == len(card.missing)
        return (
            dict(zip(card.missing, lines, strict=True)) if in_order else hints.unclear_parts(card)
        )
    return _next(card, text.strip())


def _marked(card: NumberedCard, line: str) -> list[tuple[int, str]]:
    """Return the numbered parts of a line that begins with one."""
    plain = narrow(line)
    found: list[tuple[int, int, int]] = []
    for marker in islice(_MARKER.finditer(plain), _MAX_MARKERS):
        if not found or _begins(card, plain[found[-1][2] : marker.start()], int(marker[1])):
            found.append((int(marker[1]), marker.start(), marker.end()))
    ends = [start for _, start, _ in found[1:]] + [len(line)]
    return [
        (number, line[start:end].strip(_AROUND))
        for (number, _, start), end in zip(found, ends, strict=True)
    ]


def _begins(card: NumberedCard, before: str, number: int) -> bool:
    """True if another part begins after this text: after a comma, or after bare numbers."""
    if not 1 <= number <= len(card.questions):
        return False
    return bool(_COMMA.match(before.rstrip()[-1:])) or count(before) is not None


def _gather(card: NumberedCard, parts: list[tuple[int, str]]) -> dict[int, str] | Hint:
    texts: dict[int, str] = {}
    for number, text in parts:
        if not 1 <= number <= len(card.questions):
            return hints.unknown_part(card, number)
        if number in texts:
            return hints.twice(card, number)
        if not text:
            return hints.unclear_parts(card)
        texts[number] = text
    return dict(sorted(texts.items()))


def _next(card: NumberedCard, text: str) -> dict[int, str] | Hint:
    """Return the text for the question that it is a label of, else for the next one."""
    first = hints.first(card)
    fitting = [n for n in card.missing if card.choices[n - 1].exact(text)]
    if first in fitting or not fitting:
        return hints.unclear_parts(card) if _is_for_several(card, text) else {first: text}
    return {fitting[0]: text} if len(fitting) == 1 else hints.unclear_parts(card)


def _is_for_several(card: NumberedCard, text: str) -> bool:
    """True if this could as well be one answer for each question that is missing."""
    choices = card.choices[hints.first(card) - 1]
    if choices.exact(text):
        return False
    if choices.question.options and _TIME.match(narrow(text)):
        return True
    missing = len(card.missing)
    numbers = count(text)
    if missing > 1 and numbers is not None and len(numbers.numbers) == missing:
        return True
    pieces = _COMMA.split(text)
    return len(pieces) == missing > 1 and any(
        isinstance(choose(card.choices[number - 1], piece), Picked)
        for number, piece in zip(card.missing, pieces, strict=True)
    )
