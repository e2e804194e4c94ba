"""What the host says of a question, as values that the commands can show.

Lenient: a field that an older or newer host does not send is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pynchy.choices import approved_so_far
from pynchy.cli.text import duration, one_line, read_moment
from pynchy.fair_order import urgency_rank
from pynchy.model import AcceptsText, Answer, Kind, Option, Question
from pynchy.permissions.card import brief_of

Json = dict[str, Any]

WAITING = frozenset({"recorded", "open"})


def is_decision(kind: str) -> bool:
    """True if what is asked is no question but a permission or an approval."""
    return kind not in {"", Kind.QUESTION}


def how_to_decide(short_id: str) -> str:
    """Say by which commands a permission or an approval is decided."""
    return f"pynchy approve {short_id}, or: pynchy deny {short_id}"


@dataclass(frozen=True, slots=True)
class HostCard:
    """One channel's card of a question."""

    channel: str
    chat: str
    state: str
    error: str


@dataclass(frozen=True, slots=True)
class HostEnding:
    """How a question ended."""

    outcome: str
    at: datetime
    by: str
    channel: str
    reason: str
    summary: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class HostQuestion:
    """A question as the host tells it.

    `drafts` are the questions, by their numbers from 0, that somebody has answered, and who did.
    `unreachable` says why no answer can be brought to whoever asked, where that is known.
    """

    request_id: str
    short_id: str
    kind: str
    approvals_needed: int
    group: str
    agent: str
    task: str
    title: str
    urgency: str
    state: str
    asked_at: datetime
    expires_at: datetime
    defaults_at: datetime | None
    wait_until: datetime | None
    call_waits: bool
    parked: bool
    questions: tuple[Question, ...]
    cards: tuple[HostCard, ...]
    drafts: tuple[tuple[int, str], ...]
    ending: HostEnding | None
    delivered: str
    delivered_at: datetime | None
    delivery_error: str
    delivery_attempts: int
    retry_at: datetime | None
    taker_died: bool
    agent_gone: bool
    unreachable: str
    is_editable: bool
    hears_dismissal: bool

    @property
    def asker(self) -> str:
        """Group and agent in one."""
        return f"{self.group}/{self.agent}" if self.agent else self.group

    @property
    def brief(self) -> str:
        """What a list says of the first question; to be made safe to show."""
        text = self.questions[0].text if self.questions else ""
        return brief_of(text) if self.kind == Kind.PERMISSION else text

    @property
    def kind_word(self) -> str:
        """What to put before what is asked where it is no question: "approval: "."""
        return f"{self.kind}: " if is_decision(self.kind) else ""

    @property
    def waits(self) -> bool:
        """True while an answer can still win."""
        return self.state in WAITING

    @property
    def needs_word(self) -> bool:
        """True if nothing but a word of its own is a yes: a permission or an approval."""
        return any(question.needs_word for question in self.questions)

    @property
    def due_at(self) -> datetime:
        """When it ends by itself."""
        return min(self.expires_at, self.defaults_at or self.expires_at)

    @property
    def order(self) -> tuple[int, datetime, datetime, str]:
        """What to sort by: most urgent, ends soonest, oldest."""
        return (urgency_rank(self.urgency), self.due_at, self.asked_at, self.short_id)

    def waits_seconds(self, now: datetime) -> float:
        """Return for how long the agent's call still waits; 0 where it does not, or to the end."""
        if not self.call_waits or self.parked or self.wait_until is None:
            return 0.0
        is_to_the_end = self.wait_until >= self.due_at
        return 0.0 if is_to_the_end else max((self.wait_until - now).total_seconds(), 0.0)

    def agent_waits(self, now: datetime) -> str:
        """Return how long the agent waits, and what becomes of an answer that comes later."""
        if self.parked:
            return "parked: the answer resumes it"
        if self.agent_gone:
            return "has stopped: the answer resumes it"
        if left := self.waits_seconds(now):
            return f"waits {duration(left)} more; a later answer is kept for it"
        if self.call_waits and (self.wait_until is None or self.wait_until >= self.due_at):
            return ""
        return "its call no longer waits; the answer is kept for it"

    @property
    def answered_numbers(self) -> frozenset[int]:
        """The numbers, from 0, of the questions that somebody has answered already."""
        return frozenset(number for number, _ in self.drafts if self.approvals_needed == 1)

    @property
    def approved(self) -> str:
        """Who has approved where more people are needed; empty where nobody has."""
        people = [one_line(by) or "somebody" for _, by in self.drafts]
        is_some = self.approvals_needed > 1 and bool(people)
        return approved_so_far(people, self.approvals_needed) if is_some else ""

    @property
    def missing(self) -> tuple[tuple[int, Question], ...]:
        """The questions that have no answer yet, with their numbers from 1."""
        numbered = enumerate(self.questions)
        return tuple((n + 1, q) for n, q in numbered if n not in self.answered_numbers)


def read_question(view: Json) -> HostQuestion:
    """Return the question that the host describes."""
    return HostQuestion(
        request_id=_text(view, "request_id"),
        short_id=_text(view, "short_id"),
        kind=_text(view, "kind"),
        approvals_needed=int(view.get("approvals_needed") or 1),
        group=_text(view, "group"),
        agent=_text(view, "agent"),
        task=_text(view, "task"),
        title=_text(view, "title"),
        urgency=_text(view, "urgency"),
        state=_text(view, "state"),
        asked_at=read_moment(view["timestamp"]),
        expires_at=read_moment(view["expires_at"]),
        defaults_at=_moment(view, "defaults_at"),
        wait_until=_moment(view, "wait_until"),
        call_waits=bool(view.get("call_waits", True)),
        parked=bool(view.get("parked", False)),
        questions=tuple(_question(q) for q in view.get("questions", ())),
        cards=tuple(_card(card) for card in view.get("cards", ())),
        drafts=tuple((d["question"], _text(d, "by")) for d in view.get("drafts", ())),
        ending=_ending(view["ending"]) if view.get("ending") else None,
        delivered=_text(view, "delivered"),
        delivered_at=_moment(view, "delivered_at"),
        delivery_error=_text(view, "delivery_error"),
        delivery_attempts=int(view.get("delivery_attempts") or 0),
        retry_at=_moment(view, "retry_at"),
        taker_died=view.get("taker_died") is True,
        agent_gone=view.get("agent_gone") is True,
        unreachable=_text(view, "unreachable"),
        is_editable=view.get("editable") is True,
        hears_dismissal=view.get("hears_dismissal") is True,
    )


def _question(view: Json) -> Question:
    options = view.get("options") or ()
    return Question(
        text=_text(view, "question"),
        header=_text(view, "header"),
        options=tuple(_option(option) for option in options),
        multi_select=bool(view.get("multiSelect")),
        default=tuple(view.get("default") or ()),
        accepts_text=_accepts_text(view),
        needs_word=view.get("needs_word") is True,
    )


def _option(view: Json) -> Option:
    names = ("label", "description", "preview", "value", "confirm", "narrows")
    texts = {name: _text(view, name) for name in names}
    return Option(**texts, needs_sight=view.get("needs_sight") is True)


def _accepts_text(view: Json) -> AcceptsText:
    said = _text(view, "accepts_text")
    return AcceptsText(said) if said in set(AcceptsText) else AcceptsText.ANSWER


def _card(view: Json) -> HostCard:
    return HostCard(
        channel=_text(view, "channel"),
        chat=_text(view, "chat"),
        state=_text(view, "state"),
        error=_text(view, "error"),
    )


def _ending(view: Json) -> HostEnding:
    edited = view.get("edited")  # of a permission, which is one question
    return HostEnding(
        outcome=_text(view, "outcome"),
        at=read_moment(view["answered_at"]),
        by=_text(view, "answered_by"),
        channel=_text(view, "channel"),
        reason=_text(view, "reason"),
        summary=_text(view, "summary"),
        answers=tuple(
            Answer(tuple(a.get("selected") or ()), a.get("text"), edited)
            for a in view.get("answers", ())
        ),
    )


def _text(view: Json, name: str) -> str:
    value = view.get(name)
    return "" if value is None else str(value)


def _moment(view: Json, name: str) -> datetime | None:
    value = view.get(name)
    return read_moment(value) if value else None
