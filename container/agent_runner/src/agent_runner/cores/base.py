"""What a core knows of its agent program: how to start it, and how to read what it prints.

A core decides nothing and touches nothing: it turns a Start into a Command and lines into signs.
What the signs lead to is the same for every program (see running.py).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agent_runner.asking import Question, Result, WhyAsked
from agent_runner.asking.wire import whole

SERVER_NAME = "pynchy"
ASK_TOOL = "ask_user"
APPROVAL_TOOL = "request_approval"
# How long Codex waits for our server at its start.
STARTUP_SECONDS = 60

Fields = Mapping[str, Any]

# What runs a program of some package, and those of its options that have a value.
_RUN_OTHERS = frozenset({"npx", "bunx", "pnpx", "uvx"})
_BEFORE_A_PACKAGE = frozenset({"-p", "--package", "--from", "--with", "--python", "--registry"})

# A program may go on serving when nobody talks to it any more.
STOP_AFTER_SECONDS = 15.0

# By which of its arguments a person sees what a call of a tool was to do.
_SAYING = ("command", "file_path", "notebook_path", "url", "query", "pattern", "prompt")


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


class Talk(Protocol):
    """One conversation with a program that reads what it is told while it works.

    Its stdin stays open until TurnEnded. What is written there is in lines, each with its end.
    """

    def begin(self, prompt: str) -> str:
        """Return what the program is told first; the prompt may come later, by Send."""

    def say(self, text: str) -> str:
        """Return what lets the model read a text while it works; empty if nothing does."""

    def read(self, line: str) -> "Iterable[AgentEvent]":
        """Return what a line of its output means."""


@dataclass(frozen=True, slots=True)
class Command:
    """How the program is started; the prompt goes to its stdin.

    `env` is set beside what is inherited, `unset` taken out of it. With a `talk` it is told more.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    talk: Talk | None = None


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
    """The model has called a tool that asks a person, and the program waits."""


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
class Send:
    """The program is to be told this, on its stdin."""

    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person, or their silence, makes of a call. `words` are for the model.

    `input` is what a person wants the call to be made with, None where that is as it was.
    """

    is_allowed: bool
    words: str = ""
    input: Fields | None = None


@dataclass(frozen=True, slots=True)
class PermissionWanted:
    """The program waits for permission to make a call. `reply` is what it is to be told.

    `key` is its own name for this request, `call_id` for the call. `cwd` is where the call would
    be made, empty where that is the folder of the program. `editable`: it takes another input.
    `park` returns what ends the program without harm, so that it can be resumed; empty if nothing.
    `why` is why it stopped, where it says so.
    """

    key: str
    call_id: str
    tool: str
    input: Fields
    reply: Callable[[Verdict], str]
    cwd: str = ""
    editable: bool = False
    park: Callable[[], str] = str
    why: WhyAsked | None = None


@dataclass(frozen=True, slots=True)
class QuestionWanted:
    """The program itself waits for a person's answers. `reply` is what it is to be told.

    `title` is what it says of all the questions together.
    """

    key: str
    questions: tuple[Question, ...]
    reply: Callable[[Result], str]
    title: str = ""


@dataclass(frozen=True, slots=True)
class RequestDropped:
    """The program no longer waits for permission or an answer: it gave up, or has it elsewhere."""

    key: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The program has done what the prompt asked for, and would read another.

    With `stop_after_seconds`, it is stopped if it has not ended by then: some serve for ever.
    """

    stop_after_seconds: float | None = None


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
    | Send
    | PermissionWanted
    | QuestionWanted
    | RequestDropped
    | TurnEnded
    | NoServer
    | NoSession
    | Failed
)


class Core(Protocol):
    """One agent program.

    `program` is what it is called; empty where the first of what is added names it.
    """

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


def denied(call_id: str, tool: str, given: Fields) -> Denied:
    """Return what was not allowed, with what the tool was to do as far as that is told."""
    doing = next((text_of(given, name) for name in _SAYING if given.get(name)), "")
    return Denied(call_id, f"{tool}: {doing}" if doing else tool)


def turn_ended() -> TurnEnded:
    """Return what ends a turn of a program that may serve for ever."""
    return TurnEnded(STOP_AFTER_SECONDS)


def turn_failed(detail: str) -> Iterator[AgentEvent]:
    """Yield what ends it because of a failure."""
    yield Failed(detail)
    yield turn_ended()


def name_of(command: Sequence[str]) -> str:
    """Return what a program is called: not npx, but what that is to run."""
    words = iter(command)
    name = Path(next(words)).name
    for word in words if name in _RUN_OTHERS else ():
        if word in _BEFORE_A_PACKAGE:
            next(words, "")
        elif not word.startswith("-"):
            # Without its version, as in @scope/program@1.2.
            return Path(word[:1] + word[1:].partition("@")[0]).name
    return name
