"""Codex: `codex exec --json`.

It names its threads itself, so the thread's id is what the session book keeps. Its time limit for
a call counts from the call's start, whatever progress it is told.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping

from agent_runner.cores.base import (
    ASK_TOOL,
    SERVER_NAME,
    AgentEvent,
    Asking,
    Command,
    Failed,
    Fields,
    McpServer,
    Named,
    NoServer,
    NoSession,
    PromptAccepted,
    Said,
    Start,
    as_event,
    fields_of,
    text_of,
)
from agent_runner.errors import SessionUnknown

STARTUP_SECONDS = 60

_NO_SERVER = "required MCP servers failed to initialize"
_NO_SESSION = "no rollout found for thread"


class Codex:
    """See Core."""

    program = "codex"

    def command(self, start: Start) -> Command:
        """See Core."""
        thread = start.program_id or (_own_thread(start.session_id) if start.resumes else None)
        if start.resumes and thread is None:
            raise SessionUnknown(f"no thread of Codex is known for the session {start.session_id}")
        settings = ("-c", f"mcp_servers.{SERVER_NAME}={_toml(_entry(start.server))}")
        session = ("resume", thread) if thread else ()
        return Command(
            (
                self.program,
                "exec",
                *("--json", "--skip-git-repo-check"),
                *settings,
                *start.extra,
                *session,
                "-",
            )
        )

    def read(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        event = as_event(line)
        if event is None:
            return self.read_error(line)
        match event.get("type"):
            case "thread.started":
                return [Named(text_of(event, "thread_id"))]
            case "item.started":
                return _begun(fields_of(event, "item"))
            case "item.completed":
                return _done(fields_of(event, "item"))
            case "turn.failed":
                return [Failed(text_of(fields_of(event, "error"), "message") or "the turn failed")]
        return []

    def read_error(self, line: str) -> Iterator[AgentEvent]:
        """See Core."""
        if _NO_SERVER in line:
            yield NoServer(line)
        elif _NO_SESSION in line:
            yield NoSession(line)
        else:
            yield Said(line)


CORE = Codex()


def _own_thread(session_id: str) -> str | None:
    """Return the thread of a session that Codex named itself, since a person had started it.

    Where it is no thread, Codex says so and begins none.
    """
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return None


def _entry(server: McpServer) -> Fields:
    program, *arguments = server.command
    return {
        "command": program,
        "args": arguments,
        "env": server.env_with_limit,
        # Of all else, Codex hands on a few names alone.
        "env_vars": list(server.inherits),
        # Without it, Codex starts all the same and the model cannot ask.
        "required": True,
        "startup_timeout_sec": STARTUP_SECONDS,
        "tool_timeout_sec": server.call_limit_seconds,
        # In `exec` nobody can be asked whether somebody may be asked.
        "default_tools_approval_mode": "approve",
    }


def _toml(value: object) -> str:
    """Return the value as TOML has it inline."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
    # What TOML calls a basic string, a number and a boolean is written as in JSON.
    return json.dumps(value, ensure_ascii=False)


def _begun(item: Fields) -> Iterator[AgentEvent]:
    yield PromptAccepted()
    if item.get("type") == "mcp_tool_call":
        yield Said(f"calls {text_of(item, 'server')}/{text_of(item, 'tool')}")
        if (item.get("server"), item.get("tool")) == (SERVER_NAME, ASK_TOOL):
            yield Asking()
    elif item.get("type") == "command_execution":
        yield Said(f"runs {text_of(item, 'command')}")


def _done(item: Fields) -> Iterator[AgentEvent]:
    if item.get("type") == "error":  # Codex's own, before the model has said a word
        yield Said(text_of(item, "message"))
        return
    yield PromptAccepted()
    if item.get("type") == "agent_message":
        yield Said(f"says: {text_of(item, 'text')}")
