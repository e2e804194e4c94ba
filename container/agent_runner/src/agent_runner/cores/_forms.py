"""A form that a program wants filled in, as questions, and the answers as what the form takes."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent_runner.asking import Answer, Option, Outcome, Question, Result
from agent_runner.asking.arguments import MAX_LINE_CHARACTERS
from agent_runner.cores._json_rpc import RpcRequest
from agent_runner.cores.base import (
    AgentEvent,
    Fields,
    QuestionWanted,
    Said,
    Send,
    fields_of,
    text_of,
)

_MAX_QUESTIONS = 4
# A text beside a choice, for what is none of its options.
_CUSTOM = "_custom"
_YES_NO = {"Yes": True, "No": False}
_LONGEST_HEADER = 30
_KINDS = ("string", "boolean", "integer", "number", "array")


@dataclass(frozen=True, slots=True)
class _Field:
    """One field. `values` are the options by their labels, `custom` the field for own words."""

    name: str
    kind: str
    question: Question
    values: dict[str, Any]
    custom: str
    is_required: bool

    def asked_with(self, message: str, *, is_alone: bool) -> "_Field":
        """Return the field with the form's own words in its question."""
        own = self.question.question
        is_said = own == message or (is_alone and own in {self.name, self.question.header})
        said = message if is_said else f"{message}\n\n{own}"
        return replace(self, question=replace(self.question, question=said)) if message else self

    def filled(self, answer: Answer) -> dict[str, Any]:
        """Return what the person's answer puts into the form. Raise ValueError."""
        picked = [self.values[label] for label in answer.selected if label in self.values]
        written = answer.text or ""
        if self.kind == "array":
            chosen: dict[str, Any] = {self.name: picked} if picked else {}
        elif picked:
            chosen = {self.name: picked[0]}
        elif written and not self.custom and not self.values:
            chosen = {self.name: _plain(self.kind, written)}
        else:
            chosen = {}
        if written and self.custom:
            chosen[self.custom] = written
        if self.is_required and not chosen:
            raise ValueError(f"there is no answer for {self.name}")
        return chosen


@dataclass(frozen=True, slots=True)
class Form:
    """What is to be filled in. `title` stands above several questions."""

    fields: tuple[_Field, ...]
    title: str = ""

    @property
    def questions(self) -> tuple[Question, ...]:
        """What a person is asked."""
        return tuple(field.question for field in self.fields)

    def answer(self, result: Result) -> Fields:
        """Return what the program is told: accepted with what was filled in, or why not."""
        if result.outcome is Outcome.DECLINED:
            return {"action": "decline"}
        if result.outcome is not Outcome.ANSWERED or len(result.answers) != len(self.fields):
            return {"action": "cancel"}
        content: dict[str, Any] = {}
        try:
            for field, answer in zip(self.fields, result.answers, strict=True):
                content.update(field.filled(answer))
        except ValueError:
            return {"action": "cancel"}
        return {"action": "accept", "content": content}


def ask_form(request: RpcRequest, respond: Callable[[Fields], str]) -> Iterator[AgentEvent]:
    """Yield the questions of a form, or that it cannot be asked; `respond` tells the program."""
    form = read_form(request.params)
    if form is None:
        yield Said("wants a form filled in that cannot be asked as questions")
        yield Send(respond({"action": "cancel"}))
        return

    def reply(result: Result) -> str:
        return respond(form.answer(result))

    yield QuestionWanted(request.key, form.questions, reply, form.title)


def read_form(params: Fields) -> Form | None:
    """Return the form; None for one that cannot be asked as a few questions."""
    schema = fields_of(params, "requestedSchema")
    properties = {n: p for n, p in fields_of(schema, "properties").items() if isinstance(p, dict)}
    required = schema.get("required")
    needed = {n for n in required if isinstance(n, str)} if isinstance(required, list) else set()
    names = [name for name in properties if not _is_custom(name, properties)]
    if params.get("mode", "form") != "form" or not 0 < len(names) <= _MAX_QUESTIONS:
        return None
    message = text_of(params, "message")
    fits = len(names) > 1 and len(message) <= MAX_LINE_CHARACTERS and "\n" not in message.strip()
    try:
        fields = [_field(name, properties, name in needed) for name in names]
    except ValueError:
        return None
    if fits:
        return Form(tuple(fields), message)
    return Form(tuple(field.asked_with(message, is_alone=len(names) == 1) for field in fields))


def _is_custom(name: str, properties: Mapping[str, Fields]) -> bool:
    return name.endswith(_CUSTOM) and name.removesuffix(_CUSTOM) in properties


def _field(name: str, properties: Mapping[str, Fields], is_required: bool) -> _Field:  # noqa: FBT001 - of read_form alone
    """Return the field. Raise ValueError for one that cannot be asked for."""
    told = properties[name]
    kind = told.get("type", "string")
    if kind not in _KINDS:
        raise ValueError(f"{name} takes what nobody can write in a chat")
    options = _options(told, kind)
    values = {option.label: value for option, value in options}
    if len({label.casefold() for label in values}) < len(options):
        raise ValueError(f"{name} has options that cannot be told apart")
    custom = name + _CUSTOM if name + _CUSTOM in properties else ""
    title, more = text_of(told, "title"), text_of(told, "description")
    header = title if len(title) <= _LONGEST_HEADER else ""
    # A title that is too long for a header is said in the question.
    asked = [more] if header else [title, more]
    question = Question(
        question="\n\n".join(filter(None, asked)) or title or name,
        header=header,
        options=tuple(option for option, _ in options),
        multi_select=kind == "array",
        options_only=bool(options) and not custom,
    )
    return _Field(name, kind, question, values, custom, is_required)


def _options(told: Fields, kind: str) -> list[tuple[Option, Any]]:
    if kind == "boolean":
        return [(Option(label), value) for label, value in _YES_NO.items()]
    source = fields_of(told, "items") if kind == "array" else told
    choices = [*_listed(source, "oneOf"), *_listed(source, "anyOf")]
    options = [_option(one) for one in choices or _listed(source, "enum")]
    if kind == "array" and not options:
        raise ValueError("there is nothing to choose from")
    return options


def _listed(source: Fields, name: str) -> list[Any]:
    found = source.get(name)
    return found if isinstance(found, list) else []


def _option(told: object) -> tuple[Option, str]:
    """Return an option and its value. Raise ValueError for one without a name."""
    fields = {"const": told} if isinstance(told, str) else told
    value = text_of(fields, "const") if isinstance(fields, dict) else ""
    if not isinstance(fields, dict) or not value.strip():
        raise ValueError("an option has no name")
    label = text_of(fields, "title").strip() or value
    return Option(label, text_of(fields, "description")), value


def _plain(kind: str, written: str) -> str | float | int:
    """Return what was written as the form takes it. Raise ValueError."""
    match kind:
        case "integer":
            return int(written)
        case "number":
            number = float(written)
            if not math.isfinite(number):
                raise ValueError(f"{written} is no number that JSON has")
            return number
    return written
