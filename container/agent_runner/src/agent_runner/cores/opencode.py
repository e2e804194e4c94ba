"""OpenCode: `opencode acp`, or `opencode run --format json` with an option that only that has.

It names its sessions itself, so the session book keeps that name. Its time limit for a call starts
again with each sign of progress, so our server need not return before it.
"""

import json
import re
from collections.abc import Iterable, Iterator

from agent_runner.cores._json_rpc import ErrorReply
from agent_runner.cores.acp import AcpTalk
from agent_runner.cores.base import (
    SERVER_NAME,
    AgentEvent,
    Command,
    Denied,
    Failed,
    Fields,
    McpServer,
    Named,
    NoSession,
    PromptAccepted,
    Said,
    Start,
    as_event,
    fields_of,
    text_of,
)
from agent_runner.errors import SessionUnknown

CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"

# What `opencode acp` takes too, with how many words follow.
_COMMON_OPTIONS = {"--pure": 0, "--print-logs": 0, "--log-level": 1}
# What its settings can say as well as an option of `run`.
_SETTINGS = {"-m": "model", "--model": "model", "--agent": "default_agent"}
_NO_SESSION = "Session not found"
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")
# `opencode run` rejects what somebody would have to allow, and says so among its errors.
_REJECTED = re.compile(r"! *permission requested: (.+); auto-rejecting")


class OpenCode:
    """See Core."""

    program = "opencode"

    def command(self, start: Start) -> Command:
        """See Core."""
        if start.resumes and start.program_id is None:
            raise SessionUnknown(f"no session of OpenCode is known for {start.session_id}")
        config = _with_server(start.environ.get(CONFIG_VARIABLE, ""), start.server)
        if (split := _split(start.extra)) is not None:
            options, settings = split
            env = {CONFIG_VARIABLE: json.dumps({**config, **settings})}
            talk = AcpTalk(start.program_id, [], _is_unknown)
            return Command((self.program, "acp", *options), env, talk=talk)
        session = ("--session", start.program_id) if start.program_id else ()
        argv = (self.program, "run", "--format", "json", *session, *start.extra)
        return Command(argv, {CONFIG_VARIABLE: json.dumps(config)})

    def read(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        event = as_event(line)
        if event is None:
            return self.read_error(line)
        return _heard(event)

    def read_error(self, line: str) -> Iterable[AgentEvent]:
        """See Core."""
        if _NO_SESSION in line:
            return [NoSession(_NO_SESSION)]
        if rejected := _REJECTED.fullmatch(_COLOURS.sub("", line).strip()):
            return [Denied(rejected[1], rejected[1])]
        return [Said(line)]


CORE = OpenCode()


def _split(extra: Iterable[str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the options for `opencode acp`, and the settings that the others mean.

    None if one of them is for `opencode run` alone.
    """
    options: list[str] = []
    settings: dict[str, str] = {}
    words = iter(extra)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in _SETTINGS and name not in _COMMON_OPTIONS:
            return None
        follows = name in _SETTINGS or _COMMON_OPTIONS[name]
        if follows and not equals:
            value = next(words, "")
        if name in _SETTINGS:
            settings[_SETTINGS[name]] = value
        else:
            options += [name, value] if follows else [word]
    return options, settings


def _is_unknown(error: ErrorReply) -> bool:
    """Say whether OpenCode does not know the session: it calls that a failure of its sessions."""
    return text_of(error.data, "service") == "session"


def _with_server(inherited: str, server: McpServer) -> Fields:
    """Return the settings that the environment has already, with our server among its own."""
    config = dict(as_event(inherited) or {})
    entry = {
        "type": "local",
        "command": list(server.command),
        "environment": dict(server.env),
        "enabled": True,
    }
    # A `timeout` of the server itself would be the limit for starting it too.
    limit = {"mcp_timeout": round(server.call_limit_seconds * 1000)}
    return config | {
        "experimental": {**fields_of(config, "experimental"), **limit},
        "mcp": {**fields_of(config, "mcp"), SERVER_NAME: entry},
        "permission": {**fields_of(config, "permission"), f"{SERVER_NAME}_*": "allow"},
    }


def _heard(event: Fields) -> Iterator[AgentEvent]:
    if name := text_of(event, "sessionID"):
        yield Named(name)
    part = fields_of(event, "part")
    match event.get("type"):
        # A step begins as soon as the API has answered, though its model may never say a word.
        case "step_finish" if fields_of(part, "tokens").get("output"):
            yield PromptAccepted()
        case "text":
            yield PromptAccepted()
            yield Said(f"says: {text_of(part, 'text')}")
        case "tool_use":
            yield PromptAccepted()
            yield Said(f"has called {text_of(part, 'tool')}")
        case "error":
            error = fields_of(event, "error")
            detail = text_of(fields_of(error, "data"), "message") or text_of(error, "name")
            yield Failed(detail or "an error without a word")
