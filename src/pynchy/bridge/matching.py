"""Turn what a person typed or clicked into answers to what was asked.

A number means the position that is shown (see `choices`); one that fits no option is refused rather
than taken as text, and everything else is free text, where the question accepts that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pynchy.bridge.lifecycle import may_be_same_person
from pynchy.choices import no_words, read_typed, read_word
from pynchy.errors import InvalidReply, PartTaken
from pynchy.model import Answer, Draft, Ending, OutcomeKind, PendingQuestion, Question, Reply
from pynchy.permissions.card import GRANTS

MAX_TEXT = 20_000


def read_reply(pending: PendingQuestion, reply: Reply) -> list[Draft]:
    """Return what the reply answers, question by question. Raise InvalidReply if it fits none."""
    questions = pending.questions
    if reply.question is None:
        if reply.answers:
            given = _checked(pending, reply.answers)
        else:
            values_of = enumerate(spread(questions, reply.values))
            given = {n: _matched(pending, reply, n, values) for n, values in values_of}
    elif not 1 <= reply.question <= len(questions):
        raise InvalidReply(f"there is no question {reply.question}: choose 1 to {len(questions)}")
    elif reply.answers:
        given = {reply.question - 1: check(questions[reply.question - 1], reply.answers[0])}
    else:
        number = reply.question - 1
        given = {number: _matched(pending, reply, number, reply.values)}
    user_id = reply.user_id or ""
    return [Draft(n, answer, reply.by, reply.channel, user_id) for n, answer in given.items()]


def complete(pending: PendingQuestion, given: Sequence[Draft], at: datetime) -> Ending | None:
    """Return the ending that all parts make with what is given now; None while some are missing.

    Raise PartTaken if somebody else has answered one of them; one's own may be changed.
    """
    if pending.approvals_needed > 1:
        return _approved(pending, given[-1], at)
    parts = {draft.question: draft for draft in pending.drafts}
    for draft in given:
        taken = parts.get(draft.question, draft)
        if not taken.has_author_of(draft):
            number, answer = taken.question + 1, taken.answer.describe()
            raise PartTaken(f"question {number} was answered by {taken.by} already: {answer}")
        parts[draft.question] = draft
    if len(parts) < len(pending.questions):
        return None
    ordered = [parts[number] for number in sorted(parts)]
    return _answered(ordered, tuple(draft.answer for draft in ordered), given[-1], at)


def _answered(
    drafts: Sequence[Draft], answers: tuple[Answer, ...], last: Draft, at: datetime
) -> Ending:
    authors = {(draft.channel, draft.user_id) for draft in drafts}
    return Ending(
        OutcomeKind.ANSWERED,
        at,
        answers=answers,
        by=", ".join(dict.fromkeys(draft.by for draft in drafts)),
        channel=last.channel,
        user_id=(drafts[0].user_id or None) if len(authors) == 1 else None,
    )


def _approved(pending: PendingQuestion, given: Draft, at: datetime) -> Ending | None:
    """Return the ending where enough people have approved, or one has not; None until then."""
    if not says_yes(pending.questions[0], given.answer):
        return _answered([given], (given.answer,), given, at)
    others = [draft for draft in pending.drafts if not may_be_same_person(draft, given)]
    approvals = [*others, given]
    if len(approvals) < pending.approvals_needed:
        return None
    notes = [f"{draft.by}: {draft.answer.text}" for draft in approvals if draft.answer.text]
    answer = Answer(given.answer.selected, "\n".join(notes) or None)
    return _answered(approvals, (answer,), given, at)


def says_yes(question: Question, answer: Answer) -> bool:
    """True if the answer allows or approves what the question is about."""
    chosen = {option.value for option in question.options if option.label in answer.selected}
    return bool(chosen) and chosen <= GRANTS


def spread(questions: tuple[Question, ...], values: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the values of each question: all for a single one, else one value for each.

    Raise InvalidReply if there are more or fewer values than questions.
    """
    if len(questions) == 1:
        return (values,)
    if len(values) != len(questions):
        given = "1 value" if len(values) == 1 else f"{len(values)} values"
        raise InvalidReply(
            f"{len(questions)} questions were asked and {given} given: "
            "give one for each, or answer one at a time with its number"
        )
    return tuple((value,) for value in values)


def _matched(
    pending: PendingQuestion, reply: Reply, number: int, values: tuple[str, ...]
) -> Answer:
    question = pending.questions[number]
    if reply.chat and question.needs_word:
        typed = " ".join(values)
        return check(question, read_word(question, pending.short_id, typed, is_aimed=False))
    # In a chat the number of the question is typed before the answer; elsewhere it has a place.
    lead = f"{number + 1}: " if reply.chat and len(pending.questions) > 1 else ""
    return match(question, values, lead)


def _checked(pending: PendingQuestion, answers: tuple[Answer, ...]) -> dict[int, Answer]:
    if len(answers) != len(pending.questions):
        raise InvalidReply(f"{len(pending.questions)} answers are needed, {len(answers)} came")
    numbered = enumerate(zip(pending.questions, answers, strict=True))
    # What is left empty stays as somebody has answered it before.
    given = {
        number: check(question, answer)
        for number, (question, answer) in numbered
        if answer.describe().strip() or number + 1 not in pending.answered
    }
    if not given:
        raise InvalidReply("an answer is missing")
    return given


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


def defaults(questions: tuple[Question, ...]) -> tuple[Answer, ...]:
    """Return the asker's own defaults as answers: a label is meant, even if it is a number."""
    return tuple(_default(question) for question in questions)


def _default(question: Question) -> Answer:
    if set(question.default) <= set(question.labels):
        return check(question, Answer(tuple(dict.fromkeys(question.default))))
    # No person typed it: what is nearly a label is meant as it stands.
    return check(question, read_typed(question, question.default, asks_back=False))
