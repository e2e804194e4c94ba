"""Ask the person in front of the client as well: MCP's elicitation, while a call waits.

    tools/call ─► question ─► elicitation/create ─► accept ─► the host, as one reply among others

What comes back is only passed on: the host decides whether it counts, and the call gets its result
as from any other reply. Whoever declines, closes the dialog or shows none has answered nothing.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count

from agent_runner.agent_tools import _stdio as rpc
from agent_runner.asking import Answer, Option, Question, Request

# The first version with titles beside the values of a choice, and with several choices.
VERSION = "2025-11-25"

# A form that was sent without an answer is shown again, but not forever: nobody may be there.
ATTEMPTS = 3

_MAX_MESSAGE = 4_000
_MAX_TITLE = 200
_MISSING = "An answer is missing. Choose one, or write your own words.\n\n"
_WORDS = "Or in your own words"

Elicit = Callable[[rpc.Fields], AbstractContextManager[asyncio.Future[rpc.Fields]]]


def shows_forms(capabilities: object) -> bool:
    """Say whether a client with these capabilities can put a form before a person."""
    declared = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(declared, dict) and (not declared or "form" in declared)


class Elicitations:
    """What the client was asked and has not answered yet."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._numbers = count(1)
        self._open: dict[rpc.CallId, asyncio.Future[rpc.Fields]] = {}

    @contextmanager
    def create(self, params: rpc.Fields) -> Iterator[asyncio.Future[rpc.Fields]]:
        """Show a form for as long as the block lasts; what is still open then is taken back."""
        call_id = f"elicitation-{next(self._numbers)}"
        answer = asyncio.get_running_loop().create_future()
        self._open[call_id] = answer
        self._write(rpc.encode_call(call_id, "elicitation/create", params))
        try:
            yield answer
        finally:
            if self._open.pop(call_id, None) is not None:
                over = {"requestId": call_id, "reason": "the question is answered, or given up"}
                self._write(rpc.encode_notice("notifications/cancelled", over))

    def receive(self, response: rpc.Response) -> None:
        """Take the client's response; one to nothing that is open is ignored."""
        answer = self._open.pop(response.id, None) if response.id is not None else None
        if answer is not None and not answer.done():
            answer.set_result(response.result)


def form(request: Request, *, again: bool = False) -> rpc.Fields:
    """Return what the client is to show; `again` after it was sent without an answer."""
    questions = request.questions
    properties: dict[str, object] = {}
    for number, question in enumerate(questions, start=1):
        properties |= _properties(number, question, is_alone=len(questions) == 1)
    asked = request.title or f"{len(questions)} questions"
    message = questions[0].question if len(questions) == 1 else asked
    wanted = [
        _name(number)
        for number, question in enumerate(questions, start=1)
        if question.options_only or not question.options
    ]
    return {
        "mode": "form",
        "message": (_MISSING if again else "") + _cut(message, _MAX_MESSAGE),
        "requestedSchema": {"type": "object", "properties": properties, "required": wanted},
    }


def read_answers(request: Request, result: rpc.Fields) -> tuple[Answer, ...] | None:
    """Return what the person answered, an empty answer where one is missing; None for nothing."""
    content = result.get("content")
    if result.get("action") != "accept" or not isinstance(content, dict):
        return None
    return tuple(
        _answer(question, content, number)
        for number, question in enumerate(request.questions, start=1)
    )


def os_user() -> str:
    """Return who runs this process."""
    from pwd import getpwuid  # noqa: PLC0415 - for a rare moment

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name
        return str(os.getuid())


def _properties(number: int, question: Question, *, is_alone: bool) -> dict[str, object]:
    about = {} if is_alone else {"description": _cut(question.question, _MAX_MESSAGE)}
    title = question.header or ("Answer" if is_alone else f"Question {number}")
    if not question.options:
        return {_name(number): {"type": "string", "title": title, "minLength": 1, **about}}
    choices = [{"const": one.label, "title": _option_title(one)} for one in question.options]
    choice: dict[str, object] = {"type": "string", "oneOf": choices}
    if question.multi_select:
        least = {"minItems": 1} if question.options_only else {}
        choice = {"type": "array", "items": {"anyOf": choices}, **least}
    properties: dict[str, object] = {_name(number): {"title": title, **choice, **about}}
    if not question.options_only:
        properties[_words_name(number)] = {"type": "string", "title": _WORDS}
    return properties


def _answer(question: Question, content: Mapping[object, object], number: int) -> Answer:
    given = content.get(_name(number))
    if not question.options:
        return Answer(question.question, text=_text(given))
    chosen = given if isinstance(given, list) else [given]
    return Answer(
        question.question,
        tuple(one for one in chosen if isinstance(one, str) and one),
        _text(content.get(_words_name(number))),
    )


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _option_title(option: Option) -> str:
    told = f"{option.label}: {option.description}" if option.description else option.label
    return _cut(" ".join(told.split()), max(_MAX_TITLE, len(option.label)))


def _name(number: int) -> str:
    return f"question_{number}"


def _words_name(number: int) -> str:
    return f"question_{number}_words"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
