"""Turn what a person typed or clicked into answers to what was asked.

An exact label beats a number, a number that fits no option is refused rather than taken as text,
and everything else is free text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from pynchy.errors import InvalidReply
from pynchy.model import Answer, Draft, Ending, OutcomeKind, Question

MAX_TEXT = 20_000
_NUMBER = re.compile(r"[0-9]{1,3}\Z")
_SEPARATOR = re.compile(r"[,;]\s*")


def spread(questions: tuple[Question, ...], values: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the values of each question: all for a single one, else one value for each.

    Raise InvalidReply if there are more or fewer values than questions.
    """
    if len(questions) == 1:
        return (values,)
    if len(values) != len(questions):
        raise InvalidReply(
            f"{len(questions)} questions were asked and {len(values)} values given: "
            "give one for each, or answer one at a time with its number"
        )
    return tuple((value,) for value in values)


def match(question: Question, values: tuple[str, ...]) -> Answer:
    """Return the answer that the values stand for. Raise InvalidReply if they fit nothing."""
    cleaned = [value.strip() for value in values if value.strip()]
    whole = " ".join(cleaned)
    if not cleaned:
        raise InvalidReply("an answer is missing")
    if not question.options:
        return check(question, Answer(text=whole))
    choices = _Choices.of(question)
    if label := choices.find(whole):
        return Answer(selected=(label,))
    if question.multi_select:
        cleaned = [part for value in cleaned for part in _parts(choices, value)]
    labels = [choices.find(value) for value in cleaned]
    chosen = tuple(label for label in labels if label is not None)
    if question.multi_select:
        rest = [v for v, label in zip(cleaned, labels, strict=True) if label is None]
        return check(question, Answer(tuple(dict.fromkeys(chosen)), " ".join(rest) or None))
    # One choice and several words: prose, unless every word is a choice of its own.
    every = len(chosen) == len(cleaned)
    return check(question, Answer(selected=chosen) if every else Answer(text=whole))


def check(question: Question, answer: Answer) -> Answer:
    """Return the answer if the question allows it. Raise InvalidReply otherwise."""
    text = answer.text.strip() if answer.text else None
    labels = frozenset(question.labels)
    unknown = [label for label in answer.selected if label not in labels]
    if unknown:
        raise InvalidReply(f"there is no option {unknown[0]!r}")
    if len(answer.selected) > 1 and not question.multi_select:
        raise InvalidReply(f"only one of these can be chosen: {', '.join(answer.selected)}")
    if not answer.selected and not text:
        raise InvalidReply("an answer is missing")
    if text and len(text) > MAX_TEXT:
        raise InvalidReply(f"an answer may have at most {MAX_TEXT} characters")
    return Answer(answer.selected, text)


def complete(drafts: Iterable[Draft], at: datetime, channel: str | None) -> Ending:
    """Return the ending that drafts for every question make together."""
    ordered = sorted(drafts, key=lambda draft: draft.question)
    return Ending(
        OutcomeKind.ANSWERED,
        at,
        answers=tuple(draft.answer for draft in ordered),
        by=", ".join(dict.fromkeys(draft.by for draft in ordered)),
        channel=channel,
    )


def defaults(questions: tuple[Question, ...]) -> tuple[Answer, ...]:
    """Return the asker's own defaults as answers."""
    return tuple(match(question, question.default) for question in questions)


@dataclass(frozen=True, slots=True)
class _Choices:
    """The labels of one question, folded once however many values a reply has."""

    labels: tuple[str, ...]
    folded: Mapping[str, str]

    @classmethod
    def of(cls, question: Question) -> Self:
        labels = question.labels
        return cls(labels, {label.casefold(): label for label in labels})

    def find(self, value: str) -> str | None:
        """Return the label that the value names. Raise InvalidReply for a number without one."""
        if label := self.folded.get(value.casefold()):
            return label
        if not _NUMBER.match(value):
            return None
        if 1 <= int(value) <= len(self.labels):
            return self.labels[int(value) - 1]
        raise InvalidReply(f"there is no option {value}: choose 1 to {len(self.labels)}")


def _parts(choices: _Choices, value: str) -> list[str]:
    """Return `1, 3` as two values; a text with commas stays one."""
    parts = _SEPARATOR.split(value)
    every = all(_NUMBER.match(part) or choices.find(part) for part in parts)
    return parts if every and value not in choices.labels else [value]
