"""What OpenCode asks people, as a question of ours, and their answer as OpenCode takes it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pynchy import wire
from pynchy.errors import MalformedRequest
from pynchy.model import (
    Answer,
    Ending,
    GroupName,
    Kind,
    OutcomeKind,
    PendingQuestion,
    Question,
    RequestId,
    SessionId,
    Urgency,
)
from pynchy.outcome_text import words_beside
from pynchy.permissions.card import is_granted
from pynchy.sources.base import SourceQuestion
from pynchy.sources.opencode.reading import (
    PROGRAM,
    AskedChoices,
    AskedPermission,
    Notice,
    WaitingChoice,
)
from pynchy.sources.opencode.state import OpenAsk

_SERVER_LETTERS = 12
_ASK_LETTERS = 28


def server_mark(url: str) -> str:
    """Return what the ids of all questions of that server begin with."""
    return f"o{_digest(url)[:_SERVER_LETTERS]}"


def ask_mark(url: str, ask: OpenAsk) -> str:
    """Return what the ids of the question begin with, however often it was cleared and came back.

    It is the same each time, and that of no other server's question.
    """
    own = f"{type(ask.asked).__name__} {ask.session_id} {ask.id}"
    return f"{server_mark(url)}{_digest(own)[:_ASK_LETTERS]}"


def request_id(url: str, ask: OpenAsk, attempt: int = 0) -> RequestId:
    """Return the question's id when it is asked for the n-th time."""
    return RequestId(f"{ask_mark(url, ask)}{attempt:02x}")


def source_question(own_id: RequestId, ask: OpenAsk, group: GroupName, task: str) -> SourceQuestion:
    """Return what people are asked. Raise MalformedRequest if it cannot be asked."""
    session_id = SessionId(ask.session_id if wire.usable_session_id(ask.session_id) else "")
    asked = ask.asked
    match asked:
        case AskedPermission():
            return SourceQuestion(
                group,
                own_id,
                (),
                kind=Kind.PERMISSION,
                agent=PROGRAM,
                task=task,
                session_id=session_id,
                call=asked.call,
            )
        case AskedChoices():
            questions = tuple(_question(choice) for choice in asked.choices)
            return SourceQuestion(
                group, own_id, questions, agent=PROGRAM, task=task, session_id=session_id
            )
        case Notice():
            choice = WaitingChoice(
                asked.question,
                asked.title,
                tuple((label, "") for label in asked.options),
                multiple=False,
                takes_text=True,
            )
            return SourceQuestion(
                group,
                own_id,
                (_question(choice),),
                title=asked.title,
                agent=asked.agent or PROGRAM,
                task=asked.task or task,
                urgency=Urgency(asked.urgency),
                session_id=session_id,
            )


def reply_to(ask: OpenAsk, ended: PendingQuestion) -> tuple[str, Mapping[str, Any]]:
    """Return where an answer is sent, and as what. OpenCode's own "always" is never chosen."""
    asked, ending = ask.asked, ended.ending
    if ending is None:
        raise ValueError("an open question has no answer")
    match asked:
        case AskedPermission():
            path = f"/permission/{asked.id}/reply"
            if is_granted(ended):
                return path, {"reply": "once"}
            words = words_beside(ending)
            return path, {"reply": "reject", **({"message": words} if words else {})}
        case AskedChoices() if ending.outcome is OutcomeKind.DECLINED:
            return f"/question/{asked.id}/reject", {}
        case AskedChoices():
            told = [
                _labels(choice, question, answer)
                for choice, question, answer in zip(
                    asked.choices, ended.questions, ending.answers, strict=False
                )
            ]
            return f"/question/{asked.id}/reply", {"answers": told}
        case Notice():
            text = _prompt(asked, ending)
            prompt = {"messageID": new_message_id(ask), "parts": [{"type": "text", "text": text}]}
            return f"/session/{ask.session_id}/prompt_async", prompt


def new_message_id(ask: OpenAsk) -> str:
    """Return an id as OpenCode makes them: they go by time, and the end is this ask's own."""
    ticks = (int(time.time() * 1_000) * 0x1000 + 1) & 0xFFFF_FFFF_FFFF
    return f"msg_{ticks:012x}{message_suffix(ask)}"


def message_suffix(ask: OpenAsk) -> str:
    """Return what the id of the message ends with that answers this ask."""
    return _digest(f"{ask.session_id} {ask.id}")[:14]


def _question(choice: WaitingChoice) -> Question:
    asked = {
        "question": choice.text,
        "header": choice.header[:500],
        "options": [{"label": label, "description": about} for label, about in choice.options],
        "multiSelect": choice.multiple,
        "options_only": bool(choice.options) and not choice.takes_text,
    }
    try:
        return wire.QuestionIn.model_validate(asked).to_model()
    except ValidationError as exc:
        raise MalformedRequest(f"not what OpenCode asks: {wire.explain(exc)}") from exc


def _labels(choice: WaitingChoice, question: Question, answer: Answer) -> list[str]:
    """Return what was chosen as the server has written it, and what was said."""
    written = {
        option.value: label
        for option, (label, _) in zip(question.options, choice.options, strict=False)
    }
    chosen = [written.get(value, value) for value in answer.selected]
    return [*chosen, *([answer.text] if answer.text else [])]


def _prompt(notice: Notice, ending: Ending) -> str:
    about = notice.title or notice.question
    if ending.outcome is OutcomeKind.DECLINED:
        return f"Your question “{about}” was declined. {words_beside(ending)}".strip()
    said = "; ".join(answer.describe() for answer in ending.answers)
    return f"The answer to your question “{about}”: {said}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
