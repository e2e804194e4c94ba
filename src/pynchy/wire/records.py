"""What the host keeps, shows and tells: records and their views, and its files in a mailbox.

In a mailbox it also reads receipts, which are its own or an agent's, and leases.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from pynchy.events import Event
from pynchy.model import AcceptsText, CardState, Ending, PendingQuestion, RequestId, SessionId
from pynchy.rule import Grant, Rule
from pynchy.session import Session
from pynchy.wire.common import (
    VERSION,
    answers_out,
    dump,
    edited_input,
    ending_of,
    question_out,
    timestamp,
)
from pynchy.wire.requests import usable_id

_PENDING = TypeAdapter(PendingQuestion)
_ENDING = TypeAdapter(Ending)
_EVENT = TypeAdapter(Event)
_SESSION = TypeAdapter(Session)
_RULE = TypeAdapter(Rule)
_RULES = TypeAdapter(list[Rule])
_GRANTS = TypeAdapter(list[Grant])
_LAST_YEAR = 9_000


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
    # Older hosts did not look whether the session lived; an asker of ours had a lease.
    value.setdefault("asker_seen", bool(value.get("lease")))
    return _PENDING.validate_python(value, strict=False)


def ending_json(ending: Ending) -> bytes:
    """Return the outcome file of a question."""
    return dump({"v": VERSION, **_without_usual(_ENDING.dump_python(ending, mode="json"))})


def read_ending(data: bytes) -> Ending:
    """Return the recorded outcome. Raise ValueError if the record is damaged."""
    return _ENDING.validate_json(data, strict=False)


def pending_view(pending: PendingQuestion) -> dict[str, Any]:
    """Return the question as listings and the HTTP interface show it."""
    view = _pending_dict(pending)
    late = view.pop("late")
    del view["digest"], view["lease"], view["asker_seen"], view["home_host"]
    view["delivery_error"] = late["error"]
    view["delivery_attempts"] = late["attempts"]
    view["retry_at"] = late["retry_at"]
    view["taker_died"] = late["taker_died"]
    view["drafts"] = [{"question": d.question, "by": d.by} for d in pending.drafts]
    defaults_at = pending.defaults_at
    view["defaults_at"] = timestamp(defaults_at) if defaults_at else None
    if pending.call is not None:
        view["editable"], view["input"] = pending.call.editable, view["call"]["input"]
    if pending.ending:
        view["ending"] = {
            **ending_view(pending.ending),
            "answers": answers_out(pending.questions, pending.ending.answers),
        }
    return view


def ending_view(ending: Ending) -> dict[str, Any]:
    """Return the outcome as a person who came second is told it."""
    rule = {} if ending.rule_seconds is None else {"rule_seconds": ending.rule_seconds}
    edited = edited_input(ending)
    return {
        "outcome": ending.outcome,
        "answered_by": ending.by,
        "channel": ending.channel,
        "answered_at": timestamp(ending.at),
        "reason": ending.reason,
        "summary": ending.describe(),
        **rule,
        **({} if edited is None else {"edited": edited}),
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


def rules_json(rules: list[Rule], grants: list[Grant]) -> bytes:
    """Return the file of all rules, and of what may be done once."""
    body = {"v": VERSION, "rules": _RULES.dump_python(rules, mode="json")}
    if grants:
        body["grants"] = _GRANTS.dump_python(grants, mode="json")
    return dump(body)


def read_rules(data: bytes) -> tuple[list[Rule], list[Grant]]:
    """Return what the file has. Raise ValueError if it is damaged, or of a later version."""
    value = from_json(data)
    if not isinstance(value, dict) or value.get("v") != VERSION:
        raise ValueError("not a file of this version")
    rules = _RULES.validate_python(value.get("rules"), strict=False)
    grants = _GRANTS.validate_python(value.get("grants", []), strict=False)
    times = [at for r in rules for at in (r.made_at, r.expires_at, r.last_used, r.revoked_at) if at]
    times += [grant.expires_at for grant in grants]
    if any(at.tzinfo is None or at.year > _LAST_YEAR for at in times):
        raise ValueError("a time that cannot be compared with others")
    return rules, grants


def rule_view(rule: Rule) -> dict[str, Any]:
    """Return the rule as listings and the HTTP interface show it."""
    view: dict[str, Any] = _RULE.dump_python(rule, mode="json")
    for name in ("made_at", "expires_at", "last_used"):
        at = getattr(rule, name)
        view[name] = timestamp(at) if at else None
    del view["revoked_at"], view["revoked_by"]
    return {"short_id": rule.short_id, **view}


def event_json(sequence: int, event: Event) -> bytes:
    """Return the event as one line of the audit log and of the live stream."""
    raw = _EVENT.dump_python(event, mode="json")
    asked, asked_kind = raw.pop("asked"), raw.pop("asked_kind")
    body = {"seq": sequence, "type": raw.pop("kind"), "id": event.request_id}
    if asked:
        first = event.asked[0]
        body |= {"question": first.question, "suggestions": first.suggestions, "questions": asked}
        body |= {"kind": asked_kind} if asked_kind else {}
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


def read_announced(line: bytes) -> dict[str, str]:
    """Return what a line of the audit log tells of an announcement."""
    value = from_json(line)
    names = ("group", "title", "detail", "agent", "task", "urgency")
    return {name: str(value[name]) for name in names if name in value}


def _without_usual(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body without what is as it was before there were permissions and approvals."""
    usual: dict[str, object] = {
        "call": None,
        "offered_rule": "",
        "rule_problem": "",
        "approvals_needed": 1,
        "rule_seconds": None,
        "edited": None,
        "why": None,
        "hears_dismissal": False,
        "ask_id": "",
    }
    kept = {k: value for k, value in body.items() if k not in usual or value != usual[k]}
    if "call" in kept:
        kept["call"] = _without_usual(kept["call"])
    if "answers" in kept:
        kept["answers"] = [_without_usual(answer) for answer in kept["answers"]]
    if "drafts" in kept:
        drafts = kept["drafts"]
        kept["drafts"] = [{**one, "answer": _without_usual(one["answer"])} for one in drafts]
    return kept


def _pending_dict(pending: PendingQuestion) -> dict[str, Any]:
    body: dict[str, Any] = _without_usual(_PENDING.dump_python(pending, mode="json"))
    body["questions"] = [question_out(q) for q in pending.questions]
    if body["ending"] is not None:
        body["ending"] = _without_usual(body["ending"])
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
        "needs_word": value.get("needs_word", False),
    }


def response_json(pending: PendingQuestion) -> bytes:
    """Return the response of a question that has ended."""
    ending = ending_of(pending)
    body: dict[str, Any] = {
        "v": VERSION,
        "request_id": pending.request_id,
        "outcome": ending.outcome,
        "answers": answers_out(pending.questions, ending.answers),
        "answered_by": ending.by,
        "channel": ending.channel,
        "answered_at": timestamp(ending.at),
    }
    if pending.session_id:
        body["session_id"] = pending.session_id
    if ending.outcome == "undeliverable":
        body["error"] = ending.reason or "no channel could show the question"
    elif ending.reason:
        body["reason"] = ending.reason
    if (edited := edited_input(ending)) is not None:
        body["input"] = edited
    return dump(body)


def error_json(request_id: RequestId, error: str) -> bytes:
    """Return the response to a request that could not be taken."""
    return dump({"v": VERSION, "request_id": request_id, "error": error})


def initial_json(pending: PendingQuestion, prompt: str, *, parked: bool = False) -> bytes:
    """Return what a resumed session begins with: where it was parked, or with the prompt."""
    ending = ending_of(pending)
    return dump(
        {
            "v": VERSION,
            "session_id": pending.session_id,
            "request_id": pending.request_id,
            "outcome": ending.outcome,
            "questions": [question_out(q) for q in pending.questions],
            "answers": answers_out(pending.questions, ending.answers),
            "answered_by": ending.by,
            "answered_at": timestamp(ending.at),
            "prompt": prompt,
            **({"parked": True} if parked else {}),
        }
    )


def first_json(session_id: SessionId, prompt: str) -> bytes:
    """Return what a new session begins with; nothing was asked, so it has no request id."""
    return dump({"v": VERSION, "session_id": session_id, "prompt": prompt})


def host_json(
    wait_seconds: float,
    *,
    park_after_seconds: float | None = None,
    ask_with: str | None = None,
    desk_answers: bool = False,
    phux_prefix: str | None = None,
) -> bytes:
    """Return what the host tells every agent of its group; what does not apply is left out."""
    optional = {
        "park_after_seconds": park_after_seconds,
        "ask_with": ask_with,
        "desk_answers": desk_answers or None,
        "phux_prefix": phux_prefix,
    }
    told = {name: value for name, value in optional.items() if value is not None}
    return dump({"v": VERSION, "wait_seconds": wait_seconds, **told})


def claim_json(claim: str, at: datetime) -> bytes:
    """Return the receipt that the host itself takes before it resumes a session."""
    return dump({"v": VERSION, "by": "host", "at": timestamp(at), "claim": claim})


def read_claim(data: bytes) -> str | None:
    """Return the host's secret from a receipt, or None if it is not the host's."""
    return _receipt_field(data, "claim")


def read_taker(data: bytes) -> str:
    """Return the lease of who took the answer, where the receipt names one that can be."""
    return usable_id(_receipt_field(data, "lease")) or ""


def _receipt_field(data: bytes, name: str) -> str | None:
    try:
        value = from_json(data)
    except ValueError:
        return None
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class Lease:
    """What a lease says: on which boot of which kernel its owner runs, and for which session.

    `agent` and `task` are what the owner calls itself.
    """

    boot_id: str = ""
    session_id: str = ""
    agent: str = ""
    task: str = ""


def read_lease(data: bytes) -> Lease:
    """Return what the lease says; what it does not say is empty."""
    try:
        value = from_json(data)
    except ValueError:
        return Lease()
    said = value if isinstance(value, dict) else {}
    texts = (said.get(name) for name in ("boot_id", "session_id", "agent", "task"))
    return Lease(*(text if isinstance(text, str) else "" for text in texts))


def rejected_json(name: str, reason: str, at: datetime, content: bytes) -> bytes:
    """Return the record of a request that was refused, with the beginning of what it said."""
    head = content[:4_096].decode("utf-8", "backslashreplace")
    # A file's name is any bytes at all, and UTF-8 cannot spell them all.
    spelt = name.encode("utf-8", "backslashreplace").decode()
    return dump({"name": spelt, "reason": reason, "at": timestamp(at), "content": head})
