"""What the event log is told of a question and of each step of its life.

An event says who and where, never what an answer says.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pynchy import wire
from pynchy.bridge.lifecycle import (
    CardSettled,
    Delivered,
    Dismissed,
    Ended,
    GaveUp,
    PartlyAnswered,
    ResumeFailed,
    Retried,
    RuleNotMade,
    SettleFailed,
    ShowFailed,
    Shown,
    Step,
    event_kind,
)
from pynchy.events import AskedQuestion, Event, EventKind
from pynchy.model import PendingQuestion
from pynchy.unicode_safety import clip

# The log is read and followed by many; a question may have a quarter of a million characters.
MAX_ASKED = 20_000


def step_event(pending: PendingQuestion, step: Step, now: datetime) -> Event | None:
    """Return the event that tells of the step; None for one that nobody needs to hear of."""
    kind = event_kind(step)
    if kind is None:
        return None
    channel, by, detail = _particulars(step)
    event = event_about(pending, kind, now)
    return replace(event, channel=channel, by=by, detail=detail)


def event_about(pending: PendingQuestion, kind: EventKind, now: datetime) -> Event:
    """Return an event of that kind about the question."""
    return Event(
        kind,
        now,
        pending.group,
        pending.request_id,
        pending.short_id,
        agent=pending.agent,
        elapsed_seconds=_elapsed(pending, now),
        session_id=pending.session_id or None,
    )


def asked_event(pending: PendingQuestion, now: datetime) -> Event:
    """Return the event that tells of a new question."""
    return Event(
        EventKind.ASKED,
        now,
        pending.group,
        pending.request_id,
        pending.short_id,
        agent=pending.agent,
        asked=tuple(AskedQuestion(clip(q.text, MAX_ASKED), q.labels) for q in pending.questions),
        asked_kind=pending.kind,
        elapsed_seconds=_elapsed(pending, now),
        session_id=pending.session_id or None,
    )


def _elapsed(pending: PendingQuestion, now: datetime) -> float:
    return round((now - pending.timestamp).total_seconds(), 3)


def _particulars(step: Step) -> tuple[str | None, str | None, str | None]:
    """Return channel, person and detail of a step; never what an answer says."""
    match step:
        case Ended(ending=ending):
            is_edited = wire.edited_input(ending) is not None
            return ending.channel, ending.by, "edited" if is_edited else None
        case Shown(channel=channel) | CardSettled(channel=channel):
            return channel, None, None
        case ShowFailed(channel=channel, reason=reason):
            return channel, None, reason
        case SettleFailed(channel=channel, reason=reason):
            return channel, None, reason
        case ResumeFailed(reason=reason) | GaveUp(reason=reason) | RuleNotMade(reason=reason):
            return None, None, reason
        case Delivered(path=path):
            return None, None, path.value
        case PartlyAnswered(draft=draft):
            return draft.channel or None, draft.by, f"question {draft.question + 1}"
        case Retried(by=by) | Dismissed(by=by):
            return None, by, None
        case _:
            return None, None, None
