"""What a card says of a question, ready to be put into a page.

The order of cards is one number for each, so that the page and the host agree without asking.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from markupsafe import Markup

from pynchy.inbox import markdown
from pynchy.model import (
    Draft,
    Ending,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    State,
    Urgency,
)
from pynchy.unicode_safety import name_all

_RANKS = {Urgency.HIGH: 0, Urgency.NORMAL: 1, Urgency.LOW: 2}
_LONG_TEXT = 2_500
_LONG_LINES = 30
_BRIEF = 140
# Markdown takes up to 60 µs for each of these, so that a card's texts together take 0.1 s.
_MARKS = re.compile(r"[<>\[\]|\\&!\n]|([-*_~`#])\1*")
_MAX_MARKS = 2_000

OUTCOMES: Mapping[OutcomeKind, str] = {
    OutcomeKind.ANSWERED: "Answered",
    OutcomeKind.DECLINED: "Declined",
    OutcomeKind.DEFAULTED: "Nobody answered: the agent's own default was used",
    OutcomeKind.EXPIRED: "Expired without an answer",
    OutcomeKind.WITHDRAWN: "Withdrawn by the agent",
    OutcomeKind.UNDELIVERABLE: "Could not be shown",
    OutcomeKind.CLEARED: "No longer asked",
}


@dataclass(frozen=True, slots=True)
class PreviewView:
    """An option's preview: code, folded where it is long."""

    html: Markup
    lines: int
    is_diff: bool

    @property
    def is_long(self) -> bool:
        """True if it is folded at first."""
        return self.lines > markdown.FOLD_LINES


@dataclass(frozen=True, slots=True)
class OptionView:
    """One option; `value` is the label as it was asked and is sent back."""

    number: int
    value: str
    label: Markup
    description: Markup | None
    preview: PreviewView | None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """One question of a card."""

    number: int
    header: Markup | None
    text: Markup
    lines: int
    is_long: bool
    options: tuple[OptionView, ...]
    multi: bool
    takes_words: bool
    takes_words_alone: bool
    default: Markup | None
    answered_by: Markup | None


@dataclass(frozen=True, slots=True)
class EndingView:
    """How it ended: a word, who and where, and what was said to each question."""

    word: str
    outcome: str
    by: Markup | None
    channel: str
    at: datetime
    reason: Markup | None
    answers: tuple[tuple[Markup, Markup], ...]
    delivery: Markup | None


@dataclass(frozen=True, slots=True)
class CardView:
    """A whole card."""

    key: str
    id: str
    short_id: str
    group: str
    agent: Markup
    task: Markup | None
    title: Markup | None
    brief: str
    urgency: str
    order: str
    asked_at: datetime
    expires_at: datetime
    defaults_at: datetime | None
    due_at: datetime
    call_waits: bool
    questions: tuple[QuestionView, ...]
    ending: EndingView | None
    undelivered: bool

    @property
    def is_plain(self) -> bool:
        """True if one click answers it: a single question with a single choice."""
        return len(self.questions) == 1 and self.is_choice(self.questions[0])

    @staticmethod
    def is_choice(question: QuestionView) -> bool:
        """True if one of the options is enough."""
        return bool(question.options) and not question.multi


@dataclass(frozen=True, slots=True)
class RowView:
    """One line of the history: what was asked, in short, and how it ended."""

    key: str
    group: str
    agent: Markup
    brief: str
    ending: EndingView


def row_view(pending: PendingQuestion, ending: Ending) -> RowView:
    """Return what the history says of the question; much less work than its card."""
    return RowView(
        key=f"{pending.group}/{pending.request_id}",
        group=pending.group,
        agent=_agent(pending),
        brief=brief(pending),
        ending=_ending(pending, ending),
    )


def card_view(pending: PendingQuestion) -> CardView:
    """Return what the card of the question says."""
    drafts = {draft.question: draft for draft in pending.drafts}
    texts = _texts([question.text for question in pending.questions])
    views = [
        _question(number, question, text, drafts.get(number - 1))
        for number, (question, text) in enumerate(
            zip(pending.questions, texts, strict=True), start=1
        )
    ]
    return CardView(
        key=f"{pending.group}/{pending.request_id}",
        id=f"q-{pending.group}/{pending.request_id}",
        short_id=pending.short_id,
        group=pending.group,
        agent=_agent(pending),
        task=_some(one_line(pending.task)),
        title=_some(one_line(pending.title)),
        brief=brief(pending),
        urgency=pending.urgency,
        order=order_of(pending),
        asked_at=pending.timestamp,
        expires_at=pending.expires_at,
        defaults_at=pending.defaults_at,
        due_at=pending.due_at,
        call_waits=pending.call_waits,
        questions=tuple(views),
        ending=_ending(pending, pending.ending) if pending.ending else None,
        undelivered=pending.state is State.UNDELIVERED,
    )


def order_of(pending: PendingQuestion) -> str:
    """Return what to sort by: most urgent first, then what ends soonest, then the oldest."""
    due, asked = (int(at.timestamp() * 1000) for at in (pending.due_at, pending.timestamp))
    return f"{_RANKS[pending.urgency]}-{due:015}-{asked:015}-{pending.short_id}"


def revision_of(pending: PendingQuestion) -> str:
    """Return what changes when the card does; made without making the card."""
    parts = [(draft.question, draft.by) for draft in pending.drafts]
    undelivered = pending.state is State.UNDELIVERED
    seen = (pending.digest, parts, pending.ending, pending.delivery_note, undelivered)
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def brief(pending: PendingQuestion) -> str:
    """Return the question in one line of plain text, for a title or a notification."""
    text = one_line(pending.title) or one_line(pending.questions[0].text)
    return text if len(text) <= _BRIEF else text[: _BRIEF - 1] + "…"


def one_line(text: str) -> str:
    """Return the text without line breaks, hidden characters named."""
    return " ".join(name_all(text).split())


def _agent(pending: PendingQuestion) -> Markup:
    return markdown.plain(one_line(pending.agent) or "An agent")


def _texts(texts: Sequence[str]) -> list[Markup]:
    """Return the texts as HTML; from where they have too many marks together, as they stand."""
    marks = accumulate(sum(1 for _ in _MARKS.finditer(text)) for text in texts)
    return [
        markdown.render(text)
        if sum_ <= _MAX_MARKS
        else Markup('<p class="as-is">%s</p>') % markdown.plain(text)
        for text, sum_ in zip(texts, marks, strict=True)
    ]


def _question(number: int, question: Question, text: Markup, draft: Draft | None) -> QuestionView:
    lines = markdown.count_lines(question.text)
    return QuestionView(
        number=number,
        header=_some(one_line(question.header)),
        text=text,
        lines=lines,
        is_long=lines > _LONG_LINES or len(question.text) > _LONG_TEXT,
        options=_options(question.options),
        multi=question.multi_select and bool(question.options),
        takes_words=question.takes_words,
        takes_words_alone=question.takes_words_alone,
        default=_some(", ".join(one_line(label) for label in question.default)),
        answered_by=_some(one_line(draft.by)) if draft else None,
    )


def _options(options: Sequence[Option]) -> tuple[OptionView, ...]:
    return tuple(
        OptionView(
            number,
            option.label,
            markdown.plain(one_line(option.label)),
            _some(option.description),
            _preview(option.preview) if option.preview.strip() else None,
        )
        for number, option in enumerate(options, start=1)
    )


def _preview(text: str) -> PreviewView:
    return PreviewView(markdown.code(text), markdown.count_lines(text), markdown.is_diff(text))


def _ending(pending: PendingQuestion, ending: Ending) -> EndingView:
    pairs = zip(pending.questions, ending.answers, strict=False)
    return EndingView(
        word=OUTCOMES[ending.outcome],
        outcome=ending.outcome,
        by=_some(one_line(ending.by or "")),
        channel=ending.channel or "",
        at=ending.at,
        reason=_some(ending.reason or ""),
        answers=tuple(
            (markdown.plain(one_line(q.header or q.text)[:_BRIEF]), markdown.plain(a.describe()))
            for q, a in pairs
        ),
        delivery=_some(pending.delivery_note),
    )


def _some(text: str) -> Markup | None:
    return markdown.plain(text) if text.strip() else None
