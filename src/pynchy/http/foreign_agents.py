"""Agents that pynchy did not start, beside the questions that people are asked in their place.

What an agent waits for is told once: as the question that was made of it, while people can answer
that, and else as its source sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pynchy.inbox.agents import (
    AgentStatus,
    AgentView,
    AskView,
    ToolView,
    question_views,
)
from pynchy.inbox.views import one_line, order_of
from pynchy.model import Kind, PendingQuestion, State
from pynchy.sources.base import AgentState, SeenAgent, SeenAsk

_WAITS = frozenset({AgentState.WAITING, AgentState.PERMISSION})
# What is made of a text that others wrote, however long it is.
_MAX_SOURCE = 1_000
_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class ForeignAgent:
    """An agent as its source sees it, beside the questions that were made of what it asks.

    `questions` are those that are not delivered, `alone` waits at the agent's own screen only.
    """

    seen: SeenAgent
    questions: tuple[PendingQuestion, ...] = ()
    alone: tuple[SeenAsk, ...] = ()

    @property
    def asks(self) -> tuple[AskView, ...]:
        """All that it waits for a person with, what can be answered here first."""
        here = [q for q in self.questions if q.state.waits_for_person]
        there = [AskView(ask.kind, short(ask.title), ask.since) for ask in self.alone]
        return (*(question_views(q)[1] for q in sorted(here, key=order_of)), *there)

    @property
    def state(self) -> AgentState:
        """What it does: as its source says, unless the questions tell otherwise."""
        if asks := self.asks:
            return waiting_state(asks)
        # What it waited for has been answered here, and its source does not know that yet.
        if self.seen.state in _WAITS and self.seen.asks:
            return AgentState.WORKING
        return self.seen.state

    @property
    def is_guess(self) -> bool:
        """True if the state is concluded from something else, and nobody has told it."""
        return self.seen.guessed and self.state is self.seen.state and not self.questions

    @property
    def permissions(self) -> int:
        """How many permissions it waits for at its own screen alone, for certain."""
        return sum(ask.kind is not Kind.QUESTION for ask in self.alone)

    @property
    def guessed_permissions(self) -> int:
        """How many more it may wait for, by the tools that run for long."""
        certain = sum(ask.is_permission for ask in self.asks)
        perhaps = sum(tool.may_need_permission for tool in self.seen.tools)
        return max(0, perhaps - certain)

    def view(self) -> AgentView:
        """Return it as lists show it."""
        seen, state, asks = self.seen, self.state, self.asks
        status = self._status()
        return AgentView(
            group=seen.group,
            name=short(seen.agent),
            task=short(seen.task),
            session_id=short(seen.session_id),
            lives=state is not AgentState.ENDED,
            status=status,
            items=tuple(question_views(q)[0] for q in self.questions if _stands(q) is status),
            asks=asks,
            source=seen.source,
            state=state,
            guessed=self.is_guess,
            since=waiting_since(asks) or seen.since,
            title=waiting_title(asks) or short(seen.title),
            tools=tuple(
                ToolView(short(run.tool), short(run.argument), run.started, run.may_need_permission)
                for run in seen.tools
            ),
            todos=max(0, seen.open_todos),
        )

    def _status(self) -> AgentStatus:
        stands = {_stands(question) for question in self.questions}
        for status in (AgentStatus.UNDELIVERED, AgentStatus.WAITING, AgentStatus.RESUMING):
            if status in stands:
                return status
        match self.state:
            case AgentState.PERMISSION | AgentState.WAITING:
                return AgentStatus.WORKING if self.is_guess else AgentStatus.WAITING
            case AgentState.PARKED:
                return AgentStatus.PARKED
            case AgentState.IDLE:
                return AgentStatus.IDLE
            case AgentState.ENDED:
                return AgentStatus.ENDED
            case _:
                return AgentStatus.WORKING


def foreign_agents(
    seen: Iterable[SeenAgent], pending: Iterable[PendingQuestion]
) -> list[ForeignAgent]:
    """Return the agents with their questions: no question is of two agents."""
    agents = list(seen)
    if not agents:
        return []
    owners = {ask.key: at for at, agent in enumerate(agents) for ask in agent.asks if ask.key}
    sessions = {(a.source, a.session_id): at for at, a in enumerate(agents) if a.session_id}
    found: dict[int, list[PendingQuestion]] = {}
    for question in pending:
        if question.source and question.delivered is None:
            by_session = sessions.get((question.source, question.session_id))
            if (at := owners.get(question.key, by_session)) is not None:
                found.setdefault(at, []).append(question)
    return [_with_questions(agent, found.get(at, [])) for at, agent in enumerate(agents)]


def _with_questions(agent: SeenAgent, questions: list[PendingQuestion]) -> ForeignAgent:
    """Return the agent; what it asks is not told beside a question that was made of it."""
    keys = {ask.key for ask in agent.asks}
    spare = Counter(
        q.kind is Kind.QUESTION for q in questions if q.state.waits_for_person and q.key not in keys
    )
    alone = []
    for ask in agent.asks:
        sort = ask.kind is Kind.QUESTION
        if ask.key is None and not spare[sort]:
            alone.append(ask)
        elif ask.key is None:
            spare[sort] -= 1
    return ForeignAgent(agent, tuple(questions), tuple(alone))


def _stands(question: PendingQuestion) -> AgentStatus:
    if question.state is State.UNDELIVERED:
        return AgentStatus.UNDELIVERED
    waits = question.state.waits_for_person
    return AgentStatus.WAITING if waits else AgentStatus.RESUMING


def waiting_state(asks: Sequence[AskView]) -> AgentState:
    """Return what an agent does that waits for a person with these."""
    is_permission = any(ask.is_permission for ask in asks)
    return AgentState.PERMISSION if is_permission else AgentState.WAITING


def waiting_title(asks: Sequence[AskView]) -> str:
    """Return what the agent waits for above all; empty if for nothing."""
    return next((ask.title for ask in _pressing(asks)), "")


def waiting_since(asks: Sequence[AskView]) -> datetime | None:
    """Return since when the agent waits for that."""
    return min((ask.since for ask in _pressing(asks) if ask.since is not None), default=None)


def _pressing(asks: Sequence[AskView]) -> Sequence[AskView]:
    return [ask for ask in asks if ask.is_permission] or asks


def short(text: str) -> str:
    """Return a text that others wrote in one line, cut where it is long."""
    line = one_line(text[:_MAX_SOURCE])
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"
