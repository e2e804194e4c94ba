"""What OpenCode's replies mean. Whatever is not as expected is left out: a server may say anything.

Nothing here speaks to a server or knows the time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pynchy.calls import BASH, EDIT, READ, WEB_FETCH, ToolCall

Fields = Mapping[str, Any]

PROGRAM = "opencode"
NOTIFY = "notify_ask_user"
MAX_SESSIONS = 500
MAX_TOOLS = 20
_MAX_ARGUMENT = 200
_MAX_ID = 200
# Ids become parts of addresses: "..", "?" and what a client takes out would lead elsewhere.
_ID = re.compile(r"(?!\.{1,2}\Z)[^\x00-\x20\x7f-\U0010ffff/\\?#%]+\Z")
_MAX_NAME = 4_096
MAX_ASKS = 100
# What runs for long because it waits for somebody else, or for a person already.
_WAITS_BY_NATURE = frozenset({"task", "question", NOTIFY})
_OURS = ("ask_user", "request_approval", "check_answer")
# How what our own server says begins under the name of notify: its questions are asked here.
_ASKED_HERE = ('{"sent":', '{"response":')
# The field that says most about a call, by tool.
_TELLING = ("command", "filePath", "path", "url", "pattern", "query", "description")


@dataclass(frozen=True, slots=True)
class SeenSession:
    """One session. `parent` is the one whose subagent it is, or empty."""

    id: str
    title: str
    directory: str
    parent: str
    updated: float


@dataclass(frozen=True, slots=True)
class RunningTool:
    """A call that has begun and not ended. `started` is None where the server does not say."""

    call_id: str
    tool: str
    argument: str
    started: float | None

    def may_need_permission(self, now: float, threshold: float) -> bool:
        """True if it runs for so long that it may wait for a person: a guess, and no more."""
        if self.started is None or self.tool in _WAITS_BY_NATURE or _is_ours(self.tool):
            return False
        return now - self.started > threshold


@dataclass(frozen=True, slots=True)
class Notice:
    """A question that an agent has sent by OpenFlow's notify, and does not wait for.

    `part_id` is that of its call; the one that the model gave it may be that of another, too.
    """

    part_id: str
    title: str
    question: str
    options: tuple[str, ...]
    urgency: str
    agent: str
    task: str
    asked: float | None


@dataclass(frozen=True, slots=True)
class WaitingPart:
    """Where a call stands in its session; empty where the server does not say."""

    message_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class AskedPermission:
    """What a session may not do by itself, and waits for. `part` is the call that waits."""

    id: str
    session_id: str
    part: WaitingPart
    call: ToolCall

    @property
    def about(self) -> str:
        """What is to be allowed, in a line."""
        argument = argument_of(self.call.input)
        return f"{self.call.tool}: {argument}" if argument else self.call.tool


@dataclass(frozen=True, slots=True)
class WaitingChoice:
    """One question of several that a session asks at once."""

    text: str
    header: str
    options: tuple[tuple[str, str], ...]
    multiple: bool
    takes_text: bool


@dataclass(frozen=True, slots=True)
class AskedChoices:
    """What a session asks by its own tool, and waits for. `part` is the call that waits."""

    id: str
    session_id: str
    part: WaitingPart
    choices: tuple[WaitingChoice, ...]


def read_sessions(reply: object) -> dict[str, SeenSession]:
    """Return the sessions by their id, the one that changed last first."""
    seen = [session for fields in _objects(reply) if (session := _session(fields))]
    seen.sort(key=lambda session: session.updated, reverse=True)
    return {session.id: session for session in seen[:MAX_SESSIONS]}


def read_busy(reply: object) -> frozenset[str]:
    """Return the ids of the sessions at work; those that are idle are not told of."""
    if not isinstance(reply, dict):
        return frozenset()
    return frozenset(
        name
        for name, status in islice(reply.items(), MAX_SESSIONS)
        if isinstance(status, dict) and status.get("type") in {"busy", "retry"}
    )


def read_permissions(reply: object) -> list[AskedPermission]:
    """Return the permissions that sessions wait for, without the folders of their calls."""
    found = []
    for fields in _objects(reply)[:MAX_ASKS]:
        request_id, session_id = read_id(fields, "id"), read_id(fields, "sessionID")
        if request_id and session_id:
            found.append(AskedPermission(request_id, session_id, _part(fields), _call(fields)))
    return found


def read_questions(reply: object) -> list[AskedChoices]:
    """Return the questions that sessions wait for; one that cannot be shown is left out."""
    found = []
    for fields in _objects(reply)[:MAX_ASKS]:
        request_id, session_id = read_id(fields, "id"), read_id(fields, "sessionID")
        choices = [_choice(choice) for choice in _objects(fields.get("questions"))]
        if request_id and session_id and choices and all(choice.text for choice in choices):
            found.append(AskedChoices(request_id, session_id, _part(fields), tuple(choices)))
    return found


def running_tools(messages: object) -> list[RunningTool]:
    """Return the calls of the session that have begun and not ended."""
    found = [
        RunningTool(
            read_id(part, "callID") or read_id(part, "id"),
            _text(part, "tool")[:_MAX_ID],
            argument_of(_fields(state, "input")),
            _seconds(_fields(state, "time").get("start")),
        )
        for part, state in _calls(_objects(messages))
        if state.get("status") == "running"
    ]
    return found[-MAX_TOOLS:]


def notices(messages: object) -> list[Notice]:
    """Return the asks that nothing has followed: no word of the person, no call of another tool.

    All messages after the person's last one count: the model speaks once more after the call.
    """
    found: list[Notice] = []
    for part, state in _calls(_after_last_prompt(_objects(messages))):
        if _text(part, "tool") != NOTIFY:
            found.clear()
        elif state.get("status") == "completed" and (notice := _notice(part, state)):
            found.append(notice)
    return found


def is_over(part: WaitingPart, message: object) -> bool:
    """True if the message says that the call has ended: nobody waits for it any more."""
    called = [
        state.get("status")
        for found, state in _calls(_objects([message]))
        if _text(found, "callID") == part.call_id
    ]
    return bool(part.call_id and called) and not {"pending", "running"} & set(called)


def has_message(messages: object, suffix: str) -> bool:
    """True if one of the messages has an id that ends so."""
    return any(_text(_fields(m, "info"), "id").endswith(suffix) for m in _objects(messages))


def count_open_todos(reply: object) -> int:
    """Return how many entries of a session's list are still to be done."""
    return sum(_text(todo, "status") not in {"completed", "cancelled"} for todo in _objects(reply))


def argument_of(given: Fields) -> str:
    """Return what tells most about a call, on one line."""
    named = (_text(given, name) for name in _TELLING)
    said = next((text for text in named if text), "")
    said = said or next((value for value in given.values() if isinstance(value, str)), "")
    flat = " ".join(said.split())
    return flat if len(flat) <= _MAX_ARGUMENT else f"{flat[: _MAX_ARGUMENT - 1]}…"


def _session(fields: Fields) -> SeenSession | None:
    session_id = read_id(fields, "id")
    if not session_id:
        return None
    return SeenSession(
        session_id,
        _text(fields, "title")[:_MAX_NAME],
        _text(fields, "directory")[:_MAX_NAME],
        read_id(fields, "parentID"),
        _seconds(_fields(fields, "time").get("updated")) or 0.0,
    )


def _call(permission: Fields) -> ToolCall:
    """Return what would be done, in the words that all programs share where there are any.

    Nothing is left out: what no known field holds stays under its own name, and is shown.
    """
    kind, given = _text(permission, "permission"), dict(_fields(permission, "metadata"))
    patterns = [text for text in _items(permission.get("patterns")) if isinstance(text, str)]
    if kind == "bash" and _text(given, "command"):
        return ToolCall(PROGRAM, BASH, given)
    path = given.pop("filepath", None) or given.pop("filePath", None)
    if kind == "edit" and isinstance(path, str) and _text(given, "diff"):
        return ToolCall(PROGRAM, EDIT, {"file_path": path, **given})
    if kind == "read" and isinstance(path, str):
        return ToolCall(PROGRAM, READ, {"file_path": path, **given})
    if kind == "webfetch" and _text(given, "url"):
        return ToolCall(PROGRAM, WEB_FETCH, given)
    if path is not None:
        given["filepath"] = path
    if patterns:
        given["patterns"] = patterns
    return ToolCall(PROGRAM, kind or "a tool without a name", given)


def _part(fields: Fields) -> WaitingPart:
    tool = _fields(fields, "tool")
    return WaitingPart(read_id(tool, "messageID"), read_id(tool, "callID"))


def _choice(fields: Fields) -> WaitingChoice:
    options = [
        (_text(o, "label"), _text(o, "description")) for o in _objects(fields.get("options"))
    ]
    return WaitingChoice(
        _text(fields, "question"),
        _text(fields, "header"),
        tuple((label, about) for label, about in options if label),
        multiple=fields.get("multiple") is True,
        takes_text=fields.get("custom") is not False,
    )


def _notice(part: Fields, state: Fields) -> Notice | None:
    given = _fields(state, "input")
    question, title = _text(given, "question"), _text(given, "title")
    is_ours = _text(state, "output").startswith(_ASKED_HERE)
    if is_ours or (not question and not title):
        return None
    urgency = _text(given, "urgency")
    return Notice(
        part_id=read_id(part, "id") or read_id(part, "callID"),
        title=title,
        question=question or title,
        options=tuple(
            text for text in _items(given.get("options")) if isinstance(text, str) and text
        ),
        urgency=urgency if urgency in {"low", "high"} else "normal",
        agent=_text(given, "agent"),
        task=_text(given, "task"),
        asked=_seconds(_fields(state, "time").get("end")),
    )


def _after_last_prompt(messages: Sequence[Fields]) -> Sequence[Fields]:
    for at in range(len(messages) - 1, -1, -1):
        if _text(_fields(messages[at], "info"), "role") == "user":
            return messages[at + 1 :]
    return messages


def _calls(messages: Sequence[Fields]) -> Iterator[tuple[Fields, Fields]]:
    """Yield every call of a tool with its state, in the order in which they were made."""
    for message in messages:
        for part in _objects(message.get("parts")):
            if part.get("type") == "tool" and _text(part, "tool"):
                yield part, _fields(part, "state")


def _is_ours(tool: str) -> bool:
    """True for a tool of our own MCP server, whatever the server is called there."""
    return tool.endswith(_OURS)


def read_id(fields: Fields, name: str) -> str:
    """Return the id of that name; empty for what cannot be one, or would be more in an address."""
    value = _text(fields, name)
    return value if len(value) <= _MAX_ID and _ID.match(value) else ""


def _objects(value: object) -> list[Fields]:
    return [item for item in _items(value) if isinstance(item, dict)]


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _fields(fields: Fields, name: str) -> Fields:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    """Return a moment that is told in milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value / 1_000 if math.isfinite(value) else None
    except OverflowError:
        return None
