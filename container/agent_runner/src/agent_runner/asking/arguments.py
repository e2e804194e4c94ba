"""Turn what a model sent into a Request.

Lenient where the meaning is plain: questions as a JSON text, one object instead of a list, a
single question at the top level. Everything else raises BadArguments with the field's name.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from agent_runner.asking._model import (
    Approval,
    Option,
    Question,
    Request,
    RequestId,
    Urgency,
    is_request_id,
)
from agent_runner.asking.wire import whole
from agent_runner.errors import BadArguments

MAX_QUESTIONS = 4
MAX_OPTIONS = 100
MAX_QUESTION_CHARACTERS = 20_000
MAX_LINE_CHARACTERS = 500  # what a card shows in one line: titles, headers, labels
MAX_DETAIL_CHARACTERS = 4_000
MAX_PREVIEW_CHARACTERS = 64_000
MAX_SECONDS = 30 * 24 * 3600
RISKS = ("low", "medium", "high")

_OPTION_NAMES = ("label", "description", "preview")
_QUESTION_NAMES = ("question", "header", "options", "multiSelect", "options_only", "default")
_ASK_NAMES = ("questions", "title", "task", "urgency", "timeout", "wait_for_response")
_APPROVAL_NAMES = ("action", "details", "preview", "risk", *_ASK_NAMES[2:])
# Claude Code sends it along with questions of its own.
_IGNORED = "metadata"

Fields = Mapping[str, object]


def check_ask_names(arguments: Fields) -> None:
    """Raise BadArguments for a name that ask_user does not have, at any depth.

    What is not understood is not ignored: a model that misspells multiSelect would have people
    asked something else than it meant.
    """
    questions = arguments.get("questions")
    alone = _QUESTION_NAMES if questions is None else ()
    _check_names(arguments, (*_ASK_NAMES, *alone))
    if questions is None:
        _check_option_names(arguments, "")
        return
    value = _unwrap(questions, "questions")
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(item, dict):
            _check_names(item, _QUESTION_NAMES, f"questions[{index}]")
            _check_option_names(item, f"questions[{index}]")


def check_names(arguments: Fields, *names: str) -> None:
    """Raise BadArguments for a name that is none of these."""
    _check_names(arguments, names)


def _check_option_names(question: Fields, where: str) -> None:
    options = question.get("options")
    value = None if options is None else _unwrap(options, _path(where, "options"))
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            _check_names(item, _OPTION_NAMES, f"{_path(where, 'options')}[{index}]")


def _check_names(fields: Fields, names: tuple[str, ...], where: str = "") -> None:
    for name in fields:
        if name in names or (name == _IGNORED and not where):
            continue
        raise BadArguments(explain_unknown(name, names, where))


def explain_unknown(name: str, names: Collection[str], where: str = "") -> str:
    """Say which of the names was meant by one that is none of them, or which there are."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    shown = _path(where, name[:MAX_LINE_CHARACTERS])
    plain = {_letters(one): one for one in names}
    near = get_close_matches(_letters(name), plain, n=1, cutoff=0.75)
    if near:
        return f"{shown}: unknown; did you mean {plain[near[0]]}?"
    return f"{shown}: unknown; there are {', '.join(names)}"


def _letters(name: str) -> str:
    """Return what is the same in multiSelect, multi_select and multi-select."""
    return "".join(filter(str.isalnum, name[:MAX_LINE_CHARACTERS])).lower()


def parse_ask(arguments: Fields) -> tuple[Request, bool]:
    """Return the request and whether to wait. Raise BadArguments."""
    request = Request(
        questions=_questions(arguments),
        title=read_text(arguments, "title"),
        task=read_text(arguments, "task"),
        urgency=read_urgency(arguments),
        wait_seconds=read_seconds(arguments, "timeout"),
    )
    return request, read_flag(arguments, "wait_for_response", default=True)


def parse_approval(arguments: Fields) -> tuple[Request, bool]:
    """Return the request for an approval, and whether to wait. Raise BadArguments.

    A name that request_approval does not have is not ignored: see `check_ask_names`.
    """
    _check_names(arguments, _APPROVAL_NAMES)
    action = read_text(arguments, "action", limit=MAX_QUESTION_CHARACTERS)
    if not action.strip():
        raise BadArguments("action: missing; say what you want to do")
    risk = read_text(arguments, "risk")
    if risk not in {"", *RISKS}:
        raise BadArguments(f"risk: must be low, medium or high, not {risk!r}")
    approval = Approval(
        action,
        details=read_text(arguments, "details", limit=MAX_QUESTION_CHARACTERS),
        preview=read_text(arguments, "preview", limit=MAX_PREVIEW_CHARACTERS),
        risk=risk,
    )
    request = Request(
        (),
        approval=approval,
        task=read_text(arguments, "task"),
        urgency=read_urgency(arguments),
        wait_seconds=read_seconds(arguments, "timeout"),
    )
    return request, read_flag(arguments, "wait_for_response", default=True)


def asked_by(request: Request, agent: str, task: str) -> Request:
    """Return the request with who asks it."""
    # Whole prompts end up in these variables; a card shows one line.
    agent, task = agent[:MAX_LINE_CHARACTERS], task[:MAX_LINE_CHARACTERS]
    return replace(request, agent=agent, task=request.task or task)


def parse_check(arguments: Fields) -> tuple[RequestId, float]:
    """Return the id and how long to wait for its answer. Raise BadArguments."""
    seconds = None if arguments.get("timeout") == 0 else read_seconds(arguments, "timeout")
    return parse_request_id(arguments), seconds or 0.0


def parse_request_id(arguments: Fields) -> RequestId:
    """Return the id. Raise BadArguments."""
    text = read_text(arguments, "request_id").strip()
    if not is_request_id(text):
        raise BadArguments("request_id: must be the id that ask_user or request_approval returned")
    return RequestId(text)


def _questions(arguments: Fields) -> tuple[Question, ...]:
    value = _raw_questions(arguments)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise BadArguments("questions: must be a list of objects, each with a `question`")
    if not 1 <= len(value) <= MAX_QUESTIONS:
        raise BadArguments(f"questions: must hold 1 to {MAX_QUESTIONS}, not {len(value)}")
    return tuple(_question(item, f"questions[{index}]") for index, item in enumerate(value))


def _raw_questions(arguments: Fields) -> object:
    value = arguments.get("questions")
    if value is None and "question" in arguments:
        return [arguments]
    if value is None:
        raise BadArguments("questions: missing; give a list of 1 to 4 objects with a `question`")
    return _unwrap(value, "questions")


def _unwrap(value: object, where: str) -> object:
    """Read a list or object that came as a JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise BadArguments(
            f"{where}: must be a list; this is a text that is not JSON ({exc})"
        ) from exc


def _question(value: object, where: str) -> Question:
    if not isinstance(value, dict):
        raise BadArguments(f"{where}: must be an object with a `question`")
    text = read_text(value, "question", where, limit=MAX_QUESTION_CHARACTERS)
    if not text.strip():
        raise BadArguments(f"{where}.question: missing; say what you want to know")
    options = read_options(value, f"{where}.options")
    multi_select = read_flag(value, "multiSelect", default=False, where=where)
    if multi_select and not options:
        raise BadArguments(f"{where}.multiSelect: needs options to choose from")
    default = _default(value, where, options, multi_select=multi_select)
    options_only = _options_only(value, where, options, default)
    header = read_text(value, "header", where)
    return Question(text, header, options, multi_select, default, options_only)


def _options_only(
    question: Fields,
    where: str,
    options: tuple[Option, ...],
    default: str | tuple[str, ...] | None,
) -> bool:
    """Return whether only the options count. Raise BadArguments where that cannot be."""
    if not read_flag(question, "options_only", default=False, where=where):
        return False
    if not options:
        raise BadArguments(f"{where}.options_only: needs options to choose from")
    if isinstance(default, str) and default.strip() not in {option.label for option in options}:
        raise BadArguments(f"{where}.default: {default!r} is not the label of an option")
    return True


def read_options(question: Fields, where: str) -> tuple[Option, ...]:
    """Return the options, none if there are none. Raise BadArguments."""
    value = question.get("options")
    if value is None:
        return ()
    value = _unwrap(value, where)
    if not isinstance(value, list):
        raise BadArguments(f"{where}: must be a list of objects with a `label`, or of texts")
    if len(value) > MAX_OPTIONS:
        raise BadArguments(f"{where}: at most {MAX_OPTIONS}, not {len(value)}")
    options = tuple(_option(item, f"{where}[{index}]") for index, item in enumerate(value))
    labels = [option.label.casefold() for option in options]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise BadArguments(f"{where}: the label {min(twice)!r} is there twice")
    return options


def _option(value: object, where: str) -> Option:
    fields = {"label": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise BadArguments(f"{where}: must be an object with a `label`, or a text")
    label = read_text(fields, "label", where).strip()
    if not label:
        raise BadArguments(f"{where}.label: missing")
    return Option(
        label,
        description=read_text(fields, "description", where, limit=MAX_DETAIL_CHARACTERS),
        preview=read_text(fields, "preview", where, limit=MAX_PREVIEW_CHARACTERS),
    )


def _default(
    question: Fields, where: str, options: tuple[Option, ...], *, multi_select: bool
) -> str | tuple[str, ...] | None:
    value = question.get("default")
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return read_text(question, "default", where)
    if not value or not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadArguments(f"{where}.default: must be a label, a text or a list of labels")
    if not multi_select:
        raise BadArguments(f"{where}.default: a list needs multiSelect: true")
    labels = [whole(item).strip() for item in value]
    if unknown := [label for label in labels if label not in {option.label for option in options}]:
        raise BadArguments(f"{where}.default: {unknown[0]!r} is not the label of an option")
    return tuple(labels)


def read_text(
    fields: Fields, name: str, where: str = "", *, limit: int = MAX_LINE_CHARACTERS
) -> str:
    """Return the text under that name, empty where there is none. Raise BadArguments."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadArguments(f"{_path(where, name)}: must be a text")
    if len(value) > limit:
        raise BadArguments(f"{_path(where, name)}: at most {limit} characters, not {len(value)}")
    return whole(value)


def read_flag(fields: Fields, name: str, *, default: bool, where: str = "") -> bool:
    """Return whether the name is set to true. Raise BadArguments."""
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadArguments(f"{_path(where, name)}: must be true or false")
    return value


def read_seconds(fields: Fields, name: str) -> float | None:
    """Return the number of seconds, None where none is given. Raise BadArguments."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArguments(f"{name}: must be a number of seconds")
    if not 0 < value <= MAX_SECONDS:
        raise BadArguments(f"{name}: must be more than 0 and at most {MAX_SECONDS} seconds")
    return value


def read_urgency(fields: Fields) -> Urgency:
    """Return the urgency. Raise BadArguments."""
    text = read_text(fields, "urgency")
    if text not in {"", *Urgency}:
        raise BadArguments(f"urgency: must be low, normal or high, not {text!r}")
    return Urgency(text or Urgency.NORMAL)


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
