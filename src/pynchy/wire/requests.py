"""What agents write, checked once: requests become models here, or a reason that the agent can use.

Strict about types, deaf to unknown fields, and bounded in size, depth and length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
)
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.events import Announcement
from pynchy.model import (
    GROUP_PATTERN,
    ID_PATTERN,
    SESSION_PATTERN,
    GroupName,
    Urgency,
)
from pynchy.wire.asked import AskRequest, Id, Incoming, Label, SessionIdText, ShortText
from pynchy.wire.common import VERSION

MAX_REQUEST_BYTES = 256 * 1024
MAX_DEPTH = 16
_BRIEF = 40
_MAX_DETAIL = 500
SESSION_EVENT = "session:event"
DESK_ANSWER = "ask_user:desk_answer"
ANNOUNCEMENT = "announce:message"
_USABLE_ID = re.compile(rf"{ID_PATTERN}\Z")
_USABLE_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")
_USABLE_SESSION_ID = re.compile(rf"{SESSION_PATTERN}\Z")

Model = TypeVar("Model", bound=BaseModel)


def _cut(value: object) -> object:
    return value[:_MAX_DETAIL] if isinstance(value, str) else value


class CancelRequest(Incoming):
    """`ask_user:cancel`: the call is gone, the question stays."""

    v: Literal[1]
    type: Literal["ask_user:cancel"]
    request_id: Id


class WithdrawRequest(Incoming):
    """`ask_user:withdraw`: the agent no longer needs an answer. A long reason is cut."""

    v: Literal[1]
    type: Literal["ask_user:withdraw"]
    request_id: Id
    reason: Annotated[str, BeforeValidator(_cut)] = ""
    maybe_typed: bool = False


class ParkRequest(Incoming):
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


class AnswerIn(Incoming):
    """What was chosen and written for one question."""

    selected: Annotated[list[Label], Field(default=[], max_length=100)]
    text: Annotated[str | None, Field(max_length=20_000)] = None


class DeskAnswer(Incoming):
    """`ask_user:desk_answer`: the person in front of the agent's terminal has answered there."""

    v: Literal[1]
    type: Literal["ask_user:desk_answer"]
    request_id: Id
    by: Label
    answers: Annotated[list[AnswerIn], Field(min_length=1, max_length=4)]


class AnnouncementIn(Incoming):
    """`announce:message`: an agent tells people something. A long text is cut.

    `at` is when it was told.
    """

    v: Literal[1]
    type: Literal["announce:message"]
    request_id: Id
    title: Label
    text: Annotated[str, BeforeValidator(_cut)] = ""
    agent: ShortText = ""
    task: ShortText = ""
    urgency: Annotated[Urgency, Field(strict=False)] = Urgency.NORMAL
    at: Annotated[AwareDatetime | None, Field(strict=False)] = None

    def to_model(self, group: GroupName) -> Announcement:
        """Return it as the host knows it."""
        return Announcement(group, self.title, self.text, self.agent, self.task, self.urgency)


class SessionWord(StrEnum):
    """What a runner can say of its session."""

    STARTED = "started"
    WAITING = "waiting"
    PARKED = "parked"
    FINISHED = "finished"
    FAILED = "failed"
    DENIED = "denied"


class SessionEvent(Incoming):
    """`session:event`: a runner says what its session is doing. A long detail is cut."""

    v: Literal[1]
    type: Literal["session:event"]
    request_id: Id
    session_id: Annotated[SessionIdText, Field(min_length=1)]
    event: Annotated[SessionWord, Field(strict=False)]
    agent: ShortText | None = None
    detail: Annotated[str | None, BeforeValidator(_cut)] = None


class Envelope(Incoming):
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
    if why := why_unusable(value, MAX_DEPTH):
        raise MalformedRequest(why, request_id)
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
    return _read_only(envelope, SESSION_EVENT, SessionEvent)


def read_desk_answer(envelope: Envelope) -> DeskAnswer:
    """Return what was answered at the agent's terminal. Raise MalformedRequest, likewise."""
    return _read_only(envelope, DESK_ANSWER, DeskAnswer)


def read_announcement(envelope: Envelope) -> AnnouncementIn:
    """Return what an agent tells people. Raise MalformedRequest, likewise."""
    return _read_only(envelope, ANNOUNCEMENT, AnnouncementIn)


def _read_only(envelope: Envelope, type_: str, model: type[Model]) -> Model:
    _check_version(envelope)
    if envelope.type != type_:
        raise _unknown_type(envelope, (type_,))
    return _checked(envelope, model)


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


def why_unusable(value: object, most_levels: int) -> str:
    """Say why some JSON cannot be kept as it is read; empty if it can."""
    if depth_of(value) > most_levels:
        return f"nested deeper than {most_levels} levels"
    # 1e999 is JSON, and is read as infinity, which nothing can be written with.
    return "a number in it is too large" if _has_infinity(value) else ""


def _has_infinity(value: object) -> bool:
    level = [value]
    while level:
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return True
        level = [child for item in level for child in _children(item)]
    return False


def depth_of(value: object) -> int:
    """Return how deep the value of some JSON is nested."""
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
