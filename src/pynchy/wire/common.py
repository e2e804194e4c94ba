"""The pieces that every file, listing and stream shares."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pynchy.model import (
    AcceptsText,
    Answer,
    Ending,
    Option,
    PendingQuestion,
    Question,
    RequestId,
    SessionId,
)

# Controls that JSON leaves as they are, and what changes the direction of text or hides in it.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
# The source of what a terminal's title asks, by the mailbox: the answer is typed there.
TERMINAL = "terminal"
# The source of what phux, a terminal multiplexer, tells that a program asks: it is typed, too.
PHUX = "phux"
VERSION = 1


def question_out(question: Question) -> dict[str, Any]:
    """Return the question in the shape that agents know; what is as usual is left out."""
    out: dict[str, Any] = {
        "question": question.text,
        "header": question.header,
        "options": [_option_out(option) for option in question.options],
        "multiSelect": question.multi_select,
    }
    if question.default:
        out["default"] = list(question.default)
    if question.accepts_text is not AcceptsText.ANSWER:
        out["accepts_text"] = question.accepts_text
    if question.needs_word:
        out["needs_word"] = True
    return out


def _option_out(option: Option) -> dict[str, Any]:
    out: dict[str, Any] = {
        "label": option.label,
        "description": option.description,
        "preview": option.preview,
    }
    if option.value != option.label:
        out["value"] = option.value
    if option.confirm:
        out["confirm"] = option.confirm
    if option.narrows:
        out["narrows"] = option.narrows
    if option.needs_sight:
        out["needs_sight"] = True
    return out


def answers_out(
    questions: tuple[Question, ...], answers: tuple[Answer, ...]
) -> list[dict[str, Any]]:
    """Return each answer beside the text of its question."""
    return [_answer_out(q, a) for q, a in zip(questions, answers, strict=False)]


def _answer_out(question: Question, answer: Answer) -> dict[str, Any]:
    out = {"question": question.text, "selected": list(answer.selected), "text": answer.text}
    values = [o.value for o in question.options if o.label in answer.selected]
    return out | ({"values": values} if set(values) != set(answer.selected) else {})


def timestamp(at: datetime) -> str:
    """Return the moment in UTC, as every file and listing writes it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session_id(value: str | None) -> SessionId:
    """Return the session id of a request; unknown is empty."""
    return SessionId(value or "")


def ending_of(pending: PendingQuestion) -> Ending:
    """Return how the question ended. Raise ValueError if it has not."""
    if pending.ending is None:
        raise ValueError(f"{pending.request_id} has not ended")
    return pending.ending


def edited_input(ending: Ending) -> Mapping[str, Any] | None:
    """Return the input that a person has put in place of a call's; None where nobody has."""
    return next((one.edited for one in ending.answers if one.edited is not None), None)


def dump(body: dict[str, Any]) -> bytes:
    """Return the body as one compact line of JSON, which a terminal can show as it is."""
    line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line).encode()


def unseen_json(request_id: RequestId, why: str) -> bytes:
    """Return what an agent reads while nobody can have seen its question."""
    return dump({"v": VERSION, "request_id": request_id, "why": why})


def dismissal_json(
    request_id: RequestId, by: str, implied_choice: str, *, stays_open: bool
) -> bytes:
    """Return what an agent reads when a person has closed what showed its question."""
    implied = {"implied_choice": implied_choice} if implied_choice else {}
    body = {"v": VERSION, "request_id": request_id, "by": by, "open": stays_open, **implied}
    return dump(body)
