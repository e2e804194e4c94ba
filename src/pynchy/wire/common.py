"""The pieces that every file, listing and stream shares."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from pynchy.model import AcceptsText, Answer, Ending, Option, PendingQuestion, Question, SessionId

# Controls that JSON leaves as they are, and what changes the direction of text or hides in it.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
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
    return out


def _option_out(option: Option) -> dict[str, str]:
    out = {"label": option.label, "description": option.description, "preview": option.preview}
    return out | ({"value": option.value} if option.value != option.label else {})


def answers_out(
    questions: tuple[Question, ...], answers: tuple[Answer, ...]
) -> list[dict[str, Any]]:
    """Return each answer beside the text of its question."""
    return [
        {"question": q.text, "selected": list(a.selected), "text": a.text}
        for q, a in zip(questions, answers, strict=False)
    ]


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


def dump(body: dict[str, Any]) -> bytes:
    """Return the body as one compact line of JSON, which a terminal can show as it is."""
    line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line).encode()
