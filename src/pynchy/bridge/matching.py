"""Turn what a person typed or clicked into answers to what was asked.

A number means the position that is shown (see `choices`); one that fits no option is refused rather
than taken as text, and everything else is free text, where the question accepts that.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pynchy.choices import no_words, read_typed
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
    return check(question, read_typed(question, values, lead), lead)


def check(question: Question, answer: Answer, lead: str = "") -> Answer:
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
    taken = question.takes_words if answer.selected else question.takes_words_alone
    if text and not taken:
        raise InvalidReply(no_words(question, lead))
    return Answer(answer.selected, text)


def complete(drafts: Iterable[Draft], at: datetime, channel: str | None) -> Ending:
    """Return the ending that drafts for every question make together."""
    ordered = sorted(drafts, key=lambda draft: draft.question)
    ids = {(draft.channel, draft.user_id) for draft in ordered}
    return Ending(
        OutcomeKind.ANSWERED,
        at,
        answers=tuple(draft.answer for draft in ordered),
        by=", ".join(dict.fromkeys(draft.by for draft in ordered)),
        channel=channel,
        user_id=(ordered[0].user_id or None) if len(ids) == 1 else None,
    )


def defaults(questions: tuple[Question, ...]) -> tuple[Answer, ...]:
    """Return the asker's own defaults as answers: a label is meant, even if it is a number."""
    return tuple(_default(question) for question in questions)


def _default(question: Question) -> Answer:
    if set(question.default) <= set(question.labels):
        return check(question, Answer(tuple(dict.fromkeys(question.default))))
    # No person typed it: what is nearly a label is meant as it stands.
    return check(question, read_typed(question, question.default, asks_back=False))
