"""Who is at work or waiting, whoever started them, and how the host is in figures.

What a foreign agent waits for is told once: as the question that was made of it, while people can
answer that, and else as its source sees it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pynchy.http.context import HttpContext
from pynchy.inbox.agents import (
    OURS,
    AgentKey,
    AgentStatus,
    AgentView,
    AskView,
    LiveRunner,
    ToolView,
    agent_views,
    question_views,
    short,
)
from pynchy.inbox.views import order_of
from pynchy.model import GroupName, Kind, PendingQuestion, SessionId, State, Urgency
from pynchy.pending.base import HistoryQuery
from pynchy.sources.base import AgentState, SeenAgent, SeenAsk

_LATELY = 300
_CALM = frozenset({AgentStatus.WORKING, AgentStatus.IDLE, AgentStatus.ENDED})
_WAITS = frozenset({AgentState.WAITING, AgentState.PERMISSION})
_MAX_OPTIONS = 20


async def find_agents(context: HttpContext) -> list[AgentView]:
    """Return every agent that lives or has something open: ours, then those of others."""
    live = await _named(context, await find_live(context))
    foreign = foreign_agents(context.seen_agents(), context.ledger.index)
    theirs = {question.key for agent in foreign for question in agent.questions}
    pending = [question for question in context.ledger.index if question.key not in theirs]
    running = _running(context)
    asked = [_with_state(context, view, running) for view in agent_views(live, pending)]
    rows = _one_row_each([*asked, *(agent.view() for agent in foreign)])
    others = sorted((view for view in rows if view.source != OURS), key=_order)
    return [*(view for view in rows if view.source == OURS), *others]


async def _named(context: HttpContext, live: list[LiveRunner]) -> list[LiveRunner]:
    """Return them by the names that their sessions, leases or earlier questions tell."""
    named = []
    for runner in live:
        known = context.session_context.tracker.get(runner.group, runner.session_id)
        agent, task = (known.agent, known.task) if known else ("", "")
        named.append(replace(runner, agent=agent or runner.agent, task=task or runner.task))
    if all(runner.agent for runner in named):
        return named
    # Newest last, so that what a runner called itself last counts.
    over = reversed(await context.history.recent(HistoryQuery(limit=_LATELY)))
    names = {(question.group, question.lease): question.agent for question in over}
    return [replace(r, agent=r.agent or names.get((r.group, r.lease), "")) for r in named]


def _one_row_each(views: Iterable[AgentView]) -> list[AgentView]:
    """Return the agents, sessions of ours once; others tell of themselves alone, by any id."""
    rows: dict[tuple[str, ...], AgentView] = {}
    for at, view in enumerate(sorted(views, key=lambda view: view.source != OURS)):
        key = (view.group, view.session_id) if view.session_id else (str(at),)
        if (known := rows.get(key)) is not None and known.source == OURS:
            rows[key] = _merged(known, view)
        else:
            rows[(str(at),) if known else key] = view
    return list(rows.values())


def _merged(ours: AgentView, seen: AgentView) -> AgentView:
    """Return an agent of which somebody else tells besides."""
    pressing = min(ours.status, seen.status, key=list(AgentStatus).index)
    asks = (*ours.asks, *seen.asks)
    told = replace(
        ours,
        status=pressing,
        tools=seen.tools,
        todos=seen.todos,
        items=tuple(i for view in (ours, seen) if view.status is pressing for i in view.items),
        asks=asks,
    )
    if asks:
        state, since = waiting_state(asks), waiting_since(asks)
        return replace(told, state=state, guessed=False, since=since, title=waiting_title(asks))
    if ours.status not in _CALM or seen.state == AgentState.ENDED:
        return told
    return replace(
        told,
        status=seen.status,
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


def _with_state(context: HttpContext, view: AgentView, running: Collection[AgentKey]) -> AgentView:
    """Return an agent of ours with what it does, since when, and what that is about."""
    if view.asks:
        is_parked = view.status is AgentStatus.PARKED
        state = waiting_state(view.asks)
        if is_parked and state is AgentState.WAITING:
            state = AgentState.PARKED
        since = waiting_since(view.asks)
        return replace(view, state=state, since=since, title=waiting_title(view.asks))
    key = (GroupName(view.group), SessionId(view.session_id))
    title = view.items[0].brief if view.items else view.task
    is_untold = view.status in {AgentStatus.UNDELIVERED, AgentStatus.IDLE} and key not in running
    if is_untold and view.lives:
        # Whoever started it sees what it does. We only see that it is there.
        return replace(view, state=AgentState.IDLE, guessed=True, title=title)
    session = context.session_context.tracker.get(*key)
    return replace(
        view,
        status=AgentStatus.WORKING if view.status is AgentStatus.IDLE else view.status,
        state=AgentState.ENDED if is_untold else AgentState.WORKING,
        since=session.since if session else None,
        title=title,
    )


def _running(context: HttpContext) -> frozenset[AgentKey]:
    """Return the agents that pynchy itself has started."""
    return frozenset(session.key for session in context.session_context.tracker.running())


async def find_live(context: HttpContext) -> list[LiveRunner]:
    """Return who lives, once for each session but for every lease that has asked something."""
    leased = await context.live_runners()
    askers = {(q.group, q.lease) for q in context.ledger.index if q.delivered is None}
    found = [runner for runner in leased if (runner.group, runner.lease) in askers]
    ours = [
        LiveRunner(s.group, s.session_id, s.session_id)
        for s in context.session_context.tracker.running()
    ]
    seen = {runner.key for runner in found}
    for runner in [*leased, *ours]:
        if runner.key not in seen:
            seen.add(runner.key)
            found.append(runner)
    return found


async def find_status(context: HttpContext) -> dict[str, Any]:
    """Return how many agents are at work, what waits for a person, and what is wrong."""
    index = list(context.ledger.index)
    open_ = [pending for pending in index if pending.state.waits_for_person]
    foreign = foreign_agents(context.seen_agents(), index)
    found, unknown = await _count_agents(context, index, foreign)
    problems = await context.problems()
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "agents": found.total(),
        "agents_waiting": found[AgentState.WAITING],
        "agents_working": found[AgentState.WORKING],
        "agents_idle": found[AgentState.IDLE],
        "agents_unknown": unknown,
        "waiting": len(open_),
        "urgent": sum(pending.urgency is Urgency.HIGH for pending in open_),
        "undelivered": sum(pending.state is State.UNDELIVERED for pending in index),
        **_count_asks(open_, foreign),
        "todos": sum(max(0, agent.seen.open_todos) for agent in foreign),
    }


async def _count_agents(
    context: HttpContext, index: list[PendingQuestion], foreign: list[ForeignAgent]
) -> tuple[Counter[AgentState], int]:
    """Count the agents as their rows say, without making those; and of how many it is not known."""
    live = await find_live(context)
    waiting = _of_these(live, (p for p in index if p.state.waits_for_person))
    coming = _of_these(live, (p for p in index if p.ending and not p.is_at_rest))
    seen = {agent.key for agent in foreign if agent.state is not AgentState.ENDED}
    calm = {runner.key for runner in live} - waiting - seen
    unknown = calm - coming - _running(context)
    found = _count_foreign(agent for agent in foreign if agent.key not in waiting)
    found[AgentState.WAITING] += len(waiting)
    found[AgentState.WORKING] += len(calm - unknown)
    found[AgentState.IDLE] += len(unknown)
    return found, len(unknown)


def _of_these(live: list[LiveRunner], questions: Iterable[PendingQuestion]) -> set[AgentKey]:
    """Return the agents that live and have asked one of the questions."""
    askers = {(q.group, name) for q in questions for name in (q.lease, q.session_id) if name}
    return {r.key for r in live if {(r.group, r.lease), (r.group, r.session_id)} & askers}


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


@dataclass(frozen=True, slots=True)
class ForeignAgent:
    """An agent as its source sees it, beside the questions that were made of what it asks.

    `questions` are those that are not delivered, `alone` waits at the agent's own screen only.
    """

    seen: SeenAgent
    questions: tuple[PendingQuestion, ...] = ()
    alone: tuple[SeenAsk, ...] = ()

    @property
    def key(self) -> AgentKey:
        """What tells it from others, as LiveRunner does."""
        return self.seen.group, self.seen.session_id

    @property
    def asks(self) -> tuple[AskView, ...]:
        """All that it waits for a person with, what can be answered here first."""
        here = [q for q in self.questions if q.state.waits_for_person]
        there = [_at_own_screen(ask) for ask in self.alone]
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


def _at_own_screen(ask: SeenAsk) -> AskView:
    view = AskView(ask.kind, short(ask.title), ask.since, urgency=ask.urgency)
    options = tuple(short(option) for option in ask.options[:_MAX_OPTIONS])
    return replace(view, text=short(ask.text), agent=short(ask.agent), options=options)


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
