"""What programs in a terminal tell, checked once: the daemon of Codex, and Claude Code's hooks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.model import Question
from pynchy.wire.asked import Incoming, Label, OptionIn, QuestionIn, SessionIdText
from pynchy.wire.requests import MAX_DEPTH, explain, why_unusable

Model = TypeVar("Model", bound=Incoming)
RpcId = Annotated[int, Field(ge=-(2**63), lt=2**63)] | Annotated[str, Field(max_length=200)]
# As Codex names them; a thread is a session of ours, too.
CodexId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$")]
# A turn of a thread holds its items, and those what they are made of.
_MAX_TURN_DEPTH = 2 * MAX_DEPTH


class CodexMessage(Incoming):
    """A request, a notification (without an id) or a response (without a method)."""

    id: RpcId | None = None
    method: Annotated[str, Field(max_length=200)] = ""
    params: Annotated[dict[str, Any], Field(default={})]
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class CodexStatus(Incoming):
    """Whether a thread waits for a person."""

    type: Annotated[str, Field(max_length=100)]
    activeFlags: Annotated[list[str], Field(default=[])]  # noqa: N815 - as Codex writes it

    @property
    def is_waiting(self) -> bool:
        """True if somebody has to answer before the thread goes on."""
        return self.type == "active" and bool(self.activeFlags)


class CodexThread(Incoming):
    """A thread that the daemon has loaded."""

    id: CodexId
    status: CodexStatus
    cwd: Annotated[str, Field(max_length=4_096)] = ""


class CodexStatusChange(Incoming):
    """`thread/status/changed`."""

    threadId: CodexId  # noqa: N815 - as Codex writes it
    status: CodexStatus


class CodexAsked(Incoming):
    """What all requests for a person have in common."""

    threadId: CodexId  # noqa: N815 - as Codex writes it
    turnId: Annotated[str, Field(max_length=200)]  # noqa: N815
    itemId: Annotated[str, Field(max_length=500)]  # noqa: N815
    approvalId: Annotated[str, Field(max_length=500)] | None = None  # noqa: N815
    startedAtMs: int | None = None  # noqa: N815
    availableDecisions: list[Any] | None = None  # noqa: N815
    cwd: Annotated[str, Field(max_length=4_096)] | None = None

    def digest(self, method: str, rpc_id: int | str) -> str:
        """Return what is the same each time that the daemon shows this request, and no other."""
        own = [self.threadId, self.turnId, self.itemId, self.approvalId, self.startedAtMs]
        return hashlib.sha256(json.dumps([method, rpc_id, *own]).encode()).hexdigest()


class CodexQuestion(Incoming):
    """One question of `request_user_input`."""

    id: Annotated[str, Field(max_length=500)]
    question: str
    header: str = ""
    isOther: bool = False  # noqa: N815 - as Codex writes it
    isSecret: bool = False  # noqa: N815
    options: list[OptionIn] | None = None

    def to_model(self) -> Question:
        """Return the question as the host knows it. Raise MalformedRequest."""
        asked = {
            "question": self.question,
            "header": self.header,
            "options": [option.model_dump() for option in self.options or ()],
            "options_only": bool(self.options) and not self.isOther,
        }
        return read_codex(QuestionIn, asked).to_model()


class CodexQuestions(Incoming):
    """The questions of one call."""

    questions: Annotated[list[CodexQuestion], Field(min_length=1, max_length=4)]


def read_codex_message(data: bytes) -> CodexMessage:
    """Return the message. Raise MalformedRequest if it is none."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        raise MalformedRequest(f"not JSON: {exc}") from exc
    if why := why_unusable(value, _MAX_TURN_DEPTH):
        raise MalformedRequest(why)
    return read_codex(CodexMessage, value)


def read_codex(model: type[Model], value: object) -> Model:
    """Return that part of a message. Raise MalformedRequest if it is none."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        raise MalformedRequest(f"not what Codex sends: {explain(exc)}") from exc


class HookEvent(BaseModel):
    """An event of a session of Claude Code; what it says beside this is not ours to know."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)

    hook_event_name: Label
    session_id: Annotated[SessionIdText, Field(min_length=1)]
    cwd: Annotated[str, StringConstraints(max_length=4_096)] = ""
    agent_id: Annotated[str, StringConstraints(max_length=500)] | None = None
    tool_name: Annotated[str, StringConstraints(max_length=500)] = ""
    tool_input: dict[str, Any] = {}
    # Why it asks, each of any form: it is shown as far as it is understood.
    decision_reason: Any = None
    blocked_path: Any = None
    permission_suggestions: Any = None


def input_digest(given: Mapping[str, Any]) -> str:
    """Return what tells the input of a call from others."""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def read_hook_event(data: bytes) -> HookEvent:
    """Return the event. Raise MalformedRequest if it is none."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        raise MalformedRequest(f"not JSON: {exc}") from exc
    if why := why_unusable(value, MAX_DEPTH):
        raise MalformedRequest(why)
    try:
        return HookEvent.model_validate(value)
    except ValidationError as exc:
        raise MalformedRequest(f"no hook event of Claude Code: {explain(exc)}") from exc
