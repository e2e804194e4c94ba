"""The only place on the agent's side where mailbox JSON becomes values and values become JSON.

Whatever the bytes hold, reading them ends in a value or in BadFile.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from agent_runner.asking._model import (
    Announcement,
    Answer,
    Option,
    Outcome,
    Question,
    Request,
    RequestId,
    Result,
    WhyAsked,
)
from agent_runner.errors import BadFile

VERSION = 1

TYPE_ASK = "ask_user:ask"
TYPE_CANCEL = "ask_user:cancel"
TYPE_WITHDRAW = "ask_user:withdraw"
TYPE_PARK = "ask_user:park"
TYPE_DESK_ANSWER = "ask_user:desk_answer"
TYPE_ANNOUNCE = "announce:message"

# The others say how a call ended, and are never written by a host.
_OF_CALLS = {Outcome.PENDING, Outcome.DISMISSED, Outcome.ELSEWHERE, Outcome.ERROR}
_ON_DISK = tuple(set(Outcome) - _OF_CALLS)


def whole(text: str) -> str:
    """Join split surrogates and replace lone ones, so that the text can be written as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encode(fields: Mapping[str, object]) -> bytes:
    """Return the bytes of one mailbox file."""
    return whole(json.dumps({"v": VERSION, **fields}, ensure_ascii=False)).encode()


def timestamp() -> str:
    """Return this moment as the mailbox writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def decode(data: bytes) -> dict[str, object]:
    """Return the object in the file. Raise BadFile if there is none of a version that we know."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise BadFile(f"not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise BadFile("not a JSON object")
    if value.get("v") != VERSION:
        raise BadFile(f"version {value.get('v')!r} is not {VERSION}")
    return value


def encode_request(request: Request, *, session_id: str, lease: str) -> bytes:
    """Return `tasks/<id>.json` for a question; what is empty is left out."""
    optional = {
        "title": request.title,
        "agent": request.agent,
        "task": request.task,
        "session_id": session_id,
        "wait_seconds": request.wait_seconds and _plain_number(request.wait_seconds),
        "lease": lease,
        "hears_dismissal": request.hears_dismissal,
        "terminal": request.terminal and asdict(request.terminal),
    }
    return encode(
        {
            "type": TYPE_ASK,
            "request_id": request.request_id,
            **_asked_fields(request),
            "urgency": request.urgency,
            **{name: value for name, value in optional.items() if value},
        }
    )


def _asked_fields(request: Request) -> dict[str, object]:
    if request.permission is not None:
        asked = request.permission
        fields = {"program": asked.program, "tool": asked.tool, "input": asked.input}
        why = {name: value for name, value in asdict(asked.why or WhyAsked()).items() if value}
        more = {"cwd": asked.cwd, "editable": asked.editable, "why": why}
        return {"permission": {**fields, **{name: value for name, value in more.items() if value}}}
    if request.approval is not None:
        told = asdict(request.approval)
        return {"approval": {name: value for name, value in told.items() if value}}
    return {"questions": [_question_fields(question) for question in request.questions]}


def encode_about(type_: str, request_id: RequestId) -> bytes:
    """Return a cancel, withdraw or park request."""
    return encode({"type": type_, "request_id": request_id})


def encode_taken_back(request_id: RequestId, reason: str, *, maybe_typed: bool) -> bytes:
    """Return that a terminal asks no more, and whether an answer may have been typed before."""
    told = {"reason": reason, "maybe_typed": maybe_typed}
    return encode({"type": TYPE_WITHDRAW, "request_id": request_id, **told})


def encode_desk_answer(request_id: RequestId, by: str, answers: Sequence[Answer]) -> bytes:
    """Return what a person has answered in the terminal of the agent's own client."""
    given = [{"selected": list(one.selected), "text": one.text} for one in answers]
    return encode({"type": TYPE_DESK_ANSWER, "request_id": request_id, "by": by, "answers": given})


def encode_announcement(told: Announcement) -> bytes:
    """Return `tasks/<id>.json` for what wants no answer; what is empty is left out."""
    fields = {name: value for name, value in asdict(told).items() if value}
    return encode({"type": TYPE_ANNOUNCE, **fields, "at": timestamp()})


def _plain_number(seconds: float) -> float:
    return int(seconds) if float(seconds).is_integer() else seconds


def _question_fields(question: Question) -> dict[str, object]:
    fields: dict[str, object] = {"question": question.question}
    if question.header:
        fields["header"] = question.header
    if question.options:
        fields["options"] = [_option_fields(option) for option in question.options]
        fields["multiSelect"] = question.multi_select
    if question.options_only:
        fields["options_only"] = True
    if question.default is not None:
        default = question.default
        fields["default"] = default if isinstance(default, str) else list(default)
    return fields


def _option_fields(option: Option) -> dict[str, str]:
    fields = {
        "label": option.label,
        "description": option.description,
        "preview": option.preview,
    }
    return {name: value for name, value in fields.items() if value}


def decode_response(data: bytes, request_id: RequestId) -> Result:
    """Return what the host says about this question. Raise BadFile if it says nothing we know."""
    fields = decode(data)
    if fields.get("request_id") != request_id:
        raise BadFile("it is for another question")
    error, outcome = optional_text(fields, "error"), fields.get("outcome")
    return Result(
        request_id,
        Outcome.ERROR if error and outcome is None else decode_outcome(outcome),
        answers=decode_answers(fields.get("answers")),
        answered_by=optional_text(fields, "answered_by"),
        channel=optional_text(fields, "channel"),
        answered_at=optional_text(fields, "answered_at"),
        error=error,
        reason=optional_text(fields, "reason"),
        input=_decode_input(fields.get("input")),
    )


def decode_dismissal(data: bytes, request_id: RequestId) -> tuple[Result, bool]:
    """Return what the host says of a closed popup, and whether the question stays open.

    Raise BadFile if it says nothing we know.
    """
    fields = decode(data)
    if fields.get("request_id") != request_id:
        raise BadFile("it is for another question")
    result = Result(
        request_id,
        Outcome.DISMISSED,
        answered_by=optional_text(fields, "by"),
        implied_choice=optional_text(fields, "implied_choice"),
    )
    return result, fields.get("open") is True


def _decode_input(value: object) -> Mapping[str, object] | None:
    if value is not None and not isinstance(value, dict):
        raise BadFile("input is not an object")
    return value


def decode_outcome(value: object) -> Outcome:
    """Return how a question ended. Raise BadFile for what no host may write."""
    if value not in _ON_DISK:
        raise BadFile(f"unknown outcome {value!r}")
    return Outcome(str(value))


def optional_text(fields: Mapping[str, object], name: str) -> str | None:
    """Return the text under that name, None where there is none. Raise BadFile for the rest."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise BadFile(f"{name} is not a text")
    return value and whole(value)


def decode_answers(value: object) -> tuple[Answer, ...]:
    """Return the answers of a response or of initial.json. Raise BadFile if they are none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadFile("answers is not a list")
    return tuple(_decode_answer(item) for item in value)


def _decode_answer(value: object) -> Answer:
    if not isinstance(value, dict):
        raise BadFile("an answer is not an object")
    return Answer(
        question=optional_text(value, "question") or "",
        selected=_labels(value.get("selected")),
        text=optional_text(value, "text"),
        values=_labels(value.get("values")),
    )


def _labels(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadFile("selected is not a list of labels")
    return tuple(whole(item) for item in value)


def decode_questions(value: object) -> tuple[Question, ...]:
    """Return the questions of initial.json. Raise BadFile if they are none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadFile("questions is not a list")
    return tuple(_decode_question(item) for item in value)


def _decode_question(value: object) -> Question:
    if not isinstance(value, dict):
        raise BadFile("a question is not an object")
    options = value.get("options") or []
    if not isinstance(options, list):
        raise BadFile("options is not a list")
    default = value.get("default")
    return Question(
        question=optional_text(value, "question") or "",
        header=optional_text(value, "header") or "",
        options=tuple(_decode_option(option) for option in options),
        multi_select=value.get("multiSelect") is True,
        default=_labels(default) if isinstance(default, list) else optional_text(value, "default"),
        options_only=value.get("accepts_text") == "no",
    )


def _decode_option(value: object) -> Option:
    if isinstance(value, str):
        return Option(value)
    if not isinstance(value, dict):
        raise BadFile("an option is not an object")
    return Option(
        label=optional_text(value, "label") or "",
        description=optional_text(value, "description") or "",
        preview=optional_text(value, "preview") or "",
    )
