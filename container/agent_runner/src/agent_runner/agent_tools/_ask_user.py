"""The tools: a thin layer between MCP and asking.

A call that fails for a reason the model can fix comes back as text with is_error. What has come
for earlier questions is appended to whatever result goes out next, receipt first.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent_runner.agent_tools import _elicitation, _schemas
from agent_runner.agent_tools._tasks import Task, Tasks
from agent_runner.asking import (
    Asker,
    Outcome,
    Permission,
    Request,
    RequestId,
    Result,
    arguments,
    fresh_request_id,
    request_id_of,
    text,
)
from agent_runner.asking.mailbox import words_file, write_whole
from agent_runner.errors import BadArguments

PROGRESS_SECONDS = 10.0

Fields = Mapping[str, object]
RunTool = Callable[["ToolCall"], Awaitable["ToolResult | Task"]]
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one text block of a tool's result."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `key` is the client's own name for it, empty where it gives none.

    `may_be_task`: the client can take a task for a result. `session_id` is the session that the
    client says it calls for, and `client` what it calls itself; empty where it says none. `elicit`
    shows a form to the person in front of the client, where it can.
    """

    name: str
    arguments: Fields
    key: str = ""
    progress: Progress | None = None
    may_be_task: bool = False
    session_id: str = ""
    client: str = ""
    elicit: _elicitation.Elicit | None = None


class UnknownTool(Exception):
    """There is no tool of that name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks; `max_wait` is how many seconds its client lets a call block.

    `called` is the file by which whoever started the client learns of the first call.
    `session_key` is where a call's `_meta` names its session, where only calls do. `granted` is the
    question whose answer the session was resumed for, while its call is still open. `permits`: its
    client asks us for permissions, and we a person; with `denies`, nobody.
    """

    session_id: str = ""
    session_key: str = ""
    agent: str = ""
    task: str = ""
    max_wait: float | None = None
    called: Path | None = None
    granted: str = ""
    denies: bool = False
    permits: bool = False


# The only program that asks for permissions in this way.
_CLAUDE = "claude"
_DENIED = {
    "behavior": "deny",
    "message": "Nobody can be asked for a permission here. Do without, or ask what to do instead.",
}


class Tools:
    """`ask_user`, `request_approval`, `check_answer`, `withdraw_question` over one mailbox."""

    def __init__(
        self,
        asker: Asker,
        identity: Identity,
        tasks: asyncio.TaskGroup,
        progress_seconds: float = PROGRESS_SECONDS,
        waiting: Tasks | None = None,
    ) -> None:
        self.waiting = waiting
        self.asker = asker
        self.identity = identity
        # Without a session the client's names for its calls are unique in this process alone.
        self._session = identity.session_id or fresh_request_id()
        self._tasks = tasks
        self._progress_seconds = progress_seconds
        # As long as it is there: the agent may remove it.
        self._cwd = _folder()

    @property
    def instructions(self) -> str:
        """What a client is told of the tools together."""
        return _schemas.INSTRUCTIONS

    @property
    def offered(self) -> tuple[Fields, ...]:
        """The tools as a client is told of them."""
        asked = self.identity.denies or self.identity.permits
        return (*_schemas.TOOLS, *([_schemas.PERMISSIONS] if asked else ()))

    @property
    def takes_desk_answers(self) -> bool:
        """Whether the person in front of the client may answer there."""
        return self.asker.takes_desk_answers

    async def call(self, call: ToolCall) -> ToolResult | Task:
        """Run a tool. Raise UnknownTool if there is none of that name."""
        if call.name == _schemas.PERMISSIONS["name"]:
            # Not a word beside it: it is the program that reads this.
            try:
                verdict = await self._permission(call)
            except BadArguments as exc:
                verdict = {"behavior": "deny", "message": f"Nobody could be asked: {exc}"}
            return ToolResult(json.dumps(verdict))
        run = self.runs.get(call.name)
        if run is None:
            raise UnknownTool(call.name)
        if self.identity.called is not None:
            with suppress(OSError):
                self.identity.called.touch()
        if call.session_id:
            self.asker.work_for(call.session_id)
        try:
            result = await run(call)
        except BadArguments as exc:
            message = f"{call.name} did nothing. Correct this and call again: {exc}"
            result = ToolResult(message, is_error=True)
        return result if isinstance(result, Task) else self.with_late(result)

    @property
    def runs(self) -> Mapping[str, RunTool]:
        """What runs each tool."""
        return {
            "ask_user": self._ask_user,
            "check_answer": self._check_answer,
            "withdraw_question": self._withdraw_question,
            "request_approval": self._request_approval,
        }

    def with_late(self, result: ToolResult) -> ToolResult:
        """Return the result with what has come for earlier questions."""
        late = text.describe_late(self.asker.collect())
        return ToolResult(result.text + late, is_error=result.is_error)

    def take_in_hand(self) -> Callable[[], None]:
        """Return what to do when the answers that were taken since the last time are out."""
        return partial(self.asker.pass_on, self.asker.take_in_hand())

    async def _permission(self, call: ToolCall) -> Fields:
        """Return whether Claude Code may make a call, in its own shape."""
        if not self.identity.permits:
            if self.identity.denies:
                return _DENIED
            raise UnknownTool(call.name)
        tool, given = call.arguments.get("tool_name"), call.arguments.get("input")
        if not isinstance(tool, str) or not isinstance(given, dict):
            return {"behavior": "deny", "message": "the call has no tool_name or no input"}
        call_id = str(call.arguments.get("tool_use_id") or "")
        key = f"/permission/{call_id or call.key}"
        request = Request(
            questions=(),
            request_id=request_id_of(self._session, key, given),
            permission=Permission(_CLAUDE, tool, given, self._cwd, editable=True),
        )
        who = self.identity.agent or call.client
        result = await self.asker.ask(arguments.asked_by(request, who, self.identity.task))
        if not result.is_granted:
            return {"behavior": "deny", "message": text.describe_permission(result)}
        words = text.describe_allowed(result.answered_by, result.note, given, result.input)
        if words and self.identity.called is not None:
            with suppress(OSError):  # the call may be made all the same
                write_whole(words_file(self.identity.called, call_id), words.encode())
        return {
            "behavior": "allow",
            "updatedInput": given if result.input is None else result.input,
        }

    async def _ask_user(self, call: ToolCall) -> ToolResult | Task:
        request_id = self._request_id(call)
        if request_id is None or request_id != self.identity.granted:
            # What has been answered already is handed over, whatever else the call says.
            arguments.check_ask_names(call.arguments)
        request, wait = arguments.parse_ask(call.arguments)
        return await self._ask(call, request, wait=wait)

    async def _request_approval(self, call: ToolCall) -> ToolResult | Task:
        request, wait = arguments.parse_approval(call.arguments)
        return await self._ask(call, request, wait=wait)

    async def _ask(self, call: ToolCall, request: Request, *, wait: bool) -> ToolResult | Task:
        request = self.signed(call, request)
        if call.may_be_task and wait and self.waiting is not None:
            task = await self.waiting.create(request)
            if task is not None:
                return task if task.result is None else tool_result(task.result)
        async with self.reporting(call, request.request_id):
            with self._at_desk(call.elicit if wait else None, request):
                result = await self.asker.ask(request, wait=wait)
        if result.outcome is Outcome.PENDING and not wait:
            return ToolResult(text.describe_asked(result))
        return tool_result(result)

    async def _check_answer(self, call: ToolCall) -> ToolResult:
        arguments.check_names(call.arguments, "request_id", "timeout")
        request_id, seconds = arguments.parse_check(call.arguments)
        async with self.reporting(call, request_id):
            result = await self.asker.check(request_id, seconds=seconds)
        told = text.describe_check(result, is_ours=self.asker.has_asked(request_id))
        return ToolResult(told, is_error=text.is_error(result))

    async def _withdraw_question(self, call: ToolCall) -> ToolResult:
        arguments.check_names(call.arguments, "request_id")
        request_id = arguments.parse_request_id(call.arguments)
        result = await self.asker.withdraw(request_id)
        is_error = result.outcome is Outcome.ERROR
        return ToolResult(text.describe_withdrawal(result), is_error=is_error)

    def signed(self, call: ToolCall, request: Request) -> Request:
        """Return the request with its id and who asks it: who the call names, else who we are."""
        request_id = self._request_id(call) or request.request_id
        agent = request.agent or self.identity.agent or call.client
        request = replace(request, request_id=request_id)
        return arguments.asked_by(request, agent, self.identity.task)

    def _request_id(self, call: ToolCall) -> RequestId | None:
        """Return the same id for the same call: a client that sends it twice asks once."""
        if not call.key:
            return None
        return request_id_of(self._session, call.key, call.arguments)

    @asynccontextmanager
    async def reporting(self, call: ToolCall, request_id: RequestId) -> AsyncIterator[None]:
        """Tell the client while the block runs that the call still waits."""
        ticker = self._tasks.create_task(self._report(call, request_id))
        try:
            yield
        finally:
            ticker.cancel()

    @contextmanager
    def _at_desk(self, elicit: _elicitation.Elicit | None, request: Request) -> Iterator[None]:
        """Show the question in front of the client, too, until the block ends.

        Never what is to be allowed: whoever can write for the client could say yes.
        """
        if elicit is None or not request.questions or not self.takes_desk_answers:
            yield
            return
        # Closed at once with the block, before the call's result goes out.
        with ExitStack() as dialogs:
            asking = self._tasks.create_task(self._ask_at_desk(elicit, request, dialogs))
            try:
                yield
            finally:
                asking.cancel()

    async def _ask_at_desk(
        self, elicit: _elicitation.Elicit, request: Request, dialogs: ExitStack
    ) -> None:
        # Not before a host has it: nobody would take the answer.
        await self.asker.picked_up(request.request_id)
        for attempt in range(_elicitation.ATTEMPTS):
            form = _elicitation.form(request, again=attempt > 0)
            result = await dialogs.enter_context(elicit(form))
            answers = _elicitation.read_answers(request, result)
            if answers is None:
                return
            if all(answer.selected or answer.text for answer in answers):
                by = _elicitation.os_user()
                with suppress(OSError):  # the others may still answer
                    await self.asker.answer_at_desk(request.request_id, by, answers)
                return

    async def _report(self, call: ToolCall, request_id: RequestId) -> None:
        if call.progress is None:
            return
        clock = asyncio.get_running_loop().time
        started = clock()
        while True:
            await asyncio.sleep(self._progress_seconds)
            picked_up = self.asker.is_picked_up(request_id)
            unseen = self.asker.why_unseen(request_id)
            waited = clock() - started
            told = text.waiting_message(waited, picked_up=picked_up, unseen=unseen)
            call.progress(waited, told)


def _folder() -> str:
    """Return the folder in which we work; empty if it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def tool_result(result: Result) -> ToolResult:
    """Return what the model reads of a result."""
    return ToolResult(text.describe(result), is_error=text.is_error(result))
