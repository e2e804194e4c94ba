"""What a text says to one card, once it is known that it is for that card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pynchy.channels.numbered import hints, vocabulary
from pynchy.channels.numbered.choosing import Picked, Unclear, Written, choose
from pynchy.channels.numbered.counting import count
from pynchy.channels.numbered.normalize import fold_word
from pynchy.channels.numbered.parts import split
from pynchy.channels.numbered.types import Hint, NumberedCard, PartAnswer
from pynchy.model import Answer

_CANCEL = frozenset(fold_word(word) for word in vocabulary.CANCEL if word)
_MAX_CANCEL_LENGTH = 40


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
            case Picked(labels, sure):
                parts.append(PartAnswer(number, Answer(labels)))
                certain = certain and sure
            case Written(own):
                parts.append(PartAnswer(number, Answer(text=own)))
                certain = False
            case Unclear() as unclear:
                return Doubtful(hints.again(card, number, unclear), unclear.numeric)
    return Answered(tuple(parts), certain)


def is_label(card: NumberedCard, text: str) -> bool:
    """True if the text is exactly a label of a question that is missing."""
    return any(_fits(card, number, text) for number in card.missing)


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
