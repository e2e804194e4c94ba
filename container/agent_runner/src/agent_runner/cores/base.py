"""What a core knows of its agent program: how to start it, and how to read what it prints.

A core decides nothing and touches nothing: it turns a Start into a Command and lines into signs.
What the signs lead to is the same for every program (see running.py).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agent_runner.asking.wire import whole

SERVER_NAME = "pynchy"
ASK_TOOL = "ask_user"

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpServer:
    """The MCP server that the program is to start, and how long a call of its tools may block.

    `env` may stand on a command line; `inherits` names what only an environment may hold.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    call_limit_seconds: float
    inherits: tuple[str, ...] = ()

    def with_env(self, **more: str) -> "McpServer":
        """Return the same server with more in its environment."""
        return replace(self, env={**self.env, **more})

    @property
    def env_with_limit(self) -> dict[str, str]:
        """The environment for programs that give up at the limit, whatever progress they see."""
        return {**self.env, "PYNCHY_MAX_WAIT": f"{self.call_limit_seconds:g}"}


@dataclass(frozen=True, slots=True)
class HookCommand:
    """What the program is to call before the tool by which it asks a person runs.

    `tool` is that tool: ours, or one of the program's own. The hook may take `limit_seconds`.
    """

    command: tuple[str, ...]
    tool: str
    limit_seconds: float
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Start:
    """One run. `program_id` is the program's own name for the session, None if not known.

    `mailbox` is the group's: another group's session of the same id is another session.
    `resumes`: the session has been at work before, so it must not be begun again. `environ` is
    what the program inherits, `extra` what whoever set this up wants on its command line.
    `hook` is None where our tool alone waits. `goes_on`: the program was parked, and is to make the
    call that it put off, without a prompt.
    """

    session_id: str
    mailbox: Path
    program_id: str | None
    resumes: bool
    server: McpServer
    environ: Mapping[str, str]
    extra: tuple[str, ...] = ()
    hook: HookCommand | None = None
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """How the program is started; the prompt goes to its stdin.

    `env` is set beside what is inherited, `unset` taken out of it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """The program has a session, and calls it so."""

    program_id: str


@dataclass(frozen=True, slots=True)
class PromptAccepted:
    """The model has answered: the prompt has reached it, and is in the session's history."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something worth a line in the log."""

    text: str


@dataclass(frozen=True, slots=True)
class Asking:
    """The model has called `ask_user`, and the program waits."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The program has put the call of `ask_user` off, and ends."""


@dataclass(frozen=True, slots=True)
class NotParked:
    """The program knows of no call that it has put off: it needs a prompt to go on."""


@dataclass(frozen=True, slots=True)
class Denied:
    """A call of a tool that the model made was not allowed. `call_id` tells it from others."""

    call_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class NoServer:
    """The program goes on without our MCP server: the model cannot ask."""

    detail: str


@dataclass(frozen=True, slots=True)
class NoSession:
    """The program does not know the session that it was to go on with."""

    detail: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The program says that its work has failed."""

    detail: str


AgentEvent = (
    Named
    | PromptAccepted
    | Said
    | Asking
    | Parked
    | NotParked
    | Denied
    | NoServer
    | NoSession
    | Failed
)


class Core(Protocol):
    """One agent program."""

    program: str

    def command(self, start: Start) -> Command:
        """Return how the program is started. Raise SessionUnknown."""

    def read(self, line: str) -> Iterable[AgentEvent]:
        """Return what a line of its output means."""

    def read_error(self, line: str) -> Iterable[AgentEvent]:
        """Return what a line of its errors means. Its tools may write there: it is no event."""


def as_event(line: str) -> Fields | None:
    """Return the JSON object in a line; None for any other line."""
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def fields_of(event: Fields, name: str) -> Fields:
    """Return the object under that name, empty where there is none."""
    value = event.get(name)
    return value if isinstance(value, dict) else {}


def items_of(event: Fields, name: str) -> list[Fields]:
    """Return the objects of the list under that name."""
    value = event.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(event: Fields, name: str) -> str:
    """Return the text under that name, empty where there is none."""
    value = event.get(name)
    return whole(value) if isinstance(value, str) else ""
