"""The bodies of requests about questions, what those of all requests share, and responses."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from agent_runner.asking.arguments import explain_unknown
from pynchy.calls import RuleScope
from pynchy.errors import InvalidReply
from pynchy.model import Answer

Name = Annotated[str, Field(min_length=1, max_length=200)]
Value = Annotated[str, Field(max_length=20_000)]
_MAX_RULE_SECONDS = 366 * 86_400


class Body(BaseModel):
    """A body that says who sends it, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: Name = "somebody with the token"

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, value: object) -> object:
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                # Not a ValueError, which pydantic would wrap in words of its own.
                raise HTTPException(422, explain_unknown(str(name), cls.model_fields))
        return value


class QuestionBody(Body):
    """A body about a question. With a `group`, the id is that of a request of this group alone."""

    group: Name | None = None


class _AnswerIn(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    selected: list[Value] = []
    options: Annotated[list[int], Field(max_length=100)] = []
    text: Value | None = None

    def to_model(self, labels: tuple[str, ...]) -> Answer:
        """Return the answer. Raise InvalidReply for the number of an option that is not there."""
        if any(not 1 <= number <= len(labels) for number in self.options):
            raise InvalidReply(f"there is no such option: choose 1 to {len(labels)}")
        chosen = [labels[number - 1] for number in self.options]
        return Answer(tuple(dict.fromkeys([*self.selected, *chosen])), self.text)


class AnswerBody(QuestionBody):
    """Either values to be matched, or what was ticked (by label or number) and written.

    `rule_seconds`, `rule_scope`: how long, and for whom, the rule holds that the choice makes.
    `edited`: all of the input that a call is to be made with; the call says what it may be.
    """

    values: Annotated[list[Value], Field(default=[], max_length=200)]
    answers: Annotated[list[_AnswerIn], Field(default=[], max_length=4)]
    question: int | None = None
    rule_seconds: Annotated[float, Field(gt=0, le=_MAX_RULE_SECONDS)] | None = None
    rule_scope: RuleScope | None = None
    edited: Any = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.values and self.answers:
            raise ValueError("give either values or answers")
        return self


class DeclineBody(QuestionBody):
    """A person will not answer, and may say why."""

    reason: Value | None = None


class ClosePopupBody(QuestionBody):
    """A person has closed the question's popup, where closing may have stood for an option."""

    implied_choice: Value | None = None


class RetryBody(QuestionBody):
    """Start a failed delivery again, or stop trying."""


class SweepBody(Body):
    """End what is stale, or only say what would be ended."""

    dry_run: bool = True


def json_response(body: object, status: int = 200) -> JSONResponse:
    """Return a response that nobody keeps."""
    return JSONResponse(body, status, {"cache-control": "no-store"})
