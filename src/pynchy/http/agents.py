"""Who is at work or waiting, and how the host is in figures."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from pynchy import wire
from pynchy.http.context import HttpContext
from pynchy.http.foreign_agents import (
    ForeignAgent,
    foreign_agents,
    waiting_since,
    waiting_state,
    waiting_title,
)
from pynchy.inbox.agents import (
    OURS,
    AgentStatus,
    AgentView,
    LiveRunner,
    ToolView,
    agent_views,
)
from pynchy.model import GroupName, Kind, PendingQuestion, SessionId, State, Urgency
from pynchy.pending.base import HistoryQuery
from pynchy.sources.base import AgentState

_LATELY = 300


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


def agent_json(context: HttpContext, view: AgentView) -> dict[str, Any]:
    """Return the agent as the HTTP interface tells it."""
    session = context.session_context.tracker.get(GroupName(view.group), SessionId(view.session_id))
    return {
        "group": view.group,
        "agent": view.name,
        "task": view.task,
        "session_id": view.session_id,
        "lives": view.lives,
        "standing": view.status,
        "isolation": context.session_context.isolation(session),
        "questions": [
            {
                "request_id": item.key.partition("/")[2],
                "short_id": item.short_id,
                "brief": item.brief,
                "asked_at": wire.timestamp(item.asked_at),
                "error": item.error,
            }
            for item in view.items
        ],
        "source": view.source,
        "state": view.state,
        "guessed": view.guessed,
        "since": _moment(view.since),
        "title": view.title,
        "tools": [_tool_json(tool, context.ledger.now()) for tool in view.tools],
        "todos": view.todos,
        "asks": [
            {
                "kind": ask.kind,
                "title": ask.title,
                "since": _moment(ask.since),
                "group": ask.key.partition("/")[0] or None,
                "request_id": ask.key.partition("/")[2] or None,
                "short_id": ask.short_id or None,
            }
            for ask in view.asks
        ],
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else wire.timestamp(at)


def _tool_json(tool: ToolView, now: datetime) -> dict[str, Any]:
    ran = None if tool.started is None else max(0.0, (now - tool.started).total_seconds())
    return {
        "tool": tool.tool,
        "argument": tool.argument,
        "elapsed_seconds": None if ran is None else round(ran, 1),
        "may_need_permission": tool.may_need_permission,
    }


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
