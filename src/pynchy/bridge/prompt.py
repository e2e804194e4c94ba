"""The text with which a resumed session begins: what was asked, what was answered, go on.

It restates everything, since some agents drop the open question from their history.
"""

from __future__ import annotations

from collections.abc import Sequence

from pynchy.model import Answer, Ending, OutcomeKind, PendingQuestion, Question
from pynchy.wire import ending_of, timestamp

_OPENING = (
    "Before this session stopped, you asked a person{about} with ask_user at {when} "
    "(request {request_id}). Here is the outcome."
)
_RESTATED = (
    "This session stopped soon after it had received an answer, which you may have seen or not. "
    "You had asked a person{about} with ask_user at {when} (request {request_id}). "
    "Here is that outcome again; if you have acted on it already, do not act on it twice."
)


def resume_prompt(pending: PendingQuestion, lost: Sequence[PendingQuestion] = ()) -> str:
    """Return the prompt for a question that has ended, after what the session may have lost."""
    restated = [_outcome(earlier, _RESTATED) for earlier in lost]
    outcome = _outcome(pending, _OPENING)
    return "\n\n".join([*restated, outcome, _closing(ending_of(pending))])


def _outcome(pending: PendingQuestion, opening: str) -> str:
    """Return what was asked and how it ended."""
    ending = ending_of(pending)
    answers = ending.answers or (Answer(),) * len(pending.questions)
    numbered = len(pending.questions) > 1
    about = f" about “{pending.title}”" if pending.title else ""
    when = timestamp(pending.timestamp)
    parts = [opening.format(about=about, when=when, request_id=pending.request_id)]
    for number, (question, answer) in enumerate(
        zip(pending.questions, answers, strict=False), start=1
    ):
        parts.append(_question(question, number if numbered else None))
        parts.append(_answer(answer, ending))
    return "\n\n".join(parts)


def _question(question: Question, number: int | None) -> str:
    head = f"Question {number}: {question.text}" if number else f"Question: {question.text}"
    kind = "Options (several could be chosen):" if question.multi_select else "Options:"
    options = [
        f"- {o.label}" + (f": {o.description}" if o.description else "") for o in question.options
    ]
    return "\n".join([head, *([kind, *options] if options else [])])


def _answer(answer: Answer, ending: Ending) -> str:
    who = ending.by or "a person"
    when = timestamp(ending.at)
    via = f" through {ending.channel}" if ending.channel else ""
    match ending.outcome:
        case OutcomeKind.ANSWERED:
            return f"Answer: {answer.describe()}\n(answered by {who} at {when}{via})"
        case OutcomeKind.DECLINED:
            why = f" They said: {ending.reason}" if ending.reason else ""
            return f"{who} declined to answer at {when}{via}.{why}"
        case OutcomeKind.DEFAULTED:
            return f"Nobody answered. Your own default applies: {answer.describe()} (at {when})"
        case _:
            return f"No answer: the question ended as {ending.outcome} at {when}."


def _closing(ending: Ending) -> str:
    if ending.outcome is OutcomeKind.ANSWERED:
        return "Continue your work with this answer. Do not ask the same question again."
    return "Nobody has given consent. Continue only as far as you may without an answer."
