"""What things are: questions, what they accept, answers, and how a question ends.

Everything here is frozen. A change is a new value, made by `bridge.lifecycle`. Renderers and
matching go by a question's options and `accepts_text`, never by its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

from pynchy.calls import RuleScope, ToolCall

RequestId = NewType("RequestId", str)
ShortId = NewType("ShortId", str)
GroupName = NewType("GroupName", str)
SessionId = NewType("SessionId", str)

ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
GROUP_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
# Agents choose these ids and people paste them: no shell may find anything to run in one.
SESSION_PATTERN = r"[A-Za-z0-9_.:@/+][A-Za-z0-9_.:@/+=-]{0,499}"


class Kind(StrEnum):
    """What sort of thing waits: a word for listings, and for who may answer (`approvers`)."""

    APPROVAL = "approval"
    PERMISSION = "permission"
    QUESTION = "question"


class AcceptsText(StrEnum):
    """What own words are to a question with options: an answer, a note beside one, or nothing."""

    ANSWER = "answer"
    NOTE = "note"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Option:
    """One of the choices that are offered; `value`, if not its label, names it as well.

    `confirm` is agreed to before the choice counts. `narrows` is the value of the option in whose
    confirmation a screen offers this one. `needs_sight`: offered only where all can be read.
    """

    label: str
    description: str = ""
    preview: str = ""
    value: str = ""
    confirm: str = ""
    narrows: str = ""
    needs_sight: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.value or self.label)


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that the agent asks.

    `needs_word`: in a chat a choice is typed as its value and the question's id ("approve ab2c"),
    so that no number or "ok" that was meant for something else is taken for it.
    """

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    default: tuple[str, ...] = ()
    accepts_text: AcceptsText = AcceptsText.ANSWER
    needs_word: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the options, in order."""
        return tuple(option.label for option in self.options)

    @property
    def takes_words(self) -> bool:
        """True if a person may write something, be it only beside a choice."""
        return not self.options or self.accepts_text is not AcceptsText.NO

    @property
    def takes_words_alone(self) -> bool:
        """True if a person's own words are an answer by themselves."""
        return not self.options or self.accepts_text is AcceptsText.ANSWER


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person chose and wrote; `edited` is the input that a call was allowed with instead."""

    selected: tuple[str, ...] = ()
    text: str | None = None
    edited: Mapping[str, Any] | None = None

    def describe(self) -> str:
        """What was chosen and written, for a person."""
        chosen = (*self.selected, "edited") if self.edited is not None else self.selected
        parts = [", ".join(chosen)] if chosen else []
        return " — ".join([*parts, self.text] if self.text else parts)


class Urgency(StrEnum):
    """How soon the agent would like an answer."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class State(StrEnum):
    """Where a question stands.

    recorded → open → delivering → closed, where delivering may pass through held (the runner
    lives but nobody waits), resuming (a cold start is under way) and undelivered (kept, shown).
    """

    RECORDED = "recorded"
    OPEN = "open"
    DELIVERING = "delivering"
    HELD = "held"
    RESUMING = "resuming"
    UNDELIVERED = "undelivered"
    CLOSED = "closed"

    @property
    def waits_for_person(self) -> bool:
        """True while an answer can still win."""
        return self in {State.RECORDED, State.OPEN}


class OutcomeKind(StrEnum):
    """How a question ended."""

    ANSWERED = "answered"
    DECLINED = "declined"
    DEFAULTED = "defaulted"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    UNDELIVERABLE = "undeliverable"
    CLEARED = "cleared"

    @property
    def resumes(self) -> bool:
        """True if a dead agent is brought back to hear of it."""
        return self in {OutcomeKind.ANSWERED, OutcomeKind.DECLINED, OutcomeKind.DEFAULTED}


class CardState(StrEnum):
    """What a channel shows of a question."""

    SENDING = "sending"
    SHOWN = "shown"
    FAILED = "failed"
    SETTLED = "settled"
    ABANDONED = "abandoned"


class DeliveryPath(StrEnum):
    """How an outcome reached the agent."""

    LIVE = "live"
    LATE = "late"
    NONE = "none"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a question ended; never changed. `rule_seconds`: how long a rule made by it holds."""

    outcome: OutcomeKind
    at: datetime
    answers: tuple[Answer, ...] = ()
    by: str | None = None
    channel: str | None = None
    reason: str | None = None
    user_id: str | None = None
    rule_seconds: float | None = None

    def describe(self) -> str:
        """How it ended, for a person who came second."""
        who = f" by {self.by}" if self.by else ""
        where = f" ({self.channel})" if self.channel else ""
        said = "; ".join(answer.describe() for answer in self.answers)
        why = f": {said}" if said else f": {self.reason}" if self.reason else ""
        return f"{self.outcome}{who}{where}{why}"


@dataclass(frozen=True, slots=True)
class CardRef:
    """One channel's card of a question: where it is and what became of it.

    `delivery` is what the settled card says of the answer's way to the agent. `maybe_shown`: an
    attempt failed, and the card may be there. `hopeless`: trying again does not help the last one.
    """

    channel: str
    chat: str = ""
    message_id: str | None = None
    state: CardState = CardState.SENDING
    attempts: int = 0
    error: str | None = None
    delivery: str = ""
    maybe_shown: bool = False
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer to one question of several, kept until the others are answered; or one approval.

    Its author is `user_id` in `channel`, and `by` is what they are called. Without a `user_id`,
    as in the terminal and on the page, it is the name that tells people apart.
    """

    question: int
    answer: Answer
    by: str
    channel: str = ""
    user_id: str = ""

    def has_author_of(self, other: Draft) -> bool:
        """True if the same person gave both. Drafts of 0.1 have a name alone."""
        if self.channel and other.channel and (self.user_id or other.user_id):
            return (self.channel, self.user_id) == (other.channel, other.user_id)
        return self.by == other.by


@dataclass(frozen=True, slots=True)
class Late:
    """The host's attempts to resume a session with an answer.

    `claim` is the secret in the receipt file that tells our own receipt from an agent's.
    `taker_died`: a process took the answer and died before it passed it on. `wanted`: by a person.
    """

    claim: str = ""
    attempts: int = 0
    error: str | None = None
    retry_at: datetime | None = None
    taker_died: bool = False
    wanted: bool = False


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """Questions of one request with their routing, state and deadlines.

    `parked`: the agent has put the call off, and ends; it makes it again when it is resumed.
    `source`: where it came from, empty for the mailbox; `home_host`: who recorded it. `call`: what
    a permission is for, `offered_rule`: what "always" makes, `rule_problem`: why it did not. Until
    `approvals_needed` people approve, each approval is a draft. `asker_seen`: it had a lease.
    `hears_dismissal`: closing it is told. `ask_id`: its name in a terminal.
    """

    request_id: RequestId
    short_id: ShortId
    group: GroupName
    questions: tuple[Question, ...]
    timestamp: datetime
    wait_until: datetime
    expires_at: datetime
    digest: str
    size_bytes: int = 0
    kind: Kind = Kind.QUESTION
    state: State = State.RECORDED
    title: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    session_id: SessionId = SessionId("")
    lease: str = ""
    asker_seen: bool = False
    call_waits: bool = True
    parked: bool = False
    cards: tuple[CardRef, ...] = ()
    drafts: tuple[Draft, ...] = ()
    late: Late = field(default_factory=Late)
    ending: Ending | None = None
    delivered: DeliveryPath | None = None
    delivered_at: datetime | None = None
    source: str = ""
    home_host: str = ""
    call: ToolCall | None = None
    offered_rule: str = ""
    rule_problem: str = ""
    approvals_needed: int = 1
    hears_dismissal: bool = False
    ask_id: str = ""

    @property
    def answered(self) -> frozenset[int]:
        """The numbers, from 1, of the questions that somebody has answered already."""
        return frozenset(d.question + 1 for d in self.drafts if self.approvals_needed == 1)

    @property
    def key(self) -> tuple[GroupName, RequestId]:
        """What tells this question from all others; ids are only unique within a group."""
        return (self.group, self.request_id)

    @property
    def channel_name(self) -> str:
        """The channels that show it, joined for a listing."""
        return ", ".join(c.channel for c in self.cards if c.state is not CardState.FAILED)

    @property
    def defaults_at(self) -> datetime | None:
        """When silence turns into the asker's own default.

        None unless every question has one, and as soon as somebody has begun to answer.
        """
        every = all(q.default for q in self.questions)
        return self.wait_until if every and not self.drafts else None

    @property
    def due_at(self) -> datetime:
        """When it ends by itself."""
        return min(self.expires_at, self.defaults_at or self.expires_at)

    @property
    def resumes(self) -> bool:
        """True if a dead agent is brought back to hear how it ended, as a parked one always is."""
        return self.ending is not None and (self.parked or self.ending.outcome.resumes)

    @property
    def is_at_rest(self) -> bool:
        """True if nothing happens to the outcome any more, unless a person or agent acts."""
        return self.delivered is not None or self.state is State.UNDELIVERED

    def card_of(self, channel: str) -> CardRef | None:
        """Return the card that the channel shows, if any."""
        return next((card for card in self.cards if card.channel == channel), None)

    def with_card(self, card: CardRef) -> PendingQuestion:
        """Return this question with the card in place of that channel's earlier one."""
        return replace(self, cards=(*(c for c in self.cards if c.channel != card.channel), card))


@dataclass(frozen=True, slots=True)
class Card:
    """What a channel needs to know, beside the questions, to show or settle them."""

    short_id: ShortId
    group: GroupName
    timestamp: datetime
    expires_at: datetime
    title: str = ""
    agent: str = ""
    task: str = ""
    urgency: Urgency = Urgency.NORMAL
    defaults_at: datetime | None = None
    link: str | None = None
    session_id: SessionId = SessionId("")
    repeated: bool = False
    ending: Ending | None = None
    delivery: str = ""
    hears_dismissal: bool = False


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card of an open question; `answered` are the numbers, from 1, of what has an answer."""

    jid: str
    message_id: str
    request_id: RequestId
    questions: tuple[Question, ...]
    card: Card
    answered: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reply:
    """Raw human input to a question, before anybody has judged it.

    Either `values` (numbers, labels or text), or `answers` where the channel knows what was ticked
    and written: one for each question, empty where it was answered before. `question`: from 1, if
    only that one is answered. `group`: the target is of it alone. `edited`: as it came.
    """

    target: str
    by: str
    channel: str
    values: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    question: int | None = None
    user_id: str | None = None
    chat: str | None = None
    group: GroupName | None = None
    rule_seconds: float | None = None
    rule_scope: RuleScope | None = None
    edited: object = None
