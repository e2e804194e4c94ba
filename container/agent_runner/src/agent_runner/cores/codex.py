"""Codex: `codex exec --json`, or `codex app-server` where somebody is to be asked for permissions.

`exec` asks nobody, whatever its approval policy is: one that asks, among the arguments, chooses the
server. Codex names its threads itself, so the thread's id is what the session book keeps. Its time
limit for a call counts from the call's start, whatever progress it is told.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping

from agent_runner.cores._codex_server import CodexTalk, lack
from agent_runner.cores.base import (
    APPROVAL_TOOL,
    ASK_TOOL,
    SERVER_NAME,
    STARTUP_SECONDS,
    AgentEvent,
    Asking,
    Command,
    Failed,
    Fields,
    McpServer,
    Named,
    PromptAccepted,
    Said,
    Start,
    as_event,
    fields_of,
    text_of,
)
from agent_runner.errors import SessionUnknown

# What options of `codex exec` are among the settings, the only thing that the server takes.
_CONFIG = ("-c", "--config")
_SETTINGS = {
    "-m": "model",
    "--model": "model",
    "-s": "sandbox_mode",
    "--sandbox": "sandbox_mode",
    "-a": "approval_policy",
    "--ask-for-approval": "approval_policy",
}


class Codex:
    """See Core."""

    program = "codex"

    def command(self, start: Start) -> Command:
        """See Core."""
        thread = start.program_id or (_own_thread(start.session_id) if start.resumes else None)
        if start.resumes and thread is None:
            raise SessionUnknown(f"no thread of Codex is known for the session {start.session_id}")
        settings = ("-c", f"mcp_servers.{SERVER_NAME}={_toml(_entry(start.server))}")
        if (options := _asking_options(start.extra)) is not None:
            argv = (self.program, "app-server", *settings, *options)
            return Command(argv, talk=CodexTalk(thread))
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
        yield lack(line) or Said(line)


CORE = Codex()


def _own_thread(session_id: str) -> str | None:
    """Return the thread of a session that Codex named itself, since a person had started it.

    Where it is no thread, Codex says so and begins none.
    """
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return None


def _asking_options(extra: Iterable[str]) -> list[str] | None:
    """Return what is added for the server; None where nobody is to be asked."""
    options: list[str] = []
    policy, words = "never", iter(extra)
    for word in words:
        name, value = _split(word)
        if name in _CONFIG:
            setting = next(words, "") if value is None else value
        elif name in _SETTINGS:
            setting = f"{_SETTINGS[name]}={_toml(next(words, '') if value is None else value)}"
        else:
            options += [] if word == "--skip-git-repo-check" else [word]
            continue
        options += ["-c", setting]
        key, _, chosen = setting.partition("=")
        if key.strip().strip("\"'") == "approval_policy":
            policy = chosen.strip().strip("\"'")
    return None if policy == "never" else options


def _split(word: str) -> tuple[str, str | None]:
    """Return an option and its value; None where that is the next word."""
    name, equals, value = word.partition("=")
    if word[:2] in _CONFIG or word[:2] in _SETTINGS:
        # A short option may be joined with its value: -aon-request, -a=on-request.
        return word[:2], word[2:].removeprefix("=") if word[2:] else None
    return name, value if equals else None


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
        if item.get("server") == SERVER_NAME and item.get("tool") in {ASK_TOOL, APPROVAL_TOOL}:
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
