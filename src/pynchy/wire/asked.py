"""What agents ask, as they write it: questions, permissions and approvals, checked once."""

from __future__ import annotations

import hashlib
import operator
import unicodedata
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from pynchy.calls import BASH, ToolCall, WhyAsked
from pynchy.model import (
    ID_PATTERN,
    AcceptsText,
    Kind,
    Option,
    Question,
    Urgency,
)
from pynchy.unicode_safety import strip_hidden

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
ShortText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
# It becomes an argument of the launcher's command: never an option, never a control character.
# Sessions of earlier versions may have such an id; for a new one see `usable_session_id`.
_SESSION_ID = r"^([^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?$"
SessionIdText = Annotated[str, StringConstraints(max_length=500, pattern=_SESSION_ID)]
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
_LONGEST_WHY = 300
_MAX_SUGGESTIONS = 5
Id = Annotated[str, StringConstraints(pattern=rf"^{ID_PATTERN}$", max_length=64)]


class Incoming(BaseModel):
    """Strict about types, deaf to unknown fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


class OptionIn(Incoming):
    """An option as an agent writes it."""

    label: Label
    description: Annotated[str, Field(max_length=4_000)] = ""
    preview: Annotated[str, Field(max_length=64_000)] = ""


def _option(value: object) -> object:
    return {"label": value} if isinstance(value, str) else value


def as_seen(label: str) -> str:
    """Return what a person can tell of a label: neither case, kinds of space nor what is hidden."""
    seen = unicodedata.normalize("NFC", strip_hidden(label)).casefold()
    return " ".join(seen.split())


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# A limit stands inside of "or None": beside it, pydantic would measure the None as well.
Options = Annotated[list[Annotated[OptionIn, BeforeValidator(_option)]], Field(max_length=100)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=100)]


class QuestionIn(Incoming):
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
        labels = [as_seen(option.label) for option in self.options or ()]
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


def _is_none(value: object) -> bool:
    return value is None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_WHY else f"{text[: _LONGEST_WHY - 1]}…"


def _first(texts: list[str]) -> list[str]:
    return texts[:_MAX_SUGGESTIONS]


# What is too long is no reason to ask nobody.
_Why = Annotated[str, AfterValidator(_cut)]


class WhyIn(Incoming):
    """Why the program stopped, as its side writes it."""

    reason: _Why = ""
    blocked_path: _Why = ""
    suggestions: Annotated[list[_Why], AfterValidator(_first)] = []

    def to_model(self) -> WhyAsked:
        """Return it as the host knows it."""
        return WhyAsked(self.reason, self.blocked_path, tuple(self.suggestions))


class PermissionIn(Incoming):
    """What an agent program may not do without a person, as its side writes it."""

    program: Label
    tool: Label
    input: dict[str, Any]
    cwd: Annotated[str, StringConstraints(max_length=4_096)] = ""
    editable: Annotated[bool, Field(exclude_if=operator.not_)] = False
    why: Annotated[WhyIn | None, Field(exclude_if=_is_none)] = None

    @model_validator(mode="after")
    def _has_a_command(self) -> Self:
        command = self.input.get("command")
        if self.tool == BASH and not (isinstance(command, str) and command.strip()):
            raise ValueError("a shell command needs a command in its input")
        return self

    def to_model(self) -> ToolCall:
        """Return the call as the host knows it."""
        why = self.why.to_model() if self.why else None
        return ToolCall(self.program, self.tool, self.input, self.cwd, self.editable, why)


class Risk(StrEnum):
    """How bad it would be if what an agent wants approved went wrong, as the agent sees it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ApprovalIn(Incoming):
    """What an agent wants a person to approve before it does it."""

    action: Text
    details: Annotated[str, Field(max_length=20_000)] = ""
    preview: Annotated[str, Field(max_length=64_000)] = ""
    risk: Annotated[Risk | None, Field(strict=False)] = None


class TerminalIn(Incoming):
    """That the answer is to be typed into a terminal, where the question is called `ask_id`."""

    ask_id: Annotated[str, StringConstraints(max_length=128)] = ""


class AskRequest(Incoming):
    """`ask_user:ask`: the agent wants an answer, a permission or an approval."""

    v: Literal[1]
    type: Literal["ask_user:ask"]
    request_id: Id
    questions: Annotated[list[QuestionIn], Field(max_length=4)] = []
    # Left out of the digest where they are not there, as `options_only` is.
    permission: Annotated[PermissionIn | None, Field(exclude_if=_is_none)] = None
    approval: Annotated[ApprovalIn | None, Field(exclude_if=_is_none)] = None
    terminal: Annotated[TerminalIn | None, Field(exclude_if=_is_none)] = None
    title: ShortText | None = None
    agent: ShortText | None = None
    task: ShortText | None = None
    urgency: Annotated[Urgency | None, Field(strict=False)] = None
    session_id: SessionIdText | None = None
    wait_seconds: Annotated[float | None, Field(ge=0, le=366 * 86_400)] = None
    lease: Id | None = None
    hears_dismissal: Annotated[bool, Field(exclude_if=operator.not_)] = False

    @model_validator(mode="after")
    def _asks_one_thing(self) -> AskRequest:
        given = [bool(self.questions), self.permission is not None, self.approval is not None]
        if sum(given) != 1:
            raise ValueError("give one of questions (1 to 4), permission and approval")
        if self.terminal is not None and len(self.questions) != 1:
            raise ValueError("one question at a time can be answered by typing")
        return self

    @property
    def kind(self) -> Kind:
        """What sort of thing is asked."""
        if self.permission is not None:
            return Kind.PERMISSION
        return Kind.QUESTION if self.approval is None else Kind.APPROVAL

    def digest(self) -> str:
        """What tells a repeated request from another one under the same id.

        Who asks again, how long they wait this time and what the program says of why it asks makes
        no other question of it.
        """
        left_out = dict.fromkeys(("lease", "session_id", "wait_seconds"), True)
        asked = self.model_dump_json(exclude={**left_out, "permission": {"why"}})
        return hashlib.sha256(asked.encode()).hexdigest()
