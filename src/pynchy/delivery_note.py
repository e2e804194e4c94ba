"""What people read of what became of an answer: its way to the agent, and its rule."""

from __future__ import annotations

from pynchy.model import DeliveryPath, PendingQuestion, State


def delivery_note(pending: PendingQuestion) -> str:
    """Return what a settled card says of what became of the answer; nothing if all went well."""
    rule = f"No rule was made: {pending.rule_problem}." if pending.rule_problem else ""
    return " ".join(part for part in (_way_note(pending), rule) if part)


def _way_note(pending: PendingQuestion) -> str:
    if pending.ending is None or not pending.resumes:
        return ""
    how = "was parked" if pending.parked else "had stopped"
    how = "received it, then its process died" if pending.late.taker_died else how
    if pending.delivered is DeliveryPath.LATE:
        has = "has the answer" if pending.ending.answers else "knows how this ended"
        return f"The agent {how}; it was resumed and {has}."
    if pending.delivered is DeliveryPath.DISMISSED:
        return f"Not delivered, and dismissed: {pending.late.error}"
    if pending.state is State.RESUMING:
        return f"The agent {how}; resuming it."
    if pending.state in {State.HELD, State.UNDELIVERED} and pending.late.error:
        return f"Not delivered yet: {pending.late.error}"
    return ""
