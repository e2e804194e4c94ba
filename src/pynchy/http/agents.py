"""Who is at work or waiting, whoever started them, and how the host is in figures.

What a foreign agent waits for is told once: as the question that was made of it, while people can
answer that, and else as its source sees it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pynchy.http.context import HttpContext
from pynchy.inbox.agents import (
    OURS,
    AgentStatus,
    AgentView,
    AskView,
    LiveRunner,
    ToolView,
    agent_views,
    question_views,
)
from pynchy.inbox.views import one_line, order_of
from pynchy.model import GroupName, Kind, PendingQuestion, SessionId, State, Urgency
from pynchy.pending.base import HistoryQuery
from pynchy.sources.base import AgentState, SeenAgent, SeenAsk

_LATELY = 300
_WAITS = frozenset({AgentState.WAITING, AgentState.PERMISSION})
# What is made of a text that others wrote, however long it is.
_MAX_SOURCE = 1_000
_MAX_TEXT = 300


async def find_agents(context: HttpContext) -> list[AgentView]:
    """Return every agent that lives or has something open: ours, then those of others."""
    live = await find_live(context)
    foreign = foreign_agents(context.seen_agents(), context.ledger.index)
    theirs = {question.key for agent in foreign for question in agent.questions}
    pending = [question for question in context.ledger.index if question.key not in theirs]
    names: dict[tuple[GroupName, str], str] = {}
    if live:
        # Newest last, so that what a runner called itself last counts.
        for over in reversed(await context.history.recent(HistoryQuery(limit=_LATELY))):
            names[over.group, over.lease] = over.agent
    for runner in live:
        session = context.session_context.tracker.get(runner.group, runner.session_id)
        if session and session.agent:
            names[runner.group, runner.lease] = session.agent
    asked = [_with_state(context, view) for view in agent_views(live, pending, names)]
    ours = [view for view in asked if view.source == OURS]
    others = [view for view in asked if view.source != OURS]
    places = {view.session_id: at for at, view in enumerate(ours) if view.session_id}
    for agent in foreign:
        view, at = agent.view(), places.get(agent.seen.session_id)
        if at is None:
            others.append(view)
        else:
            ours[at] = _merged(ours[at], view)
    return [*ours, *sorted(others, key=_order)]


def _merged(ours: AgentView, seen: AgentView) -> AgentView:
    """Return an agent that asks through us and is seen by a source besides."""
    told = replace(
        ours,
        tools=seen.tools,
        todos=seen.todos,
        items=(*ours.items, *seen.items),
        asks=(*ours.asks, *seen.asks),
    )
    if ours.asks or ours.status is not AgentStatus.WORKING:
        return told
    return replace(
        told,
        state=seen.state,
        guessed=seen.guessed,
        since=seen.since or ours.since,
        title=seen.title,
    )


def seen_revision(context: HttpContext) -> str:
    """Return what changes when anything does that sources tell of foreign agents."""
    told = repr(context.seen_agents())
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _order(view: AgentView) -> tuple[str, int, str, str, str]:
    rank = list(AgentState).index(AgentState(view.state))
    return view.source, rank, view.group, view.name, view.session_id


def _with_state(context: HttpContext, view: AgentView) -> AgentView:
    """Return an agent of ours with what it does, since when, and what that is about."""
    if view.asks:
        is_parked = view.status is AgentStatus.PARKED
        state = waiting_state(view.asks)
        if is_parked and state is AgentState.WAITING:
            state = AgentState.PARKED
        since = waiting_since(view.asks)
        return replace(view, state=state, since=since, title=waiting_title(view.asks))
    is_over = view.status is AgentStatus.UNDELIVERED and not view.lives
    session = context.session_context.tracker.get(GroupName(view.group), SessionId(view.session_id))
    title = view.items[0].brief if view.items else view.task
    return replace(
        view,
        state=AgentState.ENDED if is_over else AgentState.WORKING,
        since=session.since if session else None,
        title=title,
    )


async def find_live(context: HttpContext) -> list[LiveRunner]:
    """Return who lives, once for each session but for every lease that has asked something."""
    leased = await context.live_runners()
    askers = {(q.group, q.lease) for q in context.ledger.index if q.delivered is None}
    found = [runner for runner in leased if (runner.group, runner.lease) in askers]
    ours = [
        LiveRunner(s.group, s.session_id, s.session_id)
        for s in context.session_context.tracker.running()
    ]
    seen = {agent_key(runner) for runner in found}
    for runner in [*leased, *ours]:
        if agent_key(runner) not in seen:
            seen.add(agent_key(runner))
            found.append(runner)
    return found


def agent_key(runner: LiveRunner) -> tuple[GroupName, str]:
    """Return what tells the agent from others: its session, or its lease if it has none."""
    return runner.group, runner.session_id or runner.lease


async def find_status(context: HttpContext) -> dict[str, Any]:
    """Return how many agents are at work, what waits for a person, and what is wrong."""
    live = await find_live(context)
    agents = {agent_key(runner) for runner in live}
    index = list(context.ledger.index)
    open_ = [pending for pending in index if pending.state.waits_for_person]
    asking = {(p.group, name) for p in open_ for name in (p.lease, p.session_id) if name}
    waiting = {
        agent_key(runner)
        for runner in live
        if {(runner.group, runner.lease), (runner.group, runner.session_id)} & asking
    }
    foreign = foreign_agents(context.seen_agents(), index)
    sessions = {runner.session_id for runner in live if runner.session_id}
    found = _count_foreign(agent for agent in foreign if agent.seen.session_id not in sessions)
    problems = await context.problems()
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "agents": len(agents) + found.total(),
        "agents_waiting": len(waiting) + found[AgentState.WAITING],
        "agents_working": len(agents - waiting) + found[AgentState.WORKING],
        "agents_idle": found[AgentState.IDLE],
        "waiting": len(open_),
        "urgent": sum(pending.urgency is Urgency.HIGH for pending in open_),
        "undelivered": sum(pending.state is State.UNDELIVERED for pending in index),
        **_count_asks(open_, foreign),
        "todos": sum(max(0, agent.seen.open_todos) for agent in foreign),
    }


def _count_foreign(foreign: Iterable[ForeignAgent]) -> Counter[AgentState]:
    """Count those that have not ended, as waiting only where that is known."""
    found: Counter[AgentState] = Counter()
    for agent in foreign:
        match agent.state:
            case AgentState.ENDED:
                continue
            case AgentState.PERMISSION if agent.is_guess:
                found[AgentState.WORKING] += 1
            case AgentState.PERMISSION | AgentState.PARKED:
                found[AgentState.WAITING] += 1
            case state:
                found[state] += 1
    return found


def _count_asks(open_: list[PendingQuestion], foreign: Iterable[ForeignAgent]) -> dict[str, int]:
    """Count what waits for a person here or at an agent's own screen, each once."""
    questions = sum(pending.kind is Kind.QUESTION for pending in open_)
    permissions, guessed = len(open_) - questions, 0
    for agent in foreign:
        permissions += agent.permissions
        guessed += agent.guessed_permissions
        questions += sum(ask.kind is Kind.QUESTION for ask in agent.alone)
    return {
        "permissions_pending": permissions + guessed,
        "permissions_guessed": guessed,
        "questions_pending": questions,
    }


def inbox_settings(context: HttpContext) -> dict[str, Any]:
    """Return what a screen of the inbox must know: for how long a choice can be taken back."""
    web = context.settings.web
    usual, high = web.undo.total_seconds(), web.undo_high.total_seconds()
    return {"undo_seconds": {"low": usual, "normal": usual, "high": high}}


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
