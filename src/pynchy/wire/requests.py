"""What agents write, checked once: requests become models here, or a reason that the agent can use.

Strict about types, deaf to unknown fields, and bounded in size, depth and length.
"""

from __future__ import annotations

import hashlib
import operator
import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.model import (
    GROUP_PATTERN,
    ID_PATTERN,
    SESSION_PATTERN,
    AcceptsText,
    Option,
    Question,
    Urgency,
)
from pynchy.unicode_safety import strip_hidden
from pynchy.wire.common import VERSION

MAX_REQUEST_BYTES = 256 * 1024
MAX_DEPTH = 16
_BRIEF = 40
_MAX_DETAIL = 500
SESSION_EVENT = "session:event"
_USABLE_ID = re.compile(rf"{ID_PATTERN}\Z")
_USABLE_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")
_USABLE_SESSION_ID = re.compile(rf"{SESSION_PATTERN}\Z")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
ShortText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
# It becomes an argument of the launcher's command: never an option, never a control character.
# Sessions of earlier versions may have such an id; for a new one see `usable_session_id`.
_SESSION_ID = r"^([^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?$"
SessionIdText = Annotated[str, StringConstraints(max_length=500, pattern=_SESSION_ID)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Id = Annotated[str, StringConstraints(pattern=rf"^{ID_PATTERN}$", max_length=64)]


Model = TypeVar("Model", bound=BaseModel)


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


def _as_seen(label: str) -> str:
    """Return what a person can tell of a label: neither case, kinds of space nor what is hidden."""
    seen = unicodedata.normalize("NFC", strip_hidden(label)).casefold()
    return " ".join(seen.split())


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# A limit stands inside of "or None": beside it, pydantic would measure the None as well.
Options = Annotated[list[Annotated[OptionIn, BeforeValidator(_option)]], Field(max_length=100)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=100)]


class QuestionIn(_Incoming):
    """A question as an agent writes it."""

    question: Text
    header: ShortText | None = None
    options: Options | None = None
    multi_select: Annotated[bool | None, Field(alias="multiSelect")] = None
    default: Annotated[Labels | None, BeforeValidator(_as_list)] = None
    # Left out of the digest where it is not set: questions that were asked before keep theirs.
    options_only: Annotated[bool | None, Field(exclude_if=operator.not_)] = None

    @model_validator(mode="after")
    def _labels_differ(self) -> QuestionIn:
        labels = [_as_seen(option.label) for option in self.options or ()]
        if len(set(labels)) != len(labels):
            raise ValueError(
                "option labels must differ from each other in more than case, spaces and hidden"
                " characters: a person could not tell them apart"
            )
        if not self.multi_select and len(self.default or ()) > 1:
            raise ValueError("a default of several labels needs multiSelect")
        if self.options_only and not self.options:
            raise ValueError("options_only needs options to choose from")
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
            accepts_text=AcceptsText.NO if self.options_only else AcceptsText.ANSWER,
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
    session_id: SessionIdText | None = None
    wait_seconds: Annotated[float | None, Field(ge=0, le=366 * 86_400)] = None
    lease: Id | None = None

    def size(self) -> int:
        """Return how many bytes what is asked takes."""
        return len(self.model_dump_json())

    def digest(self) -> str:
        """What tells a repeated request from another one under the same id.

        Who asks again, and how long they wait this time, makes no other question of it.
        """
        asked = self.model_dump_json(exclude={"lease", "session_id", "wait_seconds"})
        return hashlib.sha256(asked.encode()).hexdigest()


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


class ParkRequest(_Incoming):
    """`ask_user:park`: the agent puts the call off and ends, to make it again when resumed."""

    v: Literal[1]
    type: Literal["ask_user:park"]
    request_id: Id


Request = AskRequest | CancelRequest | WithdrawRequest | ParkRequest
_REQUESTS: dict[str, type[Request]] = {
    "ask_user:ask": AskRequest,
    "ask_user:cancel": CancelRequest,
    "ask_user:withdraw": WithdrawRequest,
    "ask_user:park": ParkRequest,
}


class SessionWord(StrEnum):
    """What a runner can say of its session."""

    STARTED = "started"
    WAITING = "waiting"
    PARKED = "parked"
    FINISHED = "finished"
    FAILED = "failed"
    DENIED = "denied"


def _cut(value: object) -> object:
    return value[:_MAX_DETAIL] if isinstance(value, str) else value


class SessionEvent(_Incoming):
    """`session:event`: a runner says what its session is doing. A long detail is cut."""

    v: Literal[1]
    type: Literal["session:event"]
    request_id: Id
    session_id: Annotated[SessionIdText, Field(min_length=1)]
    event: Annotated[SessionWord, Field(strict=False)]
    agent: ShortText | None = None
    detail: Annotated[str | None, BeforeValidator(_cut)] = None


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


def usable_session_id(value: str) -> bool:
    """True if the value can be the id of a new session."""
    return _USABLE_SESSION_ID.match(value) is not None


def check_session_id(value: str, request_id: str) -> None:
    """Raise MalformedRequest if the value cannot be the id of a new session."""
    if not usable_session_id(value):
        raise MalformedRequest(
            "session_id: letters, digits and _ . : @ / + = - only, neither = nor - first, and at"
            " most 500 of them",
            request_id,
        )


def read_request(envelope: Envelope) -> Request:
    """Return the checked request. Raise MalformedRequest with a reason that the agent can use."""
    _check_version(envelope)
    model = _REQUESTS.get(envelope.type)
    if model is None:
        raise _unknown_type(envelope, _REQUESTS)
    return _checked(envelope, model)


def read_session_event(envelope: Envelope) -> SessionEvent:
    """Return what a runner says of its session. Raise MalformedRequest, likewise."""
    _check_version(envelope)
    if envelope.type != SESSION_EVENT:
        raise _unknown_type(envelope, (SESSION_EVENT,))
    return _checked(envelope, SessionEvent)


def _check_version(envelope: Envelope) -> None:
    version = envelope.body.get("v")
    if version != VERSION or isinstance(version, bool):
        raise MalformedRequest(
            f"v: this host speaks version {VERSION}, not {_brief(version)}", envelope.request_id
        )


def _unknown_type(envelope: Envelope, known: Iterable[str]) -> MalformedRequest:
    reason = f"type: {_brief(envelope.type)} is none of {', '.join(known)}"
    return MalformedRequest(reason, envelope.request_id)


def _checked(envelope: Envelope, model: type[Model]) -> Model:
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
