"""What a text says to one card, once it is known that it is for that card.

A card may hold several questions; which part of the text is for which is found first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from pynchy.channels.numbered import hints, vocabulary
from pynchy.channels.numbered.choosing import Picked, Unclear, Written, choose
from pynchy.channels.numbered.normalize import count, fold_word, narrow
from pynchy.channels.numbered.types import Hint, NumberedCard, PartAnswer
from pynchy.choices import near_labels, read_word
from pynchy.errors import InvalidReply
from pynchy.model import Answer

# “1:30” and “1.5” are no parts.
_MARKER = re.compile(
    r"(?<![^\s,;、،])(?:[qQ](?:uestion)?[ \t]{0,3})?([0-9]{1,2})[ \t]{0,3}"
    r"(?::(?![0-9]{2}(?![0-9]))|=|[.)](?=\s))"
)
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}\Z")
_COMMA = re.compile(r"[,;、،]")
_AROUND = ",;、،， \t\r\n"
_MAX_MARKERS = 50

_CANCEL = frozenset(fold_word(word) for word in vocabulary.CANCEL if word)
_MAX_CANCEL_LENGTH = 40


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
    """Return the text for the question that it is a label of, or nearly, else for the next one."""
    first = hints.first(card)
    fitting = [n for n in card.missing if card.choices[n - 1].exact(text)]
    fitting = fitting or [
        n for n in card.missing if near_labels(text, card.questions[n - 1].labels)
    ]
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


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers to parts of the card; `certain` if all are exact labels or digits."""

    parts: tuple[PartAnswer, ...]
    certain: bool


@dataclass(frozen=True, slots=True)
class Declined:
    """The card is declined."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Nothing can be taken; `numeric` if numbers were given, which are rarely small talk."""

    hint: Hint
    numeric: bool


Meaning: TypeAlias = Answered | Declined | Doubtful


def understand(card: NumberedCard, text: str) -> Meaning:
    """Return what the text says to the card."""
    if not is_label(card, text) and (declined := _declined(text)):
        return declined
    if card.needs_word:
        return _worded(card, text)
    texts = split(card, text)
    if isinstance(texts, Hint):
        return Doubtful(texts, numeric=count(text) is not None)
    parts: list[PartAnswer] = []
    certain = True
    for number, said in texts.items():
        if len(card.questions) > 1 and not _fits(card, number, said) and _declined(said):
            return Doubtful(hints.part_declined(card), numeric=False)
        lead = f"{number}: " if len(card.questions) > 1 else ""
        match choose(card.choices[number - 1], said, lead):
            case Picked(labels, sure, note):
                parts.append(PartAnswer(number, Answer(labels, note)))
                certain = certain and sure
            case Written(own):
                parts.append(PartAnswer(number, Answer(text=own)))
                certain = False
            case Unclear() as unclear:
                return Doubtful(hints.again(card, number, unclear), unclear.numeric)
    return Answered(tuple(parts), certain)


def _worded(card: NumberedCard, text: str) -> Meaning:
    try:
        answer = read_word(card.questions[0], card.short_id, text, is_aimed=True)
    except InvalidReply:
        return Doubtful(hints.needs_word(card), numeric=count(text) is not None)
    return Answered((PartAnswer(1, answer),), certain=True)


def is_label(card: NumberedCard, text: str) -> bool:
    """True if the text is exactly a label of a question that is missing."""
    return not card.needs_word and any(_fits(card, number, text) for number in card.missing)


def is_cancel(text: str) -> bool:
    """True if the text declines, where it is no label."""
    return _declined(text) is not None


def _fits(card: NumberedCard, number: int, text: str) -> bool:
    return card.choices[number - 1].exact(text) is not None


def _declined(text: str) -> Declined | None:
    """Read “cancel” or “cancel: the reason”."""
    word, colon, reason = text.partition(":" if ":" in text[:_MAX_CANCEL_LENGTH] else "：")
    if len(word) > _MAX_CANCEL_LENGTH or fold_word(word) not in _CANCEL:
        return None
    return Declined(reason.strip() or None) if colon else Declined(None)
