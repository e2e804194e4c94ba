"""Any program that speaks the Agent Client Protocol, version 1, over its stdin and stdout.

    initialize ─► session/new or session/load ─► session/prompt ─► … ─► its result ends the turn

The command is what stands after `--`. The program names its sessions itself, so the session book
keeps that name. A "no" has no words in this protocol: they are the prompt of a turn that follows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from agent_runner.cores._calls import is_ours, read_call, titled_as_ours
from agent_runner.cores._forms import ask_form
from agent_runner.cores._json_rpc import ErrorReply, JsonRpc, Result, RpcRequest
from agent_runner.cores.base import (
    APPROVAL_TOOL,
    ASK_TOOL,
    SERVER_NAME,
    AgentEvent,
    Asking,
    Command,
    Denied,
    Fields,
    McpServer,
    Named,
    NoSession,
    PermissionWanted,
    PromptAccepted,
    RequestDropped,
    Said,
    Send,
    Start,
    Verdict,
    denied,
    fields_of,
    items_of,
    text_of,
    turn_ended,
    turn_failed,
)
from agent_runner.cores.claude import BACKGROUND_VARIABLE, CONNECT_MILLISECONDS
from agent_runner.errors import SessionUnknown

PROTOCOL = 1
NOT_FOUND = -32002

_SIGN_IN = -32000
_MAX_SAID = 10_000
_MAX_CALLS = 1_000
_ALLOW, _REJECT = "allow_once", "reject_once"
# The ways to sign in that need nobody at a screen.
_BY_KEY = re.compile(r"api[-_]?key", re.IGNORECASE)
_CAPABILITIES: Fields = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}},
}

IsUnknown = Callable[[ErrorReply], bool]


def _is_not_found(error: ErrorReply) -> bool:
    return error.code == NOT_FOUND


class Acp:
    """See Core."""

    program = ""

    def command(self, start: Start) -> Command:
        """See Core."""
        if start.resumes and start.program_id is None:
            raise SessionUnknown(f"no session of the program is known for {start.session_id}")
        talk = AcpTalk(start.program_id, [server_entry(start)])
        return Command(start.extra, _claude_env(start.server), talk=talk)

    def read(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        return self.read_error(line)

    def read_error(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        return [Said(line)]


CORE = Acp()


def _claude_env(server: McpServer) -> dict[str, str]:
    """Return what Claude Code needs to know where it works below an adapter; others ignore it."""
    return {
        # A call in the background loses its answer.
        BACKGROUND_VARIABLE: "0",
        # Else the model does not see our tools from the start.
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_TIMEOUT": str(CONNECT_MILLISECONDS),
        "MCP_CONNECT_TIMEOUT_MS": str(CONNECT_MILLISECONDS),
        "MCP_TOOL_TIMEOUT": str(round(server.call_limit_seconds * 1000)),
    }


def server_entry(start: Start) -> Fields:
    """Return our MCP server as a session is told of it: nothing of it is on a command line."""
    server: McpServer = start.server
    program, *arguments = server.command
    inherited = {name: start.environ[name] for name in server.inherits if name in start.environ}
    env = {**inherited, **server.env_with_limit}
    return {
        "name": SERVER_NAME,
        "command": program,
        "args": arguments,
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }


class AcpTalk:
    """See Talk: one session, and the turns that one prompt needs.

    `is_unknown` says of an error whether the program does not know the session.
    """

    def __init__(
        self,
        program_id: str | None,
        servers: list[Fields],
        is_unknown: IsUnknown = _is_not_found,
    ) -> None:
        self._program_id = program_id
        self._place: Fields = {"cwd": str(Path.cwd()), "mcpServers": servers}
        self._is_unknown = is_unknown
        self._rpc = JsonRpc(
            {"session/request_permission": self._permission, "elicitation/create": self._form},
            {"session/update": self._update, "$/cancel_request": self._cancelled},
        )
        self._prompt = ""
        self._session = ""
        self._is_prompting = False
        self._sign_ins: list[str] = []
        self._calls: dict[str, Fields] = {}
        self._text = ""
        # Filled by whoever replies, in another thread, before the program reads the reply.
        self._denied: list[Denied] = []
        self._untold: list[str] = []

    def begin(self, prompt: str) -> str:
        """See Talk."""
        self._prompt = prompt
        told = {"protocolVersion": PROTOCOL, "clientCapabilities": _CAPABILITIES}
        told["clientInfo"] = {"name": SERVER_NAME, "title": "pynchy", "version": "1"}
        return self._rpc.request("initialize", told, self._initialized)

    def say(self, text: str) -> str:  # noqa: ARG002 - a turn cannot be told anything
        """See Talk."""
        return ""

    def read(self, line: str) -> Iterator[AgentEvent]:
        """See Talk."""
        while self._denied:
            yield self._denied.pop(0)
        yield from self._rpc.read(line)

    def _initialized(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield from turn_failed(f"it could not be initialized: {result.told}")
            return
        if result.get("protocolVersion") != PROTOCOL:
            version = result.get("protocolVersion")
            yield from turn_failed(f"it speaks version {version!r} of ACP, and we {PROTOCOL}")
            return
        methods = (text_of(method, "id") for method in items_of(result, "authMethods"))
        self._sign_ins = [method for method in methods if method]
        if self._program_id and not fields_of(result, "agentCapabilities").get("loadSession"):
            yield NoSession("the program cannot load a session that it had before")
            return
        yield self._open()

    def _open(self) -> Send:
        if self._program_id:
            place = {"sessionId": self._program_id, **self._place}
            return Send(self._rpc.request("session/load", place, self._opened))
        return Send(self._rpc.request("session/new", self._place, self._opened))

    def _opened(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield from self._not_opened(result)
            return
        self._session = self._program_id or text_of(result, "sessionId")
        if not self._session:
            yield from turn_failed("it has begun a session without an id")
            return
        yield Named(self._session)
        yield self._say(self._prompt)

    def _not_opened(self, error: ErrorReply) -> Iterator[AgentEvent]:
        if error.code == _SIGN_IN:
            yield from self._sign_in(error)
        elif self._program_id and self._is_unknown(error):
            yield NoSession(error.told)
        else:
            yield from turn_failed(error.told)

    def _sign_in(self, error: ErrorReply) -> Iterator[AgentEvent]:
        """Sign in by a key of the environment, once; nobody is there for another way."""
        method = next((name for name in self._sign_ins if _BY_KEY.search(name)), None)
        if method is None:
            ways = ", ".join(self._sign_ins) or "none that it names"
            yield from turn_failed(f"{error.told}: sign in with the program itself ({ways})")
            return
        self._sign_ins = []
        yield Send(self._rpc.request("authenticate", {"methodId": method}, self._signed_in))

    def _signed_in(self, result: Result) -> Iterator[AgentEvent]:
        if isinstance(result, ErrorReply):
            yield from turn_failed(f"it could not be signed in to: {result.told}")
        else:
            yield self._open()

    def _say(self, text: str) -> Send:
        self._is_prompting = True
        prompt = {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]}
        return Send(self._rpc.request("session/prompt", prompt, self._answered))

    def _answered(self, result: Result) -> Iterator[AgentEvent]:
        self._is_prompting = False
        if isinstance(result, ErrorReply):
            # What was said before may have been the program's own words.
            yield from (sign for sign in self._said() if isinstance(sign, Said))
            yield from turn_failed(result.told)
            return
        yield from self._said()
        if self._untold:
            words, self._untold = self._untold, []
            yield self._say("\n\n".join(words))
        elif (reason := text_of(result, "stopReason")) == "end_turn":
            yield turn_ended()
        else:
            yield from turn_failed(f"the turn ended with: {reason or 'no reason'}")

    def _update(self, params: Fields) -> Iterator[AgentEvent]:
        """Heed what the model does now; what a loaded session tells of its past is no news."""
        update = fields_of(params, "update")
        if not self._is_prompting or params.get("sessionId") != self._session:
            return
        match text_of(update, "sessionUpdate"):
            case "agent_message_chunk" if len(self._text) < _MAX_SAID:
                self._text += text_of(fields_of(update, "content"), "text")
            case ("tool_call" | "tool_call_update") as kind:
                yield from self._said()
                yield PromptAccepted()
                yield from self._called(update, is_new=kind == "tool_call")

    def _said(self) -> Iterator[AgentEvent]:
        """Yield what the model has said, once it has done so: programs speak in between."""
        text, self._text = self._text.strip(), ""
        if text:
            yield PromptAccepted()
            yield Said(f"says: {text[:_MAX_SAID]}")

    def _called(self, update: Fields, *, is_new: bool) -> Iterator[AgentEvent]:
        call_id = text_of(update, "toolCallId")
        if text_of(update, "status") in {"completed", "failed"}:
            self._calls.pop(call_id, None)
            return
        if len(self._calls) < _MAX_CALLS or call_id in self._calls:
            self._calls[call_id] = _merged(self._calls.get(call_id, {}), update)
        if is_new:
            yield Said(f"calls {text_of(update, 'title')}")
            if titled_as_ours(update) in {ASK_TOOL, APPROVAL_TOOL}:
                yield Asking()

    def _permission(self, request: RpcRequest) -> Iterator[AgentEvent]:
        asked = fields_of(request.params, "toolCall")
        call_id = text_of(asked, "toolCallId")
        known = self._calls.get(call_id, {})
        call = _merged(known, asked)
        if known.get("kind") == "execute":
            # Some ask for a folder that a command needs, and call that another kind.
            call["kind"] = "execute"
        allow, reject = _choices(items_of(request.params, "options"))
        if is_ours(call) and allow:
            yield Send(self._rpc.respond(request, _picked(allow)))
            return
        yield PromptAccepted()
        tool, given = read_call(call, self._place["cwd"])

        def reply(verdict: Verdict) -> str:
            sign = denied(call_id or request.key, tool, given)
            if not verdict.is_allowed:
                self._untold.append(f"This was not allowed:\n\n{sign.detail}\n{verdict.words}")
                self._denied.append(sign)
            elif verdict.words:
                self._untold.append(f"{sign.detail}\n{verdict.words}")
            return self._rpc.respond(request, _picked(allow if verdict.is_allowed else reject))

        if allow:
            yield PermissionWanted(request.key, request.unique_key, tool, given, reply)
        else:
            yield Send(reply(Verdict(is_allowed=False, words="It cannot be allowed just once.")))

    def _form(self, request: RpcRequest) -> Iterator[AgentEvent]:
        return ask_form(request, partial(self._rpc.respond, request))

    def _cancelled(self, params: Fields) -> Iterator[AgentEvent]:
        asked = RpcRequest(params.get("requestId", ""), "", {})
        yield RequestDropped(asked.key)


def _merged(known: Fields, update: Fields) -> dict[str, Any]:
    """Return what is known of a call when it is told once more: what is null is as it was."""
    return {**known, **{name: value for name, value in update.items() if value is not None}}


def _choices(options: list[Fields]) -> tuple[str, str]:
    """Return what says yes, for once, and what says no; empty where that is not clear."""
    ids = [text_of(option, "optionId") for option in options]
    once = [one for option, one in zip(options, ids, strict=True) if option.get("kind") == _ALLOW]
    noes = [one for option, one in zip(options, ids, strict=True) if option.get("kind") == _REJECT]
    clear = {one for one in ids if ids.count(one) == 1}
    allow = once[0] if len(once) == 1 and once[0] in clear else ""
    return allow, next((one for one in noes if one in clear), "")


def _picked(option: str) -> Fields:
    """Return the choice; whoever offers none is told that nobody chose."""
    if not option:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option}}
