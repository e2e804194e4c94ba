"""Who is at work or waiting, and how the host is in figures."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pynchy import wire
from pynchy.http.context import HttpContext
from pynchy.inbox.agents import AgentView, LiveRunner, agent_views
from pynchy.model import GroupName, SessionId, State, Urgency
from pynchy.pending.base import HistoryQuery

_LATELY = 300


async def find_agents(context: HttpContext) -> list[AgentView]:
    """Return every agent that lives or has something open."""
    live = await find_live(context)
    pending = list(context.ledger.index)
    names: dict[tuple[GroupName, str], str] = {}
    if live:
        # Newest last, so that what a runner called itself last counts.
        for over in reversed(await context.history.recent(HistoryQuery(limit=_LATELY))):
            names[over.group, over.lease] = over.agent
    for runner in live:
        session = context.session_context.tracker.get(runner.group, runner.session_id)
        if session and session.agent:
            names[runner.group, runner.lease] = session.agent
    return agent_views(live, pending, names)


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
    }


async def find_status(context: HttpContext) -> dict[str, Any]:
    """Return how many agents are at work, what waits for a person, and what is wrong."""
    live = await find_live(context)
    agents = {agent_key(runner) for runner in live}
    asking = {
        (pending.group, name)
        for pending in context.ledger.index
        if pending.state.waits_for_person
        for name in (pending.lease, pending.session_id)
        if name
    }
    states: Counter[State] = Counter()
    urgent = 0
    for pending in context.ledger.index:
        states[pending.state] += 1
        urgent += pending.urgency is Urgency.HIGH and pending.state.waits_for_person
    problems = await context.problems()
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "agents": len(agents),
        "agents_waiting": len(
            {
                agent_key(runner)
                for runner in live
                if {(runner.group, runner.lease), (runner.group, runner.session_id)} & asking
            }
        ),
        "waiting": sum(states[state] for state in State if state.waits_for_person),
        "urgent": urgent,
        "undelivered": states[State.UNDELIVERED],
    }


def inbox_settings(context: HttpContext) -> dict[str, Any]:
    """Return what a screen of the inbox must know: for how long a choice can be taken back."""
    web = context.settings.web
    usual, high = web.undo.total_seconds(), web.undo_high.total_seconds()
    return {"undo_seconds": {"low": usual, "normal": usual, "high": high}}
