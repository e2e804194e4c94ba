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

from agent_runner.asking.mailbox import WORDS
from agent_runner.asking.wire import whole
from agent_runner.claude_reasons import read_why
from agent_runner.cores.base import (
    APPROVAL_TOOL,
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
    PermissionWanted,
    PromptAccepted,
    RequestDropped,
    Said,
    Send,
    Start,
    TurnEnded,
    Verdict,
    as_event,
    denied,
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
_PROMPTS = f"{_TOOLS}__permissions"
_ASK = f"{_TOOLS}__{ASK_TOOL}"
_APPROVAL = f"{_TOOLS}__{APPROVAL_TOOL}"
_CALLED = "PYNCHY_CALLED"
_ENDS_OF_CALLS = ("PostToolUse", "PostToolUseFailure")
_CALL_ENDED = "call_ended"
_DEFERRED = "tool_deferred"
_PUT_OFF = "Nobody has answered yet. The session is put off, and resumed with the answer."
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
        prompts = _prompt_tool(start)
        argv = (
            self.program,
            "-p",
            *("--output-format", "stream-json", "--verbose"),
            *(() if prompts else ("--input-format", "stream-json")),
            *("--permission-prompt-tool", prompts or "stdio"),
            *("--resume" if known else "--session-id", session_id),
            *("--mcp-config", json.dumps(_mcp_config(start)), "--strict-mcp-config"),
            *("--allowedTools", _TOOLS),
            *_asking_with(start),
            *start.extra,
        )
        env = {
            **(start.hook.env if start.hook else {}),
            **({_CALLED: start.server.env.get(_CALLED, "")} if prompts else {}),
            "MCP_CONNECT_TIMEOUT_MS": str(CONNECT_MILLISECONDS),
            "MCP_TIMEOUT": str(CONNECT_MILLISECONDS),
            # A call in the background loses its answer.
            BACKGROUND_VARIABLE: "0",
        }
        talk = None if prompts else _ClaudeTalk(self)
        return Command(argv, env, ("CLAUDE_AUTO_BACKGROUND_TASKS",), talk)

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
                return [*_ended(event), TurnEnded()]
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


class _ClaudeTalk:
    """See Talk: a line of JSON for each message.

    What a person says beside a yes, or has changed of the call, is told with the call's result: the
    program asks us when a call has ended, be it one of a subagent, whose model then reads it.
    """

    def __init__(self, core: Claude) -> None:
        self._core = core
        # By the call. Filled by whoever replies, in another thread, before the call is made.
        self._words: dict[str, str] = {}
        self._running: set[str] = set()

    def begin(self, prompt: str) -> str:
        told = [{"matcher": None, "hookCallbackIds": [_CALL_ENDED]}]
        asked = {"subtype": "initialize", "hooks": dict.fromkeys(_ENDS_OF_CALLS, told)}
        begun = {"type": "control_request", "request_id": _CALL_ENDED, "request": asked}
        return f"{json.dumps(begun)}\n{self.say(prompt)}"

    def say(self, text: str) -> str:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        return json.dumps({"type": "user", "message": message}) + "\n"

    def read(self, line: str) -> Iterable[AgentEvent]:
        event = as_event(line) or {}
        match event.get("type"):
            case "control_request":
                return self._asked(event)
            case "control_cancel_request":
                return [RequestDropped(text_of(event, "request_id"))]
        self._note_calls(fields_of(event, "message"))
        return self._core.read(line)

    def _note_calls(self, message: Fields) -> None:
        """Remember which calls have begun and not ended, those of subagents too."""
        for block in items_of(message, "content"):
            if block.get("type") == "tool_use":
                self._running.add(text_of(block, "id"))
            elif block.get("type") == "tool_result":
                self._running.discard(text_of(block, "tool_use_id"))

    def _asked(self, event: Fields) -> Iterator[AgentEvent]:
        """Yield what the program is told; what else it asks is refused: nobody waits."""
        request, key = fields_of(event, "request"), text_of(event, "request_id")
        match request.get("subtype"):
            case "can_use_tool" if key:
                yield self._wanted(key, request)
            case "hook_callback" if key:
                yield Send(_response(key, self._told_beside(fields_of(request, "input"))))
            case _ if key:
                yield Send(_refused(key, text_of(request, "subtype")))

    def _wanted(self, key: str, request: Fields) -> PermissionWanted:
        given, call_id = fields_of(request, "input"), text_of(request, "tool_use_id")

        def reply(verdict: Verdict) -> str:
            if not verdict.is_allowed:
                return _response(key, {"behavior": "deny", "message": verdict.words})
            if verdict.words:
                self._words[call_id] = verdict.words
            made_with = given if verdict.input is None else verdict.input
            return _response(key, {"behavior": "allow", "updatedInput": made_with})

        def park() -> str:
            # Whatever else runs would be ended with it.
            is_alone = self._running <= {call_id}
            said = {"behavior": "deny", "message": _PUT_OFF, "interrupt": True}
            return _response(key, said) if is_alone else ""

        tool, why = text_of(request, "tool_name"), read_why(request)
        return PermissionWanted(key, call_id, tool, given, reply, editable=True, park=park, why=why)

    def _told_beside(self, ended: Fields) -> Fields:
        """Return what the model reads beside the result of a call that has ended."""
        words = self._words.pop(text_of(ended, "tool_use_id"), "")
        if not words:
            return {}
        name = text_of(ended, "hook_event_name")
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": words}}


def _response(key: str, said: Fields) -> str:
    response = {"subtype": "success", "request_id": key, "response": said}
    return json.dumps({"type": "control_response", "response": response}) + "\n"


def _refused(key: str, wanted: str) -> str:
    error = f"pynchy does not know the request {wanted!r}"
    response = {"subtype": "error", "request_id": key, "error": error}
    return json.dumps({"type": "control_response", "response": response}) + "\n"


def _prompt_tool(start: Start) -> str:
    """Return the tool of our server by which permissions are asked for; empty: we are told.

    A program that waits for what it is told would not make the call that it has put off, nor ask
    with its own tool.
    """
    return _PROMPTS if start.goes_on or _is_built_in(start.hook) else ""


def _is_built_in(hook: HookCommand | None) -> bool:
    return hook is not None and hook.tool == _BUILT_IN


def _asking_with(start: Start) -> Iterator[str]:
    """Yield what leaves the model one tool to ask with, and has the hook called before it."""
    hook = start.hook
    built_in = _is_built_in(hook)
    # Without a hook the built-in one would wait for a terminal that is not there.
    yield from ("--disallowedTools", _ASK if built_in else _BUILT_IN)
    if hook is not None:
        called = {
            "type": "command",
            "command": shlex.join(hook.command),
            "timeout": round(hook.limit_seconds),
        }
        tools = f"{_BUILT_IN if built_in else _ASK}|{_APPROVAL}"
        matcher = {"matcher": tools, "hooks": [called]}
        hooks: dict[str, list[Fields]] = {"PreToolUse": [matcher]}
        if _prompt_tool(start) and _CALLED in start.server.env:
            told = _words_hook(hook, start.server.env[_CALLED])
            hooks |= {name: [told] for name in _ENDS_OF_CALLS}
        yield from ("--settings", json.dumps({"hooks": hooks}))


def _words_hook(hook: HookCommand, called: str) -> Fields:
    """Return the hook that has the model read what our server keeps for a call that has ended.

    Where nothing is kept, it is a shell's look at a file.
    """
    kept = f"{shlex.quote(called + WORDS)}*"
    look = f'set -- {kept}; [ ! -e "$1" ] || exec {shlex.join(hook.command)}'
    return {"matcher": "*", "hooks": [{"type": "command", "command": look}]}


def _mcp_config(start: Start) -> Fields:
    asked = bool(_prompt_tool(start))
    server = start.server.with_env(PYNCHY_PERMISSIONS="1") if asked else start.server
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
                if name in {_ASK, _APPROVAL, _BUILT_IN}:
                    yield Asking()


def _denied(told: Fields, given: Fields) -> Denied:
    return denied(text_of(told, "tool_use_id"), text_of(told, "tool_name"), given)


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
