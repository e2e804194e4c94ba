"""What programs in a terminal tell, checked once: Codex's daemon, Claude Code's hooks, and phux."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

from pynchy.errors import MalformedRequest
from pynchy.model import Option, Question
from pynchy.phux import Asked
from pynchy.wire.asked import Incoming, Label, OptionIn, QuestionIn, SessionIdText, as_seen
from pynchy.wire.requests import MAX_DEPTH, explain, why_unusable

Model = TypeVar("Model", bound=Incoming)
RpcId = Annotated[int, Field(ge=-(2**63), lt=2**63)] | Annotated[str, Field(max_length=200)]
# As Codex names them; a thread is a session of ours, too.
CodexId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$")]
# A turn of a thread holds its items, and those what they are made of.
_MAX_TURN_DEPTH = 2 * MAX_DEPTH
_MAX_LABEL = 500
_MAX_OPTIONS = 16
_MAX_ASK_ID = 128
# What ends a line or more in a terminal, and what cannot be an argument of a program.
_UNTYPABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


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


class PhuxLine(Incoming):
    """One line of `phux watch --json`; what else it tells is not ours to know."""

    event: Annotated[str, Field(max_length=100)]
    terminal: Annotated[str, Field(max_length=200)] = ""
    title: str | None = None
    id: str | None = None
    question: str | None = None
    suggestions: list[str] | None = None

    @property
    def asked(self) -> Asked:
        """What is asked, if that is what the line tells of."""
        return Asked(self.id or "", self.question or "", tuple(self.suggestions or ()))


class PhuxList(Incoming):
    """What `phux ls --json` tells; an older one does not name its terminals."""

    terminals: list[str] | None = None


class PhuxScreen(Incoming):
    """What `phux snapshot --json` tells; an older one does not tell the title."""

    title: str | None = None


class PhuxRefusal(Incoming):
    """Why phux did not do what it was told to; `code` is meant to be gone by."""

    code: Annotated[str, Field(max_length=100)]
    message: str = ""


class PhuxError(Incoming):
    """What phux writes where it fails."""

    error: PhuxRefusal


PhuxModel = TypeVar("PhuxModel", PhuxLine, PhuxList, PhuxScreen, PhuxError)


def read_phux(model: type[PhuxModel], data: bytes) -> PhuxModel:
    """Return what phux has written. Raise MalformedRequest if it is something else."""
    try:
        return model.model_validate(from_json(data, allow_inf_nan=False))
    except ValidationError as exc:
        raise MalformedRequest(f"not what phux writes: {explain(exc)}") from exc
    except ValueError as exc:
        raise MalformedRequest(f"not JSON: {exc}") from exc


def phux_question(asked: Asked) -> Question:
    """Return what is asked as the host knows it. Raise MalformedRequest if it is nothing.

    A suggestion that nobody could choose is left out: an empty one, one that is too long, or one
    that looks like another. The value of an option is what the program offered, to the letter.
    """
    labels = {as_seen(one): one for one in reversed(asked.suggestions) if _is_label(one)}
    kept = [one for one in dict.fromkeys(asked.suggestions) if labels.get(as_seen(one)) == one]
    try:
        text = QuestionIn.model_validate({"question": asked.question}).question
    except ValidationError as exc:
        raise MalformedRequest(f"nothing that can be asked: {explain(exc)}") from exc
    options = [Option(one.strip(), value=one) for one in kept]
    return Question(text, options=tuple(options[:_MAX_OPTIONS]))


def _is_label(suggestion: str) -> bool:
    is_short = len(suggestion) <= _MAX_LABEL
    return is_short and bool(as_seen(suggestion)) and not _UNTYPABLE.search(suggestion)


def phux_ask_id(asked: Asked) -> str:
    """Return what the program calls what it asks; empty for what no command could name."""
    is_usable = len(asked.id) <= _MAX_ASK_ID and not _UNTYPABLE.search(asked.id)
    return asked.id if is_usable else ""


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
