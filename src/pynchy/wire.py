"""The only place where JSON becomes a model and a model becomes JSON.

What comes in is checked here, once; what goes out has the shapes of docs/mailbox.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.events import Event
from pynchy.model import (
    GROUP_PATTERN,
    ID_PATTERN,
    Answer,
    Ending,
    Option,
    PendingQuestion,
    Question,
    RequestId,
    SessionId,
    Urgency,
)

VERSION = 1
MAX_REQUEST_BYTES = 256 * 1024
MAX_DEPTH = 16
_BRIEF = 40
_USABLE_ID = re.compile(rf"{ID_PATTERN}\Z")
_USABLE_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
ShortText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Id = Annotated[str, StringConstraints(pattern=rf"^{ID_PATTERN}$", max_length=64)]


class _Incoming(BaseModel):
    """Strict about types, deaf to unknown fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


class OptionIn(_Incoming):
    """An option as an agent writes it."""

    label: Label
    description: Annotated[str, Field(max_length=4_000)] = ""
    preview: Annotated[str, Field(max_length=64_000)] = ""


def _option(value: object) -> object:
    return {"label": value} if isinstance(value, str) else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class QuestionIn(_Incoming):
    """A question as an agent writes it."""

    question: Text
    header: ShortText | None = None
    options: Annotated[
        list[Annotated[OptionIn, BeforeValidator(_option)]] | None, Field(max_length=100)
    ] = None
    multi_select: Annotated[bool | None, Field(alias="multiSelect")] = None
    default: Annotated[
        list[Label] | None, BeforeValidator(_as_list), Field(min_length=1, max_length=100)
    ] = None

    @model_validator(mode="after")
    def _labels_differ(self) -> QuestionIn:
        labels = [option.label.casefold() for option in self.options or ()]
        if len(set(labels)) != len(labels):
            raise ValueError("option labels must differ from each other")
        if not self.multi_select and len(self.default or ()) > 1:
            raise ValueError("a default of several labels needs multiSelect")
        return self

    def to_model(self) -> Question:
        """Return the question as the host knows it."""
        options = tuple(Option(o.label, o.description, o.preview) for o in self.options or ())
        return Question(
            text=self.question,
            header=self.header or "",
            options=options,
            multi_select=bool(self.multi_select),
            default=tuple(self.default or ()),
        )


class AskRequest(_Incoming):
    """`ask_user:ask`: the agent wants an answer."""

    v: Literal[1]
    type: Literal["ask_user:ask"]
    request_id: Id
    questions: Annotated[list[QuestionIn], Field(min_length=1, max_length=4)]
    title: ShortText | None = None
    agent: ShortText | None = None
    task: ShortText | None = None
    urgency: Annotated[Urgency | None, Field(strict=False)] = None
    session_id: ShortText | None = None
    wait_seconds: Annotated[float | None, Field(ge=0, le=366 * 86_400)] = None
    lease: Id | None = None

    def digest(self) -> str:
        """What tells a repeated request from another one under the same id."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class CancelRequest(_Incoming):
    """`ask_user:cancel`: the call is gone, the question stays."""

    v: Literal[1]
    type: Literal["ask_user:cancel"]
    request_id: Id


class WithdrawRequest(_Incoming):
    """`ask_user:withdraw`: the agent no longer needs an answer."""

    v: Literal[1]
    type: Literal["ask_user:withdraw"]
    request_id: Id


Request = AskRequest | CancelRequest | WithdrawRequest
_REQUESTS: dict[str, type[Request]] = {
    "ask_user:ask": AskRequest,
    "ask_user:cancel": CancelRequest,
    "ask_user:withdraw": WithdrawRequest,
}


class Envelope(_Incoming):
    """The part of a request that says who should handle it."""

    type: str
    request_id: str | None
    body: dict[str, Any]


def read_envelope(data: bytes, name: str) -> Envelope:
    """Return the request's type and body. Raise MalformedRequest if there is no telling.

    `name` is the file's stem: where the content cannot be read, it is the id to answer to.
    """
    named = usable_id(name)
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        raise MalformedRequest(f"not JSON: {exc}", named) from exc
    if not isinstance(value, dict):
        raise MalformedRequest("not a JSON object", named)
    request_id = usable_id(value.get("request_id")) or (
        named if "request_id" not in value else None
    )
    if _depth(value) > MAX_DEPTH:
        raise MalformedRequest(f"nested deeper than {MAX_DEPTH} levels", request_id)
    kind = value.get("type")
    if not isinstance(kind, str):
        raise MalformedRequest("type: a string is required", request_id)
    return Envelope(type=kind, request_id=request_id, body=value)


def usable_id(value: object) -> str | None:
    """Return the value if it can be a request id."""
    return value if isinstance(value, str) and _USABLE_ID.match(value) else None


def usable_group(value: str) -> bool:
    """True if the value can be the name of a group."""
    return _USABLE_GROUP.match(value) is not None


def read_request(envelope: Envelope) -> Request:
    """Return the checked request. Raise MalformedRequest with a reason that the agent can use."""
    version = envelope.body.get("v")
    if version != VERSION or isinstance(version, bool):
        raise MalformedRequest(
            f"v: this host speaks version {VERSION}, not {_brief(version)}", envelope.request_id
        )
    model = _REQUESTS.get(envelope.type)
    if model is None:
        known = ", ".join(_REQUESTS)
        reason = f"type: {_brief(envelope.type)} is none of {known}"
        raise MalformedRequest(reason, envelope.request_id)
    try:
        return model.model_validate(envelope.body)
    except ValidationError as exc:
        raise MalformedRequest(explain(exc), envelope.request_id) from exc


def explain(exc: ValidationError) -> str:
    """Return pydantic's findings in one line, without the values."""
    found = exc.errors(include_url=False, include_input=False, include_context=False)
    parts = [f"{'.'.join(map(str, e['loc'])) or 'value'}: {e['msg']}" for e in found[:5]]
    return "; ".join(parts)


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [child for item in level for child in _children(item)]
    return deepest - 1


def _children(value: object) -> Iterable[object]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _BRIEF else text[: _BRIEF - 1] + "…"


# What the agent is given.


def response_json(pending: PendingQuestion) -> bytes:
    """Return the response of a question that has ended."""
    ending = _ending_of(pending)
    body: dict[str, Any] = {
        "v": VERSION,
        "request_id": pending.request_id,
        "outcome": ending.outcome,
        "answers": answers_out(pending.questions, ending.answers),
        "answered_by": ending.by,
        "channel": ending.channel,
        "answered_at": timestamp(ending.at),
    }
    if ending.outcome == "undeliverable":
        body["error"] = ending.reason or "no channel could show the question"
    elif ending.reason:
        body["reason"] = ending.reason
    return _dump(body)


def error_json(request_id: RequestId, error: str) -> bytes:
    """Return the response to a request that could not be taken."""
    return _dump({"v": VERSION, "request_id": request_id, "error": error})


def initial_json(pending: PendingQuestion, prompt: str) -> bytes:
    """Return what a resumed session begins with."""
    ending = _ending_of(pending)
    return _dump(
        {
            "v": VERSION,
            "session_id": pending.session_id,
            "request_id": pending.request_id,
            "outcome": ending.outcome,
            "questions": [question_out(q) for q in pending.questions],
            "answers": answers_out(pending.questions, ending.answers),
            "answered_by": ending.by,
            "answered_at": timestamp(ending.at),
            "prompt": prompt,
        }
    )


def host_json(wait_seconds: float) -> bytes:
    """Return what the host tells every agent of its group."""
    return _dump({"v": VERSION, "wait_seconds": wait_seconds})


def claim_json(claim: str, at: datetime) -> bytes:
    """Return the receipt that the host itself takes before it resumes a session."""
    return _dump({"v": VERSION, "by": "host", "at": timestamp(at), "claim": claim})


def read_claim(data: bytes) -> str | None:
    """Return the host's secret from a receipt, or None if it is not the host's."""
    try:
        value = from_json(data)
    except ValueError:
        return None
    claim = value.get("claim") if isinstance(value, dict) else None
    return claim if isinstance(claim, str) else None


def read_boot_id(data: bytes) -> str:
    """Return the boot id of a lease; empty where it says none."""
    try:
        value = from_json(data)
    except ValueError:
        return ""
    boot_id = value.get("boot_id") if isinstance(value, dict) else None
    return boot_id if isinstance(boot_id, str) else ""


def rejected_json(name: str, reason: str, at: datetime, content: bytes) -> bytes:
    """Return the record of a request that was refused, with the beginning of what it said."""
    head = content[:4_096].decode("utf-8", "backslashreplace")
    return _dump({"name": name, "reason": reason, "at": timestamp(at), "content": head})


# What the host keeps.

_PENDING = TypeAdapter(PendingQuestion)
_ENDING = TypeAdapter(Ending)
_EVENT = TypeAdapter(Event)


def pending_json(pending: PendingQuestion) -> bytes:
    """Return the record of a question."""
    return _dump({"v": VERSION, **_pending_dict(pending)})


def read_pending(data: bytes) -> PendingQuestion:
    """Return the recorded question. Raise ValueError if the record is damaged."""
    value = from_json(data)
    if not isinstance(value, dict) or value.get("v") != VERSION:
        raise ValueError("not a record of this version")
    value["questions"] = [_question_back(q) for q in value.get("questions", ())]
    return _PENDING.validate_python(value, strict=False)


def ending_json(ending: Ending) -> bytes:
    """Return the outcome file of a question."""
    return _dump({"v": VERSION, **_ENDING.dump_python(ending, mode="json")})


def read_ending(data: bytes) -> Ending:
    """Return the recorded outcome. Raise ValueError if the record is damaged."""
    return _ENDING.validate_json(data, strict=False)


def pending_view(pending: PendingQuestion) -> dict[str, Any]:
    """Return the question as listings and the HTTP interface show it."""
    view = _pending_dict(pending)
    late = view.pop("late")
    del view["digest"], view["lease"]
    view["delivery_error"] = late["error"]
    view["delivery_attempts"] = late["attempts"]
    view["retry_at"] = late["retry_at"]
    view["drafts"] = [{"question": d.question, "by": d.by} for d in pending.drafts]
    defaults_at = pending.defaults_at
    view["defaults_at"] = timestamp(defaults_at) if defaults_at else None
    if pending.ending:
        view["ending"] = {
            **ending_view(pending.ending),
            "answers": answers_out(pending.questions, pending.ending.answers),
        }
    return view


def ending_view(ending: Ending) -> dict[str, Any]:
    """Return the outcome as a person who came second is told it."""
    return {
        "outcome": ending.outcome,
        "answered_by": ending.by,
        "channel": ending.channel,
        "answered_at": timestamp(ending.at),
        "reason": ending.reason,
        "summary": ending.describe(),
    }


def event_json(sequence: int, event: Event) -> bytes:
    """Return the event as one line of the audit log and of the live stream."""
    raw = _EVENT.dump_python(event, mode="json")
    asked = raw.pop("asked")
    body = {"seq": sequence, "type": raw.pop("kind"), "id": event.request_id}
    if asked:
        first = event.asked[0]
        body |= {"question": first.question, "suggestions": first.suggestions, "questions": asked}
    body |= {key: value for key, value in raw.items() if value not in (None, "")}
    return _dump(body)


def read_sequence(line: bytes) -> int | None:
    """Return the sequence number of a line of the audit log, or None if it is damaged."""
    try:
        value = from_json(line)
    except ValueError:
        return None
    sequence = value.get("seq") if isinstance(value, dict) else None
    return sequence if isinstance(sequence, int) else None


def read_event_kind(line: bytes) -> str:
    """Return the type of a whole line of the audit log."""
    return str(from_json(line).get("type", ""))


def question_out(question: Question) -> dict[str, Any]:
    """Return the question in the shape that agents know."""
    options = [
        {"label": o.label, "description": o.description, "preview": o.preview}
        for o in question.options
    ]
    out: dict[str, Any] = {
        "question": question.text,
        "header": question.header,
        "options": options,
        "multiSelect": question.multi_select,
    }
    return out | ({"default": list(question.default)} if question.default else {})


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


def _pending_dict(pending: PendingQuestion) -> dict[str, Any]:
    body: dict[str, Any] = _PENDING.dump_python(pending, mode="json")
    body["questions"] = [question_out(q) for q in pending.questions]
    first = pending.cards[0] if pending.cards else None
    body["channel_name"] = pending.channel_name
    body["chat_jid"] = first.chat if first else ""
    body["message_id"] = first.message_id if first else None
    return body


def _question_back(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "text": value["question"],
        "header": value["header"],
        "options": value["options"],
        "multi_select": value["multiSelect"],
        "default": value.get("default", ()),
    }


def _ending_of(pending: PendingQuestion) -> Ending:
    if pending.ending is None:
        raise ValueError(f"{pending.request_id} has not ended")
    return pending.ending


def _dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
