"""How a question ended, in words: for the session that is resumed with it, and for cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pynchy.model import (
    Answer,
    DeliveryPath,
    Ending,
    Kind,
    OutcomeKind,
    PendingQuestion,
    Question,
    State,
)
from pynchy.permissions.card import describe_call, is_granted
from pynchy.wire import PHUX, TERMINAL, edited_input, ending_of, timestamp

_OPENING = (
    "Before this session stopped, you {asked} at {when} (request {request_id}). "
    "Here is the outcome."
)
_RESTATED = (
    "This session stopped soon after it had received an answer, which you may have seen or not. "
    "You {asked} at {when} (request {request_id}). "
    "Here is that outcome again; if you have acted on it already, do not act on it twice."
)
_ASKED = {
    Kind.QUESTION: "asked a person{about} with ask_user",
    Kind.APPROVAL: "asked a person for an approval{about}",
    Kind.PERMISSION: "wanted to do what needs a person's permission",
}
_EDITED = "They have changed it: what you may do is not that, but this. Make this very call."
# Nothing is run because of an answer alone.
_MAY_NOW = (
    "You may do this now, just so and once. Nothing has been run for you: do it yourself, if it "
    "is still needed."
)


def resume_prompt(pending: PendingQuestion, lost: Sequence[PendingQuestion] = ()) -> str:
    """Return the prompt for a question that has ended, after what the session may have lost."""
    restated = [_outcome(earlier, _RESTATED) for earlier in lost]
    outcome = _outcome(pending, _OPENING)
    return "\n\n".join([*restated, outcome, _closing(pending)])


def _outcome(pending: PendingQuestion, opening: str) -> str:
    """Return what was asked and how it ended."""
    ending = ending_of(pending)
    answers = ending.answers or (Answer(),) * len(pending.questions)
    numbered = len(pending.questions) > 1
    about = f" about “{pending.title}”" if pending.title else ""
    asked = _ASKED[pending.kind].format(about=about)
    when = timestamp(pending.timestamp)
    parts = [opening.format(asked=asked, when=when, request_id=pending.request_id)]
    for number, (question, answer) in enumerate(
        zip(pending.questions, answers, strict=False), start=1
    ):
        parts.append(_question(question, number if numbered else None))
        parts.append(_answer(answer, ending))
    edited = edited_input(ending)
    if pending.call is not None and edited is not None:
        parts.append(f"{_EDITED}\n\n{describe_call(replace(pending.call, input=edited))}")
    if pending.kind is not Kind.QUESTION and is_granted(pending):
        parts.append(_MAY_NOW)
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


def _closing(pending: PendingQuestion) -> str:
    if pending.kind is not Kind.QUESTION and not is_granted(pending):
        return "This is no consent. Go on without it, or stop."
    if ending_of(pending).outcome is OutcomeKind.ANSWERED:
        return "Continue your work with this answer. Do not ask the same question again."
    return "Nobody has given consent. Continue only as far as you may without an answer."


def words_beside(ending: Ending) -> str:
    """Return what a person wrote beside a choice, or for a reason."""
    notes = [answer.text for answer in ending.answers if answer.text]
    if ending.outcome is OutcomeKind.DECLINED and ending.reason:
        notes.append(ending.reason)
    return " ".join(notes)


def delivery_note(pending: PendingQuestion) -> str:
    """Return what a settled card says of what became of the answer; nothing if all went well."""
    rule = f"No rule was made: {pending.rule_problem}." if pending.rule_problem else ""
    return " ".join(part for part in (_way_note(pending), rule) if part)


def _way_note(pending: PendingQuestion) -> str:
    if pending.ending is None or not pending.resumes:
        return ""
    if pending.source in {PHUX, TERMINAL}:
        is_typed = pending.delivered is DeliveryPath.LIVE
        return f"The answer {pending.late.error}." if pending.late.error and not is_typed else ""
    how = "was parked" if pending.parked else "had stopped"
    how = "received it, then its process died" if pending.late.taker_died else how
    if pending.delivered is DeliveryPath.LATE:
        has = "has the answer" if pending.ending.answers else "knows how this ended"
        return f"The agent {how}; it was resumed and {has}."
    if pending.delivered is DeliveryPath.DISMISSED:
        return f"Not delivered, and dismissed: {pending.late.error}"
    if pending.state is State.RESUMING:
        return f"The agent {how}; resuming it."
    if pending.state in {State.HELD, State.UNDELIVERED} and pending.late.error:
        return f"Not delivered yet: {pending.late.error}"
    return ""
