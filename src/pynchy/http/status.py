"""How the host is, in figures: for status bars, which ask often and show little.

One look at every open question and one at the leases; nothing is rendered or sorted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pynchy.http.agents import find_live, who
from pynchy.http.context import HttpContext
from pynchy.model import State, Urgency


async def find_status(context: HttpContext) -> dict[str, Any]:
    """Return how many agents are at work, what waits for a person, and what is wrong."""
    agents = {who(runner) for runner in await find_live(context)}
    states: Counter[State] = Counter()
    urgent = 0
    for pending in context.ledger.index:
        states[pending.state] += 1
        urgent += pending.urgency is Urgency.HIGH and pending.state.waits_for_person
    problems = context.problems()
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "agents": len(agents),
        "waiting": sum(states[state] for state in State if state.waits_for_person),
        "urgent": urgent,
        "undelivered": states[State.UNDELIVERED],
    }


def inbox_settings(context: HttpContext) -> dict[str, Any]:
    """Return what a screen of the inbox must know: for how long a choice can be taken back."""
    web = context.settings.web
    usual, high = web.undo.total_seconds(), web.undo_high.total_seconds()
    return {"undo_seconds": {"low": usual, "normal": usual, "high": high}}
