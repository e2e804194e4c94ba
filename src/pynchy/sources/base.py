"""What a source of questions is, and the way back to whoever asked.

A question names its source; an empty name means the mailbox. Only the way in and the way back
differ between sources: what lies between is one path for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pynchy.calls import ToolCall
from pynchy.events import Event
from pynchy.model import GroupName, Kind, PendingQuestion, Question, RequestId, SessionId, Urgency
from pynchy.pending.base import Key, OpenQuestions
from pynchy.typed_line import TypingResult
from pynchy.wire import PHUX

MAILBOX = ""
CLAUDE_TERMINAL = "claude-terminal"
CODEX_TERMINAL = "codex-terminal"
OPENCODE = "opencode"
# Their programs keep a question while we are away; by name, with the table that sets each up.
HELD_SOURCES = {
    CODEX_TERMINAL: "[sources.codex]",
    OPENCODE: "[sources.opencode]",
    PHUX: "[sources.phux]",
}
NO_SESSION = SessionId("")
# Questions of one source that are open. Each is a card; more than that is no person's day.
MAX_OPEN = 64


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Why an answer would not arrive as things are; `is_final` if it never will."""

    why: str
    is_final: bool


class AnswerRoute(Protocol):
    """The way back to whoever asked."""

    async def respond(self, pending: PendingQuestion) -> None:
        """Put the outcome where the asker finds it. To do it again is harmless."""

    async def see_through(self, key: Key) -> None:
        """Return when the asker has the outcome, or does not need it."""

    async def tell_unseen(self, pending: PendingQuestion, why: str) -> None:
        """Let the asker know that nobody can have seen the question yet; empty: somebody can."""

    def why_no_retry(self, pending: PendingQuestion) -> str | None:
        """Say why a delivery that failed cannot be tried again; None if it can be."""

    def unreachable(self, pending: PendingQuestion) -> Unreachable | None:
        """Say why an answer would not arrive; None if it may. It may look at the disk."""

    def problem(self, group: GroupName) -> str | None:
        """Say what is wrong with the way back to the group, in words for a person."""


def _future() -> asyncio.Future[PendingQuestion | None]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class HeldConnection:
    """One agent that waits. `told` says whether it has been sent how the question ended."""

    ended: asyncio.Future[PendingQuestion | None] = field(default_factory=_future)
    told: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class KeptRoute(AnswerRoute, Protocol):
    """The way back to programs that keep a question while we are away."""

    def lose(self, key: Key) -> None:
        """The program does not wait for it any more: an answer would reach nobody."""


class HeldRoute(KeptRoute, Protocol):
    """The way back to programs that show such a question again."""

    def connection(self, key: Key) -> AbstractContextManager[HeldConnection]:
        """Take it that the program waits for the question's end for as long as this lasts."""


class Typist(Protocol):
    """Types answers into terminals."""

    async def type_answer(self, pending: PendingQuestion) -> TypingResult:
        """Type the answer, if the very question still stands. Called once for each question."""


class TypingRoute(KeptRoute, Protocol):
    """The way back to programs whose answer is typed. Nothing is typed without a typist."""

    typist: Typist | None


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question that has appeared at a source. `request_id` is the same each time.

    For a permission it says in `call` what is to be allowed, and has no questions. `ask_id` is what
    the agent calls it in its terminal: under one id of a group it asks one thing.
    """

    group: GroupName
    request_id: RequestId
    questions: tuple[Question, ...]
    kind: Kind = Kind.QUESTION
    title: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    session_id: SessionId = NO_SESSION
    call: ToolCall | None = None
    ask_id: str = ""


class AgentState(StrEnum):
    """What an agent does, the most pressing first."""

    PERMISSION = "permission"
    WAITING = "waiting"
    PARKED = "parked"
    WORKING = "working"
    IDLE = "idle"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A call that has begun and not ended. `may_need_permission` is a guess, by how long it runs.

    `started` is None where the program does not say.
    """

    tool: str
    argument: str
    started: datetime | None
    may_need_permission: bool = False


@dataclass(frozen=True, slots=True)
class SeenAsk:
    """What an agent waits for a person with, as its source sees it.

    `key` is that of the question that people are asked in its place; None if it is shown alone.
    `text` is what is asked in full, where that is more than the title, and `agent` who asks it,
    where that is not the program itself.
    """

    kind: Kind
    title: str
    since: datetime | None = None
    key: Key | None = None
    text: str = ""
    options: tuple[str, ...] = ()
    agent: str = ""
    urgency: Urgency = Urgency.NORMAL


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """An agent that pynchy did not start. `guessed`: its state is concluded, not told."""

    source: str
    group: GroupName
    agent: str
    session_id: str
    state: AgentState
    title: str = ""
    task: str = ""
    since: datetime | None = None
    guessed: bool = False
    tools: tuple[ToolRun, ...] = ()
    asks: tuple[SeenAsk, ...] = ()
    open_todos: int = 0


class SourceHandler(Protocol):
    """What a source calls."""

    async def asked(self, source: str, question: SourceQuestion) -> PendingQuestion | None:
        """Record the question, durably. One that is known already is left alone, and returned.

        Raise MalformedRequest for what cannot be asked: a default that could never be applied,
        or more than the group may have open.
        """

    async def cleared(
        self, source: str, group: GroupName, request_id: RequestId, reason: str
    ) -> None:
        """End a question that its source took back: it is no longer asked, and not answered.

        A question of another source is left alone.
        """


@dataclass(frozen=True, slots=True)
class SourceServices:
    """What the host gives a source whose program keeps its questions while we are away."""

    route: HeldRoute
    index: OpenQuestions
    publish: Callable[[Event], None]
    now: Callable[[], datetime]


class Source(Protocol):
    """Foreign agents that may wait for a person."""

    @property
    def name(self) -> str:
        """Return what the source is called in settings and records."""

    @property
    def route(self) -> AnswerRoute:
        """Return the way back to its agents."""

    @property
    def problem(self) -> str | None:
        """Say what is wrong with it just now, in words for a person."""

    @property
    def warnings(self) -> Sequence[str]:
        """Say what is odd at agents that nobody has configured: no problem of the host's."""

    def agents(self) -> Sequence[SeenAgent]:
        """Return the agents that it sees just now. It waits for nothing."""

    async def run(self, handler: SourceHandler) -> None:
        """Tell the handler of questions that appear and are cleared, until cancelled."""


def open_of(index: OpenQuestions, source: str) -> list[PendingQuestion]:
    """Return the source's questions that are not over for whoever asked them."""
    return [p for p in index if p.source == source and p.delivered is None]


async def end(
    route: KeptRoute, handler: SourceHandler, pending: PendingQuestion, reason: str
) -> None:
    """End a question that is not asked any more; an answer to it reaches nobody."""
    if pending.ending is None:
        await handler.cleared(pending.source, *pending.key, reason)
    # Also then: somebody may have answered it meanwhile.
    route.lose(pending.key)


async def let_go(
    source: str, route: KeptRoute, index: OpenQuestions, handler: SourceHandler, reason: str
) -> None:
    """End all that a source has asked: it asks no more."""
    for pending in open_of(index, source):
        await end(route, handler, pending, reason)
