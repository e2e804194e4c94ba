"""Turn what a person typed or clicked into answers to what was asked.

A number means the position that is shown (see `choices`); one that fits no option is refused rather
than taken as text, and everything else is free text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pynchy.choices import Choices
from pynchy.errors import InvalidReply
from pynchy.model import Answer, Draft, Ending, OutcomeKind, Question

MAX_TEXT = 20_000


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


def match(question: Question, values: tuple[str, ...], lead: str = "") -> Answer:
    """Return the answer that the values stand for. Raise InvalidReply if they fit nothing.

    `lead` is what a person types before the answer to this question of several.
    """
    cleaned = [value.strip() for value in values if value.strip()]
    whole = " ".join(cleaned)
    if not cleaned:
        raise InvalidReply("an answer is missing")
    if not question.options:
        return check(question, Answer(text=whole))
    choices = Choices.of(question.labels, lead)
    if question.multi_select:
        chosen, rest = choices.find_several(cleaned)
        return check(question, Answer(chosen, rest or None))
    if label := choices.find(whole):
        return Answer(selected=(label,))
    # One choice and several words: prose, unless every word is a choice of its own.
    if all(choices.meant(value) for value in cleaned):
        labels = [choices.find(value) for value in cleaned]
        return check(question, Answer(tuple(label for label in labels if label)))
    return check(question, Answer(text=whole))


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
    """Return the asker's own defaults as answers: a label is meant, even if it is a number."""
    return tuple(_default(question) for question in questions)


def _default(question: Question) -> Answer:
    if set(question.default) <= set(question.labels):
        return check(question, Answer(tuple(dict.fromkeys(question.default))))
    return match(question, question.default)
