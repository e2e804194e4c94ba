"""The three tools: a thin layer between MCP and asking.

A call that fails for a reason the model can mend comes back as text with is_error. What has come
for earlier questions is appended to whatever result goes out next, receipt first.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent_runner.agent_tools import _schemas
from agent_runner.agent_tools._tasks import Task, Tasks
from agent_runner.asking import (
    Asker,
    Outcome,
    RequestId,
    Result,
    arguments,
    fresh_request_id,
    request_id_of,
    text,
)
from agent_runner.errors import BadArguments

PROGRESS_SECONDS = 10.0

Fields = Mapping[str, object]
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
    client says it calls for, and `client` what it calls itself; empty where it says none.
    """

    name: str
    arguments: Fields
    key: str = ""
    progress: Progress | None = None
    may_be_task: bool = False
    session_id: str = ""
    client: str = ""


class UnknownTool(Exception):
    """There is no tool of that name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks; `max_wait` is how many seconds its client lets a call block.

    `called` is the file by which whoever started the client learns of the first call.
    `session_key` is where a call's `_meta` names its session, where only calls do. `granted` is the
    question whose answer the session was resumed for, while its call is still open. `denies`: its
    client must have somebody to ask for permissions, who denies them.
    """

    session_id: str = ""
    session_key: str = ""
    agent: str = ""
    task: str = ""
    max_wait: float | None = None
    called: Path | None = None
    granted: str = ""
    denies: bool = False


_DENIED = {
    "behavior": "deny",
    "message": "Nobody can be asked for a permission here. Do without, or ask what to do instead.",
}


class Tools:
    """`ask_user`, `check_answer` and `withdraw_question` over one mailbox."""

    def __init__(
        self,
        asker: Asker,
        identity: Identity,
        tasks: asyncio.TaskGroup,
        progress_seconds: float = PROGRESS_SECONDS,
        waiting: Tasks | None = None,
    ) -> None:
        self.waiting = waiting
        self._asker = asker
        self._identity = identity
        # Without a session the client's names for its calls are unique in this process alone.
        self._session = identity.session_id or fresh_request_id()
        self._tasks = tasks
        self._progress_seconds = progress_seconds

    @property
    def offered(self) -> tuple[Fields, ...]:
        """The tools as a client is told of them."""
        return (*_schemas.TOOLS, *([_schemas.PERMISSIONS] if self._identity.denies else ()))

    async def call(self, call: ToolCall) -> ToolResult | Task:
        """Run a tool. Raise UnknownTool if there is none of that name."""
        tools: dict[str, Callable[[ToolCall], Awaitable[ToolResult | Task]]] = {
            "ask_user": self._ask_user,
            "check_answer": self._check_answer,
            "withdraw_question": self._withdraw_question,
        }
        if call.name == _schemas.PERMISSIONS["name"] and self._identity.denies:
            return ToolResult(json.dumps(_DENIED))  # and not a word beside it
        run = tools.get(call.name)
        if run is None:
            raise UnknownTool(call.name)
        if self._identity.called is not None:
            with suppress(OSError):
                self._identity.called.touch()
        if call.session_id:
            self._asker.work_for(call.session_id)
        try:
            result = await run(call)
        except BadArguments as exc:
            message = f"{call.name} did nothing. Correct this and call again: {exc}"
            result = ToolResult(message, is_error=True)
        if isinstance(result, Task):
            return result
        late = text.describe_late(self._asker.collect())
        return ToolResult(result.text + late, is_error=result.is_error)

    def take_in_hand(self) -> Callable[[], None]:
        """Return what to do when the answers that were taken since the last time are out."""
        return partial(self._asker.pass_on, self._asker.take_in_hand())

    async def _ask_user(self, call: ToolCall) -> ToolResult | Task:
        request_id = self._request_id(call)
        if request_id is None or request_id != self._identity.granted:
            # What has been answered already is handed over, whatever else the call says.
            arguments.check_ask_names(call.arguments)
        request, wait = arguments.parse_ask(call.arguments)
        request_id = request_id or request.request_id
        request = arguments.asked_by(
            replace(request, request_id=request_id),
            self._identity.agent or call.client,
            self._identity.task,
        )
        if call.may_be_task and wait and self.waiting is not None:
            task = await self.waiting.create(request)
            if task is not None:
                return task if task.result is None else tool_result(task.result)
        async with self._reporting(call, request.request_id):
            result = await self._asker.ask(request, wait=wait)
        if result.outcome is Outcome.PENDING and not wait:
            return ToolResult(text.describe_asked(result))
        return tool_result(result)

    async def _check_answer(self, call: ToolCall) -> ToolResult:
        arguments.check_names(call.arguments, "request_id", "timeout")
        request_id, seconds = arguments.parse_check(call.arguments)
        async with self._reporting(call, request_id):
            result = await self._asker.check(request_id, seconds=seconds)
        told = text.describe_check(result, is_ours=self._asker.has_asked(request_id))
        return ToolResult(told, is_error=text.is_error(result))

    async def _withdraw_question(self, call: ToolCall) -> ToolResult:
        arguments.check_names(call.arguments, "request_id")
        request_id = arguments.parse_request_id(call.arguments)
        result = await self._asker.withdraw(request_id)
        is_error = result.outcome is Outcome.ERROR
        return ToolResult(text.describe_withdrawal(result), is_error=is_error)

    def _request_id(self, call: ToolCall) -> RequestId | None:
        """Return the same id for the same call: a client that sends it twice asks once."""
        if not call.key:
            return None
        return request_id_of(self._session, call.key, call.arguments)

    @asynccontextmanager
    async def _reporting(self, call: ToolCall, request_id: RequestId) -> AsyncIterator[None]:
        ticker = self._tasks.create_task(self._report(call, request_id))
        try:
            yield
        finally:
            ticker.cancel()

    async def _report(self, call: ToolCall, request_id: RequestId) -> None:
        if call.progress is None:
            return
        clock = asyncio.get_running_loop().time
        started = clock()
        while True:
            await asyncio.sleep(self._progress_seconds)
            picked_up = self._asker.is_picked_up(request_id)
            unseen = self._asker.why_unseen(request_id)
            waited = clock() - started
            told = text.waiting_message(waited, picked_up=picked_up, unseen=unseen)
            call.progress(waited, told)


def tool_result(result: Result) -> ToolResult:
    """Return what the model reads of a result."""
    return ToolResult(text.describe(result), is_error=text.is_error(result))
