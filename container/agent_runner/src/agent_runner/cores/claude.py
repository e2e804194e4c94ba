"""Claude Code: `claude -p` with stream-json.

Its session has the id that we give it: the session's own where that is a UUID, else one made from
it, so nothing has to be remembered to find it again. It looks for its sessions by HOME and
working folder, which therefore have to stay the same.
"""

import json
import shlex
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_runner.asking.wire import whole
from agent_runner.cores.base import (
    ASK_TOOL,
    SERVER_NAME,
    AgentEvent,
    Asking,
    Command,
    Denied,
    Failed,
    Fields,
    HookCommand,
    Named,
    NoServer,
    NoSession,
    NotParked,
    Parked,
    PromptAccepted,
    Said,
    Start,
    as_event,
    fields_of,
    items_of,
    text_of,
)

CONNECT_MILLISECONDS = 60_000
BACKGROUND_VARIABLE = "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS"

_SESSIONS = uuid.UUID("6c0f1f0e-4ad5-5d0c-9a3b-3f2f6c1f9a55")
_TOOLS = f"mcp__{SERVER_NAME}"
_SYNTHETIC = "<synthetic>"
_UNKNOWN = "No conversation found"
_BUILT_IN = "AskUserQuestion"
_NO_PROMPTS = f"{_TOOLS}__permissions"
_ASK = f"{_TOOLS}__{ASK_TOOL}"
# By which of its arguments a person sees what a call of a tool was to do.
_SAYING = ("command", "file_path", "notebook_path", "url", "query", "pattern", "prompt")
_DEFERRED = "tool_deferred"
# When the call was made after all, or was never put off; and when its tool is not there now.
_NOT_DEFERRED = "No deferred tool marker found"
_UNAVAILABLE = "tool_deferred_unavailable"


class Claude:
    """See Core."""

    program = "claude"

    def command(self, start: Start) -> Command:
        """See Core."""
        known = start.resumes or start.program_id is not None
        session_id = start.program_id or claude_id(start.session_id, start.mailbox)
        argv = (
            self.program,
            "-p",
            *("--output-format", "stream-json", "--verbose"),
            *("--resume" if known else "--session-id", session_id),
            *("--mcp-config", json.dumps(_mcp_config(start)), "--strict-mcp-config"),
            *("--allowedTools", _TOOLS),
            *_asking_with(start.hook),
            *start.extra,
        )
        env = {
            **(start.hook.env if start.hook else {}),
            "MCP_CONNECT_TIMEOUT_MS": str(CONNECT_MILLISECONDS),
            "MCP_TIMEOUT": str(CONNECT_MILLISECONDS),
            # A call in the background loses its answer.
            BACKGROUND_VARIABLE: "0",
        }
        return Command(argv, env, unset=("CLAUDE_AUTO_BACKGROUND_TASKS",))

    def read(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        event = as_event(line)
        if event is None:
            return self.read_error(line)
        match event.get("type"), event.get("subtype"):
            case "system", "init":
                return _begun(event)
            case "system", "permission_denied":
                return [_denied(event, {})]
            case "assistant", _:
                return _spoken(fields_of(event, "message"))
            case "result", _:
                return _ended(event)
        return []

    def read_error(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        if _NOT_DEFERRED in line:
            return [NotParked()]
        return [NoSession(line)] if _UNKNOWN in line else [Said(line)]


CORE = Claude()


def claude_id(session_id: str, mailbox: Path) -> str:
    """Return the UUID under which Claude Code keeps the session of the group with that mailbox."""
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return str(uuid.uuid5(_SESSIONS, whole(f"{mailbox}\0{session_id}")))


def _is_built_in(hook: HookCommand | None) -> bool:
    return hook is not None and hook.tool == _BUILT_IN


def _asking_with(hook: HookCommand | None) -> Iterator[str]:
    """Yield what leaves the model one tool to ask with, and has the hook called before it."""
    built_in = _is_built_in(hook)
    # Without a hook the built-in one would wait for a terminal that is not there.
    yield from ("--disallowedTools", _ASK if built_in else _BUILT_IN)
    if built_in:
        # It is offered only where somebody can be asked for permissions, if only to be denied them.
        yield from ("--permission-prompt-tool", _NO_PROMPTS)
    if hook is not None:
        called = {
            "type": "command",
            "command": shlex.join(hook.command),
            "timeout": round(hook.limit_seconds),
        }
        matcher = {"matcher": _BUILT_IN if built_in else _ASK, "hooks": [called]}
        yield from ("--settings", json.dumps({"hooks": {"PreToolUse": [matcher]}}))


def _mcp_config(start: Start) -> Fields:
    server = start.server.with_env(PYNCHY_DENIES="1") if _is_built_in(start.hook) else start.server
    program, *arguments = server.command
    entry = {
        "type": "stdio",
        "command": program,
        "args": arguments,
        "env": server.env_with_limit,
        # Before the first turn, and among the tools from the start.
        "alwaysLoad": True,
        # Wins over MCP_TOOL_TIMEOUT; progress does not extend it.
        "timeout": round(server.call_limit_seconds * 1000),
    }
    return {"mcpServers": {SERVER_NAME: entry}}


def _begun(event: Fields) -> Iterator[AgentEvent]:
    yield Named(text_of(event, "session_id"))
    servers = {text_of(one, "name"): one for one in items_of(event, "mcp_servers")}
    status = text_of(servers.get(SERVER_NAME, {}), "status") or "not among its servers"
    if status != "connected":
        yield NoServer(f"Claude Code says of the MCP server {SERVER_NAME}: {status}")


def _spoken(message: Fields) -> Iterator[AgentEvent]:
    # What Claude Code says itself, such as that the API failed, is no answer of the model's.
    if text_of(message, "model") == _SYNTHETIC:
        return
    yield PromptAccepted()
    for block in items_of(message, "content"):
        match block.get("type"):
            case "text":
                yield Said(f"says: {text_of(block, 'text')}")
            case "tool_use":
                name = text_of(block, "name")
                yield Said(f"calls {name}")
                if name in {_ASK, _BUILT_IN}:
                    yield Asking()


def _denied(told: Fields, given: Fields) -> Denied:
    """Return what was not allowed, with what the tool was to do as far as that is told."""
    tool = text_of(told, "tool_name")
    doing = next((text_of(given, name) for name in _SAYING if given.get(name)), "")
    return Denied(text_of(told, "tool_use_id"), f"{tool}: {doing}" if doing else tool)


def _ended(event: Fields) -> Iterator[AgentEvent]:
    for told in items_of(event, "permission_denials"):
        yield _denied(told, fields_of(told, "tool_input"))
    if event.get("stop_reason") == _DEFERRED:
        yield Parked()
    if not event.get("is_error") and event.get("subtype") == "success":
        return
    if event.get("stop_reason") == _UNAVAILABLE:
        yield NotParked()
    errors = event.get("errors")
    detail = text_of(event, "result") or f"{event.get('subtype')} {errors or ''}".strip()
    if _UNKNOWN in detail:
        yield NoSession(detail)
    yield Failed(detail)
