"""What the host writes into a mailbox, and what it reads there beside requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from pynchy.model import PendingQuestion, RequestId, SessionId
from pynchy.wire.common import VERSION, answers_out, dump, ending_of, question_out, timestamp
from pynchy.wire.requests import usable_id


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
    return dump(body)


def error_json(request_id: RequestId, error: str) -> bytes:
    """Return the response to a request that could not be taken."""
    return dump({"v": VERSION, "request_id": request_id, "error": error})


def unseen_json(request_id: RequestId, why: str) -> bytes:
    """Return what an agent reads while nobody can have seen its question."""
    return dump({"v": VERSION, "request_id": request_id, "why": why})


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
    wait_seconds: float, *, park_after_seconds: float | None = None, ask_with: str | None = None
) -> bytes:
    """Return what the host tells every agent of its group; what does not apply is left out."""
    optional = {"park_after_seconds": park_after_seconds, "ask_with": ask_with}
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
    """What a lease says: on which boot of which kernel its owner runs, and for which session."""

    boot_id: str = ""
    session_id: str = ""


def read_lease(data: bytes) -> Lease:
    """Return what the lease says; what it does not say is empty."""
    try:
        value = from_json(data)
    except ValueError:
        return Lease()
    said = value if isinstance(value, dict) else {}
    boot_id, session_id = said.get("boot_id"), said.get("session_id")
    return Lease(
        boot_id if isinstance(boot_id, str) else "",
        session_id if isinstance(session_id, str) else "",
    )


def rejected_json(name: str, reason: str, at: datetime, content: bytes) -> bytes:
    """Return the record of a request that was refused, with the beginning of what it said."""
    head = content[:4_096].decode("utf-8", "backslashreplace")
    # A file's name is any bytes at all, and UTF-8 cannot spell them all.
    spelt = name.encode("utf-8", "backslashreplace").decode()
    return dump({"name": spelt, "reason": reason, "at": timestamp(at), "content": head})
