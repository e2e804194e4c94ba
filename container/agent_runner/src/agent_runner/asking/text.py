"""Say a Result in words that a model acts on rightly.

No text can be read as consent unless a person gave it, and a text without a live answer says what
to do next.
"""

import json
from collections.abc import Mapping
from typing import assert_never

from agent_runner.asking._model import Answer, Outcome, Result

# What an answer says it came from where no person gave it.
_BY_RULE = "rule"
_SILENCE = "Silence is not consent: do not act as if the answer were yes."
_SECONDS_PER_MINUTE = 60


def describe(result: Result) -> str:
    """Return the text of one result."""
    head = _head(result)
    body = [_answer(answer) for answer in result.answers]
    repeated = [_repeated(result)] if result.repeated else []
    return "\n\n".join([*repeated, head, *body])


def describe_asked(result: Result) -> str:
    """Return the text for a call that did not want to wait."""
    return (
        f"Asked; not waiting. The question is open under request_id {result.request_id}."
        f" {_how_it_comes(result)}"
    )


def describe_permission(result: Result) -> str:
    """Return why a call is not allowed: all but a person's yes is a no."""
    if result.outcome is Outcome.ANSWERED and result.channel == _BY_RULE:
        return (
            f"A rule of the group denies this ({result.answered_by}); nobody was asked."
            " Do not do the same in another way."
        )
    if result.outcome is Outcome.ANSWERED:
        words = f" They say: {result.note}" if result.note else ""
        return f"{result.answered_by or 'A person'} did not allow this.{words}"
    if result.outcome is Outcome.PENDING:
        return (
            "Nobody has answered in time, so this is not allowed now. The question stays open"
            f" (request {result.request_id}), and you are told if a person allows it later."
            " Silence is not consent: do not do the same in another way."
        )
    return describe(result)


def describe_allowed(
    by: str | None, note: str, given: Mapping[str, object], edited: Mapping[str, object] | None
) -> str:
    """Return what the model is to know of a call that was allowed; empty if that is nothing.

    What a person has changed of it stands nowhere else: the model's history has the call it made.
    """
    who, says = by or "A person", f"They say: {note}" if note else ""
    if edited is None:
        return f"{who} allowed this call. {says}" if note else ""
    names = [name for name in {**given, **edited} if given.get(name) != edited.get(name)]
    changes = [_change(name, given, edited) for name in names]
    head = (
        f"{who} changed this call before they allowed it. The call as you made it was not run;"
        " the result is that of the changed one:"
    )
    return "\n\n".join([head, *changes, *([says] if says else [])])


def _change(name: str, given: Mapping[str, object], edited: Mapping[str, object]) -> str:
    if name not in edited:
        return f"{name} was left out. You had: {_value(given[name])}"
    had = f"You had: {_value(given[name])}" if name in given else "You had none."
    return f"{name}: {_value(edited[name])}\n{had}"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def describe_check(result: Result, *, is_ours: bool) -> str:
    """Return the text for a call that looks for an answer; `is_ours`: asked by this process."""
    if is_ours or result.outcome is not Outcome.PENDING:
        return describe(result)
    return (
        f"No answer yet under request_id {result.request_id}.{_host_hint(result)} This server has"
        " not asked that question itself, so it cannot tell whether there is one: if you asked it"
        " earlier in this conversation, it stays open. Use the request_id that ask_user returned,"
        f" not the short id that people see. {_SILENCE}"
    )


def describe_late(results: tuple[Result, ...]) -> str:
    """Return what is appended to a result when answers have come for earlier questions."""
    if not results:
        return ""
    intro = "Meanwhile an earlier question of yours was settled:"
    return "\n\n".join(["", "---", intro, *(describe(result) for result in results)])


def describe_withdrawal(result: Result) -> str:
    """Return what became of a withdrawal."""
    if result.outcome is Outcome.WITHDRAWN:
        return f"Question {result.request_id} is withdrawn. Nobody will answer it."
    if result.outcome is Outcome.PENDING:
        return (
            f"The withdrawal of question {result.request_id} is on its way;"
            f" the host has not confirmed it yet.{_host_hint(result)}"
        )
    return f"The question was over before it could be withdrawn.\n\n{describe(result)}"


def is_error(result: Result) -> bool:
    """Say whether asking itself failed."""
    return result.outcome in {Outcome.ERROR, Outcome.UNDELIVERABLE}


def waiting_message(seconds: float, *, picked_up: bool, unseen: str = "") -> str:
    """Return the progress line of a call that waits; `unseen` is why nobody can have seen it."""
    if not picked_up:
        return f"no pynchy host has picked this up yet ({_duration(seconds)})"
    if unseen:
        return f"nobody has seen this yet ({_duration(seconds)}): {unseen}; it is tried again"
    return f"waiting for a person ({_duration(seconds)})"


def _duration(seconds: float) -> str:
    if seconds < _SECONDS_PER_MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds // _SECONDS_PER_MINUTE:.0f} min"


def _head(result: Result) -> str:
    match result.outcome:
        case Outcome.ANSWERED:
            return _decided(result) if result.is_decision else f"Answered{_who_when(result)}."
        case Outcome.DECLINED:
            return (
                f"Declined{_who_when(result)}: the person will not answer this.{_reason(result)}"
                " This is not consent: do not do what you asked about."
            )
        case Outcome.DEFAULTED:
            return "Nobody answered in time, so the defaults that you set apply. No person chose:"
        case Outcome.EXPIRED:
            closed = "nobody answered and the question is now closed."
            return f"Expired: {closed}{_reason(result)} {_SILENCE}"
        case Outcome.WITHDRAWN | Outcome.CLEARED:
            return f"Withdrawn: the question was taken back.{_reason(result)}"
        case Outcome.UNDELIVERABLE:
            return f"The question could not be shown to anyone: {result.error or 'no channel'}."
        case Outcome.PENDING | Outcome.DISMISSED:
            return _still_open(result)
        case Outcome.ELSEWHERE:
            return (
                "The answer to this question was handed to a resumed session of this conversation."
                " It is not shown here. Stop acting on this question: the other session does."
            )
        case Outcome.ERROR:
            return f"The question was not answered: {result.error}"
        case _ as unreachable:
            assert_never(unreachable)


def _decided(result: Result) -> str:
    if result.is_granted:
        return (
            f"Approved{_who_when(result)}. This is for what you asked and nothing else; follow what"
            " they add."
        )
    return (
        f"Denied{_who_when(result)}: a person has said no. Do not do what you asked about, nor the"
        " same in another way."
    )


def _reason(result: Result) -> str:
    return f" Reason: {result.reason}" if result.reason else ""


def _still_open(result: Result) -> str:
    if result.outcome is Outcome.DISMISSED:
        return (
            "A person has closed what showed the question. That is no answer: it stays open under"
            f" request_id {result.request_id}. {_how_it_comes(result)}"
        )
    return (
        f"No answer yet. The question stays open under request_id {result.request_id}."
        f"{_host_hint(result)} {_how_it_comes(result)}"
    )


def _how_it_comes(result: Result) -> str:
    return (
        "The answer will come with the result of your next pynchy tool call, or by check_answer"
        f' with request_id "{result.request_id}"; if this session has ended by then, it is resumed'
        " with the answer where the host can do that. Go on with work that does not depend on it,"
        " or end your turn."
        f" {_SILENCE}"
    )


def _host_hint(result: Result) -> str:
    if result.picked_up:
        return ""
    return (
        " No pynchy host has picked it up: the host seems not to be running, so nobody has seen"
        " it yet. It will be shown once the host (`pynchy serve`) runs."
    )


def _repeated(result: Result) -> str:
    return (
        "Already delivered: this outcome was handed over before, to you or to a resumed session."
        f" Do not apply it a second time. (question {result.request_id})"
    )


def _who_when(result: Result) -> str:
    who = f" by {result.answered_by}" if result.answered_by else ""
    via = f" via {result.channel}" if result.channel else ""
    when = f" at {result.answered_at}" if result.answered_at else ""
    return who + via + when


def _answer(answer: Answer) -> str:
    parts = [", ".join(answer.selected)] if answer.selected else []
    if answer.text:
        parts.append(f"(in their own words) {answer.text}" if parts else answer.text)
    return f"Question: {answer.question}\nAnswer: {' '.join(parts) or '(empty)'}"
