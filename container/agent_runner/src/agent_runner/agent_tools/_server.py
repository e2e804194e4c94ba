"""The MCP server of both eras: with a handshake (up to 2025-11-25) and without (2026-07-28).

The era is a property of each request: its `_meta` names a protocol version or it does not. Every
call is answered exactly once, unless the client cancelled it; then never.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from agent_runner import __version__
from agent_runner.agent_tools import _elicitation
from agent_runner.agent_tools import _stdio as rpc
from agent_runner.agent_tools._ask_user import (
    Progress,
    ToolCall,
    ToolResult,
    UnknownTool,
    tool_result,
)
from agent_runner.agent_tools._tasks import EXTENSION, POLL_MILLISECONDS, Task, Tasks, UnknownTask

_VARIABLES = {"claude": "CLAUDE_CODE_SESSION_ID"}
_SESSION_KEYS = {"codex": "threadId"}
# Claude Code runs a task in the background: its model goes on without the answer, which it is later
# told not to take for a person's.
_GOES_ON_WITHOUT = frozenset({"claude-code"})

# What people call a client that tells only the name of its program.
_CLIENT_TITLES = {"claude-code": "Claude Code", "codex-mcp-client": "Codex"}

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS_VERSIONS = ("2026-07-28",)

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"

_SERVER_INFO = {"name": "pynchy", "title": "pynchy: ask a person", "version": __version__}
_CAPABILITIES = {"tools": {"listChanged": False}}
_CACHE_HINTS = {"ttlMs": 3_600_000, "cacheScope": "public"}

# How a client names its own call, and the conversation that the name belongs to.
_CALL_KEYS = ("claudecode/toolUseId", "callId")
_THREAD_KEY = "threadId"


def session_in(environ: Mapping[str, str], client: str) -> str:
    """Return the session that the client's environment names, empty where it names none."""
    return environ.get(_VARIABLES.get(client, ""), "")


def session_key(client: str) -> str:
    """Return under which name in a call's `_meta` the client says its session, empty if nowhere."""
    return _SESSION_KEYS.get(client, "")


def waits_for_tasks(client_name: str) -> bool:
    """True if a client of that name lets its model wait for a task as for any other call."""
    return client_name not in _GOES_ON_WITHOUT


def workplace() -> str:
    """Return the name of the folder that the client works in, for cards that name no task."""
    try:
        return Path.cwd().name
    except OSError:  # it was removed
        return ""


class Output(Protocol):
    """Where lines go; neither method blocks."""

    def write(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Send a line, and call `then`, in whatever thread, when it is out."""

    def write_extra(self, line: bytes) -> None:
        """Send a line that may be dropped."""


class CallsTools(Protocol):
    """Whatever runs the tools."""

    waiting: Tasks | None

    @property
    def takes_desk_answers(self) -> bool:
        """Whether the person in front of the client may answer there."""

    @property
    def instructions(self) -> str:
        """What a client is told of the tools together."""

    @property
    def offered(self) -> Sequence[rpc.Fields]:
        """The tools as a client is told of them."""

    async def call(self, call: ToolCall) -> ToolResult | Task:
        """Run a tool. Raise UnknownTool."""

    def take_in_hand(self) -> Callable[[], None]:
        """Return what to do when the answers that were taken since the last time are out."""


class Server:
    """Answers the lines of one client, which may name its session in `_meta` (`session_key`)."""

    def __init__(
        self,
        tools: CallsTools,
        output: Output,
        tasks: asyncio.TaskGroup,
        *,
        session_key: str = "",
    ) -> None:
        self._tools = tools
        self._output = output
        self._tasks = tasks
        self._session_key = session_key
        self._client = ""
        self._elicitations = _elicitation.Elicitations(output.write)
        self._shows_forms = False
        self._running: dict[rpc.CallId, asyncio.Task[None]] = {}

    def receive(self, line: bytes | None) -> None:
        """Take one line; None stands for one that was too long."""
        if line is None:
            self._refuse(rpc.RpcError(rpc.INVALID_REQUEST, "the line is too long"))
            return
        try:
            message = rpc.parse(line)
        except rpc.RpcError as error:
            self._refuse(error)
            return
        match message:
            case rpc.Notice():
                self._notice(message)
            case rpc.Response():
                self._elicitations.receive(message)
            case rpc.Call():
                self._call(message)

    def cancel_all(self) -> None:
        """End every call that runs, unanswered."""
        for task in self._running.values():
            task.cancel()

    def _notice(self, notice: rpc.Notice) -> None:
        call_id = rpc.as_call_id(notice.params.get("requestId"))
        if notice.method == "notifications/cancelled" and call_id in self._running:
            self._running[call_id].cancel()

    def _refuse(self, error: rpc.RpcError, call_id: rpc.CallId | None = None) -> None:
        error.call_id = error.call_id if call_id is None else call_id
        self._output.write(rpc.encode_error(error))

    def _call(self, call: rpc.Call) -> None:
        try:
            result = self._answer(call)
        except rpc.RpcError as error:
            self._refuse(error, call.id)
            return
        if result is not None:
            self._output.write(rpc.encode_result(call.id, result))

    def _answer(self, call: rpc.Call) -> rpc.Fields | None:
        """Return the result; None where a task will answer."""
        stateless = _VERSION_KEY in call.meta or call.method == "server/discover"
        if stateless:
            _check_envelope(call)
        match call.method:
            case "tools/call":
                self._start(call, self._call_tool(call, self._tool_call(call)))
                return None
            case "tasks/get" | "tasks/update" | "tasks/cancel" if stateless and self._tools.waiting:
                self._start(call, _do_task(call, self._tools.waiting))
                return None
            case "tools/list":
                listed: dict[str, object] = {"tools": self._tools.offered}
                return _stateless(listed | _CACHE_HINTS) if stateless else listed
            case "server/discover" if not self._wants_handshake(call):
                with_tasks = self._tools.waiting is not None and _may_wait_as_task(call)
                return _discover(self._tools.instructions, with_tasks=with_tasks)
            case "initialize" if not stateless:
                return self._initialize(call)
            case "ping" if not stateless:
                return {}
        raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"no method {call.method}")

    def _initialize(self, call: rpc.Call) -> rpc.Fields:
        self._client = _client_title(call.params.get("clientInfo"))
        requested = call.params.get("protocolVersion")
        agreed = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
        shows_forms = _elicitation.shows_forms(call.params.get("capabilities"))
        self._shows_forms = shows_forms and agreed == _elicitation.VERSION
        return {
            "protocolVersion": agreed,
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER_INFO,
            "instructions": self._tools.instructions,
        }

    def _wants_handshake(self, call: rpc.Call) -> bool:
        """Say whether to know nothing of the era without handshakes: no form could be shown."""
        shows_forms = _elicitation.shows_forms(call.meta.get(_CAPABILITIES_KEY))
        return shows_forms and self._tools.takes_desk_answers

    def _start(self, call: rpc.Call, work: Coroutine[None, None, rpc.Fields]) -> None:
        if call.id in self._running:
            work.close()
            raise rpc.RpcError(rpc.INVALID_REQUEST, f"a call with the id {call.id!r} runs already")
        task = self._tasks.create_task(self._run(call, work))
        self._running[call.id] = task
        task.add_done_callback(lambda _: self._running.pop(call.id, None))

    async def _run(self, call: rpc.Call, work: Coroutine[None, None, rpc.Fields]) -> None:
        # Nothing may be awaited between the work's result and its line: see asking.
        try:
            line = rpc.encode_result(call.id, await work)
        except rpc.RpcError as error:
            self._refuse(error, call.id)
        except Exception as exc:  # noqa: BLE001 - the outer edge: every call gets its answer
            self._tools.take_in_hand()  # lost here, so it is not passed on with the next line
            traceback.print_exc(file=sys.stderr)
            broken = rpc.RpcError(rpc.INTERNAL_ERROR, f"{type(exc).__name__} in pynchy")
            self._refuse(broken, call.id)
        else:
            self._output.write(line, self._tools.take_in_hand())

    async def _call_tool(self, call: rpc.Call, tool_call: ToolCall) -> rpc.Fields:
        try:
            result = await self._tools.call(tool_call)
        except UnknownTool as exc:
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"no tool {tool_call.name!r}") from exc
        if isinstance(result, Task):
            return _stateless(_task_fields(result)) | {"resultType": "task"}
        return _stateless(_content(result)) if _VERSION_KEY in call.meta else _content(result)

    def _tool_call(self, call: rpc.Call) -> ToolCall:
        name, arguments = call.params.get("name"), call.params.get("arguments")
        if not isinstance(name, str):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "name: must be the name of a tool")
        if not isinstance(arguments, dict | None):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "arguments: must be an object")
        shows_forms = self._shows_forms and _VERSION_KEY not in call.meta
        return ToolCall(
            name,
            arguments or {},
            _call_key(call.meta),
            self._progress(call.meta),
            may_be_task=_may_wait_as_task(call) and _declares_tasks(call),
            session_id=_text_in(call.meta, self._session_key),
            client=_client_title(call.meta.get(_CLIENT_KEY)) or self._client,
            elicit=self._elicitations.create if shows_forms else None,
        )

    def _progress(self, meta: rpc.Fields) -> Progress | None:
        token = rpc.as_call_id(meta.get("progressToken"))
        if token is None:
            return None

        def report(progress: float, message: str) -> None:
            params = {"progressToken": token, "progress": round(progress, 3), "message": message}
            self._output.write_extra(rpc.encode_notice("notifications/progress", params))

        return report


def _call_key(meta: rpc.Fields) -> str:
    names = [meta[key] for key in _CALL_KEYS if isinstance(meta.get(key), str)]
    return f"{meta.get(_THREAD_KEY, '')}/{names[0]}" if names else ""


def _text_in(meta: rpc.Fields, key: str) -> str:
    value = meta.get(key) if key else None
    return value if isinstance(value, str) else ""


def _client_title(info: object) -> str:
    """Return what a person calls the client that describes itself so; empty if nothing tells."""
    if not isinstance(info, dict):
        return ""
    name, title = (info.get(key) for key in ("name", "title"))
    if isinstance(title, str) and title.strip():
        return title.strip()
    return _CLIENT_TITLES.get(name, name.strip()) if isinstance(name, str) else ""


def _may_wait_as_task(call: rpc.Call) -> bool:
    info = call.meta.get(_CLIENT_KEY)
    name = info.get("name") if isinstance(info, dict) else ""
    return _VERSION_KEY in call.meta and waits_for_tasks(str(name))


def _declares_tasks(call: rpc.Call) -> bool:
    capabilities = call.meta.get(_CAPABILITIES_KEY)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and EXTENSION in extensions


async def _do_task(call: rpc.Call, waiting: Tasks) -> rpc.Fields:
    if not _declares_tasks(call):
        needed: rpc.Fields = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        message = "Missing required client capability"
        raise rpc.RpcError(rpc.MISSING_CLIENT_CAPABILITY, message, data=needed)
    task_id = call.params.get("taskId")
    try:
        match call.method:
            case "tasks/get":
                return _stateless(_task_fields(await waiting.get(str(task_id))))
            case "tasks/cancel":
                await waiting.cancel(str(task_id))
            case _:
                waiting.update(str(task_id))
    except UnknownTask as exc:
        raise rpc.RpcError(rpc.INVALID_PARAMS, f"taskId: no task {task_id!r}") from exc
    return _stateless({})


def _task_fields(task: Task) -> dict[str, object]:
    fields: dict[str, object] = {
        "taskId": task.note.request_id,
        "status": task.status,
        "createdAt": task.note.created_at,
        "lastUpdatedAt": task.note.updated_at,
        "ttlMs": None,
        "pollIntervalMs": POLL_MILLISECONDS,
    }
    if task.result is not None:
        fields["result"] = _content(tool_result(task.result))
    return fields


def _check_envelope(call: rpc.Call) -> None:
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in call.meta]
    if missing:
        raise rpc.RpcError(rpc.INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")
    requested = call.meta[_VERSION_KEY]
    if not isinstance(requested, str):
        raise rpc.RpcError(rpc.INVALID_PARAMS, f"{_VERSION_KEY} must be a text")
    if requested not in STATELESS_VERSIONS:
        # The versions with a handshake are named too: a client may fall back to initialize.
        supported = [*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS]
        raise rpc.RpcError(
            rpc.UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            data={"supported": supported, "requested": requested},
        )


def _discover(instructions: str, *, with_tasks: bool) -> dict[str, object]:
    extensions: rpc.Fields = {"extensions": {EXTENSION: {}}} if with_tasks else {}
    return _stateless(
        {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": {**_CAPABILITIES, **extensions},
            "instructions": instructions,
            **_CACHE_HINTS,
        }
    )


def _content(result: ToolResult) -> dict[str, object]:
    return {"content": [{"type": "text", "text": result.text}], "isError": result.is_error}


def _stateless(result: dict[str, object]) -> dict[str, object]:
    return {"resultType": "complete", "_meta": {_SERVER_KEY: _SERVER_INFO}, **result}
