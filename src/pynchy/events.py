"""What happened. Every transition of a question or session is one of these; every view reads them.

An event never holds the text of an answer: that is in the question's history, behind the token.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pynchy.model import GroupName, Kind, RequestId, SessionId, ShortId, Urgency
from pynchy.session import SessionState


class EventKind(StrEnum):
    """The kinds of event, named by what has happened."""

    ASKED = "asked"
    SHOWN = "shown"
    SHOW_FAILED = "show_failed"
    CALL_ENDED = "call_ended"
    PARKED = "parked"
    PARTLY_ANSWERED = "partly_answered"
    ANSWERED = "answered"
    DECLINED = "declined"
    DEFAULTED = "defaulted"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    UNDELIVERABLE = "undeliverable"
    CLEARED = "cleared"
    HELD = "held"
    TAKER_DIED = "taker_died"
    RESUMING = "resuming"
    RESUME_FAILED = "resume_failed"
    UNDELIVERED = "undelivered"
    RETRIED = "retried"
    DELIVERED = "delivered"
    DISMISSED = "dismissed"
    CARD_SETTLED = "card_settled"
    SETTLE_FAILED = "settle_failed"
    CLOSED = "closed"
    REJECTED = "rejected"
    ORPHANED = "orphaned"
    GROUP_REMOVED = "group_removed"
    RULE_MADE = "rule_made"
    RULE_USED = "rule_used"
    RULE_REVOKED = "rule_revoked"
    RULE_NOT_MADE = "rule_not_made"
    ANNOUNCED = "announced"
    SESSION_STARTED = "session_started"
    SESSION_WAITING = "session_waiting"
    SESSION_PARKED = "session_parked"
    SESSION_FINISHED = "session_finished"
    SESSION_FAILED = "session_failed"
    SESSION_STOPPED = "session_stopped"
    SESSION_DENIED = "session_denied"
    SESSION_CHANGED = "session_changed"


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a request as the `asked` event tells it."""

    question: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one question or session, or to a request that became neither."""

    kind: EventKind
    at: datetime
    group: GroupName
    request_id: RequestId | None = None
    short_id: ShortId | None = None
    agent: str = ""
    asked: tuple[AskedQuestion, ...] = ()
    asked_kind: Kind | None = None
    elapsed_seconds: float | None = None
    channel: str | None = None
    by: str | None = None
    detail: str | None = None
    session_id: SessionId | None = None
    state: SessionState | None = None
    source: str = ""
    title: str = ""
    urgency: Urgency | None = None
    task: str = ""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What an agent tells people without wanting an answer; the event is all that is kept."""

    group: GroupName
    title: str
    text: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
