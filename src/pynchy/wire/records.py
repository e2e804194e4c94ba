"""What the host keeps and shows: records, outcomes, events, and their views."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from pynchy.events import Event
from pynchy.model import AcceptsText, CardState, Ending, PendingQuestion
from pynchy.session import Session
from pynchy.wire.common import VERSION, answers_out, dump, question_out, timestamp

_PENDING = TypeAdapter(PendingQuestion)
_ENDING = TypeAdapter(Ending)
_EVENT = TypeAdapter(Event)
_SESSION = TypeAdapter(Session)


def pending_json(pending: PendingQuestion) -> bytes:
    """Return the record of a question."""
    return dump({"v": VERSION, **_pending_dict(pending)})


def read_pending(data: bytes) -> PendingQuestion:
    """Return the recorded question. Raise ValueError if the record is damaged."""
    value = from_json(data)
    if not isinstance(value, dict) or value.get("v") != VERSION:
        raise ValueError("not a record of this version")
    value["questions"] = [_question_back(q) for q in value.get("questions", ())]
    for card in [card for card in value.get("cards", ()) if isinstance(card, dict)]:
        # Records of 0.1 do not say whether a card that failed may be there.
        card.setdefault("maybe_shown", card.get("state") == CardState.FAILED)
    return _PENDING.validate_python(value, strict=False)


def ending_json(ending: Ending) -> bytes:
    """Return the outcome file of a question."""
    return dump({"v": VERSION, **_ENDING.dump_python(ending, mode="json")})


def read_ending(data: bytes) -> Ending:
    """Return the recorded outcome. Raise ValueError if the record is damaged."""
    return _ENDING.validate_json(data, strict=False)


def pending_view(pending: PendingQuestion) -> dict[str, Any]:
    """Return the question as listings and the HTTP interface show it."""
    view = _pending_dict(pending)
    late = view.pop("late")
    del view["digest"], view["lease"], view["home_host"]
    view["delivery_error"] = late["error"]
    view["delivery_attempts"] = late["attempts"]
    view["retry_at"] = late["retry_at"]
    view["taker_died"] = late["taker_died"]
    view["drafts"] = [{"question": d.question, "by": d.by} for d in pending.drafts]
    defaults_at = pending.defaults_at
    view["defaults_at"] = timestamp(defaults_at) if defaults_at else None
    if pending.ending:
        view["ending"] = {
            **ending_view(pending.ending),
            "answers": answers_out(pending.questions, pending.ending.answers),
        }
    return view


def ending_view(ending: Ending) -> dict[str, Any]:
    """Return the outcome as a person who came second is told it."""
    return {
        "outcome": ending.outcome,
        "answered_by": ending.by,
        "channel": ending.channel,
        "answered_at": timestamp(ending.at),
        "reason": ending.reason,
        "summary": ending.describe(),
    }


def session_json(session: Session) -> bytes:
    """Return the record of a session."""
    return dump({"v": VERSION, **_SESSION.dump_python(session, mode="json")})


def read_session(data: bytes) -> Session:
    """Return the recorded session. Raise ValueError if the record is damaged."""
    value = from_json(data)
    if not isinstance(value, dict) or value.get("v") != VERSION:
        raise ValueError("not a record of this version")
    return _SESSION.validate_python(value, strict=False)


def session_view(session: Session) -> dict[str, Any]:
    """Return the session as listings and the HTTP interface show it."""
    return {
        "group": session.group,
        "agent": session.agent,
        "session_id": session.session_id,
        "state": session.state,
        "since": timestamp(session.since),
        "started_at": timestamp(session.started_at),
        "task": session.task,
        "detail": session.detail,
        "failed": session.failed,
        "denied": list(session.denied),
        "launched": bool(session.launches),
    }


def event_json(sequence: int, event: Event) -> bytes:
    """Return the event as one line of the audit log and of the live stream."""
    raw = _EVENT.dump_python(event, mode="json")
    asked = raw.pop("asked")
    body = {"seq": sequence, "type": raw.pop("kind"), "id": event.request_id}
    if asked:
        first = event.asked[0]
        body |= {"question": first.question, "suggestions": first.suggestions, "questions": asked}
    body |= {key: value for key, value in raw.items() if value not in (None, "")}
    return dump(body)


def read_sequence(line: bytes) -> int | None:
    """Return the sequence number of a line of the audit log, or None if it is damaged."""
    try:
        value = from_json(line)
    except ValueError:
        return None
    sequence = value.get("seq") if isinstance(value, dict) else None
    return sequence if isinstance(sequence, int) else None


def read_event_group(line: bytes) -> tuple[int, str]:
    """Return number and group of a line of the audit log; 0 and nothing if it is damaged."""
    try:
        value = from_json(line)
    except ValueError:
        return 0, ""
    number, group = (value.get("seq"), value.get("group")) if isinstance(value, dict) else (0, "")
    return (number, group) if isinstance(number, int) and isinstance(group, str) else (0, "")


def read_event_kind(line: bytes) -> str:
    """Return the type of a whole line of the audit log."""
    return str(from_json(line).get("type", ""))


def read_event_key(line: bytes) -> tuple[str, str] | None:
    """Return the group and the request id that a whole line of the audit log is about, if any."""
    value = from_json(line)
    group, request_id = value.get("group"), value.get("id")
    return (str(group), str(request_id)) if group and request_id else None


def _pending_dict(pending: PendingQuestion) -> dict[str, Any]:
    body: dict[str, Any] = _PENDING.dump_python(pending, mode="json")
    body["questions"] = [question_out(q) for q in pending.questions]
    first = pending.cards[0] if pending.cards else None
    body["channel_name"] = pending.channel_name
    body["chat_jid"] = first.chat if first else ""
    body["message_id"] = first.message_id if first else None
    return body


def _question_back(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "text": value["question"],
        "header": value["header"],
        "options": value["options"],
        "multi_select": value["multiSelect"],
        "default": value.get("default", ()),
        "accepts_text": value.get("accepts_text", AcceptsText.ANSWER),
    }
