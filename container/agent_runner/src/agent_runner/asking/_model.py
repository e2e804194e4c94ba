"""What is asked and what comes back.

A Result is a value: whoever holds one with `outcome` ANSWERED and not `repeated` holds the only
live copy of that answer, because the receipt was created before the Result was made.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType

RequestId = NewType("RequestId", str)

_GRANTS = frozenset({"approve", "always", "session"})
_DECISIONS = _GRANTS | {"deny"}
_MARGIN_SECONDS = 5.0
_MARGIN_SHARE = 0.9
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Urgency(StrEnum):
    """How soon the asker needs the person."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Outcome(StrEnum):
    """How a question ended; the last four are how a call ended without that."""

    ANSWERED = "answered"
    DECLINED = "declined"
    DEFAULTED = "defaulted"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    UNDELIVERABLE = "undeliverable"
    CLEARED = "cleared"
    PENDING = "pending"
    DISMISSED = "dismissed"
    ELSEWHERE = "elsewhere"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Option:
    """One choice that a person may pick."""

    label: str
    description: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. Without options, the answer is free text; `options_only`: it never is."""

    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    default: str | tuple[str, ...] | None = None
    options_only: bool = False


def fresh_request_id() -> RequestId:
    """Return an id that nobody has used."""
    return RequestId(os.urandom(16).hex())


def request_id_of(session: str, key: str, arguments: Mapping[str, object]) -> RequestId:
    """Return the same id for the same call of a session: whoever asks it again asks once."""
    text = json.dumps([session, key, arguments], sort_keys=True)
    return RequestId(hashlib.sha256(text.encode()).hexdigest()[:32])


def safe_wait(max_wait: float) -> float:
    """Return how long a call may block whose client gives up after `max_wait` seconds."""
    return max(min(max_wait * _MARGIN_SHARE, max_wait - _MARGIN_SECONDS), max_wait / 2)


def is_request_id(text: str) -> bool:
    """Say whether the text may be used as an id, and so as part of a file name."""
    return _REQUEST_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class WhyAsked:
    """Why a program stopped at a call, in its own words: shown to people, and never used.

    `suggestions` are what it would allow from then on.
    """

    reason: str = ""
    blocked_path: str = ""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """What an agent program may not do without a person. `tool` and `input` are as it calls it.

    `editable`: the program makes the call with another input where a person wants that.
    """

    program: str
    tool: str
    input: Mapping[str, object]
    cwd: str = ""
    editable: bool = False
    why: WhyAsked | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """What an agent wants a person to approve before it does it."""

    action: str
    details: str = ""
    preview: str = ""
    risk: str = ""


@dataclass(frozen=True, slots=True)
class TerminalAsk:
    """That the answer will be typed into a terminal, where the question is called `ask_id`."""

    ask_id: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One to four questions that are put together, a permission or an approval.

    `wait_seconds` None: as the host has it. `hears_dismissal`: the call ends when a person closes
    what shows the question, which is then declined if nothing else shows it.
    """

    questions: tuple[Question, ...]
    title: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    wait_seconds: float | None = None
    request_id: RequestId = field(default_factory=fresh_request_id)
    permission: Permission | None = None
    approval: Approval | None = None
    hears_dismissal: bool = False
    terminal: TerminalAsk | None = None

    @property
    def has_all_defaults(self) -> bool:
        """Whether silence ends this as `defaulted`."""
        defaults = [question.default is not None for question in self.questions]
        return bool(defaults) and all(defaults)


@dataclass(frozen=True, slots=True)
class Announcement:
    """What an agent tells people without wanting an answer."""

    title: str
    text: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    request_id: RequestId = field(default_factory=fresh_request_id)

    def signed(self, agent: str) -> "Announcement":
        """Return it with who tells it: who it names, else that agent."""
        return replace(self, agent=self.agent or agent)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was picked and what was written for one question.

    `values` are what a program calls the picked options, where that is not their label.
    """

    question: str
    selected: tuple[str, ...] = ()
    text: str | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """How asking ended.

    `repeated`: this outcome was delivered before, here or to another session, and must not be
    applied again. `picked_up`: no host has left the request lying in the mailbox. `input` is what
    a person wants a call to be made with, None where that is as it was. `implied_choice` is the
    option that had no button where a person closed the popup: a hint, and never an answer.
    """

    request_id: RequestId
    outcome: Outcome
    answers: tuple[Answer, ...] = ()
    answered_by: str | None = None
    channel: str | None = None
    answered_at: str | None = None
    error: str | None = None
    reason: str | None = None
    repeated: bool = False
    picked_up: bool = True
    input: Mapping[str, object] | None = None
    implied_choice: str | None = None

    @property
    def is_granted(self) -> bool:
        """Whether a person, or a rule of theirs, has said yes to a permission or an approval."""
        said = {value for answer in self.answers for value in answer.values}
        return self.outcome is Outcome.ANSWERED and bool(said) and said <= _GRANTS

    @property
    def is_decision(self) -> bool:
        """Whether what was answered is a permission or an approval."""
        said = {value for answer in self.answers for value in answer.values}
        return bool(said & _DECISIONS)

    @property
    def note(self) -> str:
        """What the person wrote, beside a choice or for a reason."""
        written = [answer.text for answer in self.answers if answer.text]
        return "\n".join([*written, *([self.reason] if self.reason else [])])


def failure(request_id: RequestId, error: str) -> Result:
    """Return that asking itself failed."""
    return Result(request_id, Outcome.ERROR, error=error)
