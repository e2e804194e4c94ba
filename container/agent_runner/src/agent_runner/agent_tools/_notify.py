"""The tools of OpenFlow's notify: a question on the desktop, and what happened as a notification.

Every result is one JSON object, which programs read. Only a pressed button is `accepted`: closing
the popup, silence and trouble never are.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_runner.agent_tools._ask_user import Fields, RunTool, ToolCall, ToolResult, Tools
from agent_runner.agent_tools._schemas import CHECK_ANSWER
from agent_runner.asking import Announcement, Outcome, Result, arguments, notifying, text

if TYPE_CHECKING:
    from agent_runner.agent_tools._tasks import Task

_MARKS = {"low": "\u2139\ufe0f", "normal": "⚠️", "high": "🚨"}
_LATER = "Nobody has answered yet. Silence is not consent. check_answer looks for it later."
_CLOSED = "The person closed it without an answer. That is not consent."

_LINE = {"type": "string"}
_NAMES = {"type": "array", "items": {"type": "string"}}
_COUNT = {"type": "integer", "minimum": 0}
_AGENT = {"type": "string", "description": "Your name."}
_TELLS = {"destructiveHint": False, "idempotentHint": False, "openWorldHint": True}

ASK_ON_DESKTOP = {
    "name": "ask_user",
    "title": "Ask a person",
    "description": (
        "Ask the person with a notification that has a button for each option. With"
        ' wait_for_response the call ends with {"response": "accepted", "choice": label} when a'
        ' button is pressed, {"response": "dismissed", "choice": null} when the person closes it,'
        ' and {"response": "timeout", "choice": null, "request_id": id} when nobody has reacted:'
        " check_answer with that id has the answer later. Without it, the call ends at once with"
        ' {"sent": true, "message": text, "request_id": id}. Only accepted is an answer: neither'
        " silence nor a closed notification is consent, also where implied_choice says which"
        " option closing stood for."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What you need, in a few words."},
            "question": {
                "type": "string",
                "description": "The question. The person may know nothing of your work.",
            },
            "options": {
                **_NAMES,
                "description": "The choices, best two or three: each is a button.",
            },
            "urgency": {
                "type": "string",
                "enum": ["low", "normal", "high"],
                "default": "normal",
                "description": "high stays on the screen until it is answered.",
            },
            "repo": {"type": "string", "description": "The repository that this is about."},
            "branch": {"type": "string", "description": "The branch that you work on."},
            "agent": _AGENT,
            "task": {"type": "string", "description": "What you are working on."},
            "action_label": {
                "type": "string",
                "description": "What the first button says; else the first option, or OK.",
            },
            "wait_for_response": {
                "type": "boolean",
                "default": False,
                "description": "true: wait for the person, and return what they did.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 60,
                "description": "Seconds to wait, with wait_for_response.",
            },
        },
        "required": ["title", "question"],
    },
    "annotations": {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}

NOTIFY_COMMIT = {
    "name": "notify_commit",
    "title": "Tell of a commit",
    "description": "Tell the person that you have made a commit. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "branch": _LINE,
            "message": {"type": "string", "description": "The commit's first line."},
            "files": _NAMES,
            "hash": {"type": "string", "description": "The short hash."},
            "agent": _AGENT,
        },
        "required": ["branch", "message"],
    },
    "annotations": _TELLS,
}

NOTIFY_MERGE = {
    "name": "notify_merge",
    "title": "Tell of a merge",
    "description": "Tell the person that a branch was merged into main. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "source_branch": _LINE,
            "commits_count": _COUNT,
            "files_count": _COUNT,
            "version": {"type": "string", "description": "The version's tag, if there is one."},
            "repo": _LINE,
            "agent": _AGENT,
        },
        "required": ["source_branch"],
    },
    "annotations": _TELLS,
}

NOTIFY_SYNC = {
    "name": "notify_sync",
    "title": "Tell of synchronised worktrees",
    "description": "Tell the person that worktrees were synchronised. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "worktrees": _NAMES,
            "source": {"type": "string", "default": "main"},
            "repo": _LINE,
            "conflicts": _NAMES,
        },
        "required": ["worktrees"],
    },
    "annotations": _TELLS,
}

NOTIFY_TOOLS = (ASK_ON_DESKTOP, NOTIFY_COMMIT, NOTIFY_MERGE, NOTIFY_SYNC, CHECK_ANSWER)

INSTRUCTIONS = (
    "ask_user shows the person a question with buttons, and with wait_for_response returns what"
    " they did. notify_commit, notify_merge and notify_sync tell them what you have done. Silence"
    " and a closed notification are never consent."
)


Parse = Callable[[Fields], tuple[Announcement, str]]


class NotifyTools(Tools):
    """`ask_user` as OpenFlow's agents know it, `check_answer`, and three announcements."""

    @property
    def instructions(self) -> str:
        """See Tools."""
        return INSTRUCTIONS

    @property
    def offered(self) -> tuple[Fields, ...]:
        """See Tools."""
        return NOTIFY_TOOLS

    @property
    def runs(self) -> Mapping[str, RunTool]:
        """See Tools."""
        return {
            "ask_user": self._ask_on_desktop,
            "check_answer": self._check,
            "notify_commit": lambda call: self._announce(call, notifying.parse_commit),
            "notify_merge": lambda call: self._announce(call, notifying.parse_merge),
            "notify_sync": lambda call: self._announce(call, notifying.parse_sync),
        }

    def with_late(self, result: ToolResult) -> ToolResult:
        """See Tools: what came for earlier questions is a list in the same object."""
        if result.is_error:
            return result  # what has come is kept for the next result
        came = [{"request_id": one.request_id, **_read(one)} for one in self.asker.collect()]
        return _object({**json.loads(result.text), "earlier": came}) if came else result

    async def _ask_on_desktop(self, call: ToolCall) -> "ToolResult | Task":
        request, wait = notifying.parse_question(call.arguments)
        request = self.signed(call, request)
        async with self.reporting(call, request.request_id):
            result = await self.asker.ask(request, wait=wait)
        if result.outcome is not Outcome.PENDING or wait:
            return _told(result)
        by = f" [{request.agent}]" if request.agent else ""
        message = f"{_MARKS[request.urgency]} Question sent{by}: {request.title}"
        return _object({"sent": True, "message": message, "request_id": request.request_id})

    async def _check(self, call: ToolCall) -> ToolResult:
        arguments.check_names(call.arguments, "request_id", "timeout")
        request_id, seconds = arguments.parse_check(call.arguments)
        async with self.reporting(call, request_id):
            return _told(await self.asker.check(request_id, seconds=seconds))

    async def _announce(self, call: ToolCall, parse: Parse) -> ToolResult:
        told, message = parse(call.arguments)
        try:
            await self.asker.announce(told.signed(self.identity.agent or call.client))
        except OSError as exc:
            return _object(
                {"sent": False, "message": f"It could not be written: {exc}"}, is_error=True
            )
        return _object({"sent": True, "message": message})


def _told(result: Result) -> ToolResult:
    return _object(_read(result), is_error=text.is_error(result))


def _read(result: Result) -> dict[str, object]:
    """Return the result in OpenFlow's words."""
    match result.outcome:
        case Outcome.ANSWERED:
            chosen = ", ".join(label for answer in result.answers for label in answer.selected)
            again = {"message": "It was told before."} if result.repeated else {}
            return {"response": "accepted", "choice": chosen, **again}
        case Outcome.DECLINED:
            return _closed(result)
        case Outcome.DISMISSED:
            return {**_closed(result), "request_id": result.request_id, "message": _CLOSED}
        case Outcome.PENDING:
            about = {"request_id": result.request_id, "message": _LATER}
            return {"response": "timeout", "choice": None, **about}
        case Outcome.EXPIRED:
            return {"response": "timeout", "choice": None, "message": text.describe(result)}
        case _:
            return {"response": "unavailable", "choice": None, "message": text.describe(result)}


def _closed(result: Result) -> dict[str, object]:
    said = {"implied_choice": result.implied_choice, "reason": result.reason}
    more = {name: value for name, value in said.items() if value}
    return {"response": "dismissed", "choice": None, **more}


def _object(fields: Mapping[str, object], *, is_error: bool = False) -> ToolResult:
    return ToolResult(json.dumps(fields, ensure_ascii=False), is_error=is_error)
