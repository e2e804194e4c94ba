"""What a card says of a question, ready to be put into a page.

The order of cards is one number for each, so that the page and the host agree without asking.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from markupsafe import Markup

from pynchy.calls import BASH
from pynchy.choices import approved_so_far
from pynchy.fair_order import urgency_rank
from pynchy.inbox import markdown
from pynchy.model import (
    Draft,
    Ending,
    Kind,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    State,
)
from pynchy.outcome_text import delivery_note
from pynchy.permissions.card import brief_of
from pynchy.unicode_safety import name_all

_LONG_TEXT = 2_500
_LONG_LINES = 30
_BRIEF = 140
# A line is made of so much of a text, whatever is hidden in it.
_BRIEF_SOURCE = 1_000
# What a list shows of one card: of what the agent wrote, and as HTML. More has a page of its own.
_MAX_LISTED_TEXT = 48_000
MAX_LISTED_HTML = 96_000
_EXCERPT = 600

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
    """One option; `value` is the label as it was asked and is sent back.

    `name` is what a program calls it, where that is something else. `confirm` is agreed to before
    the choice counts. One that `narrows` another (by its name) is offered where that is confirmed.
    """

    number: int
    value: str
    label: Markup
    description: Markup | None
    preview: PreviewView | None
    name: str
    confirm: str
    narrows: str


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
    approved: Markup | None


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
    """A whole card.

    `edited_as` says how a call can be edited before it is allowed, "command" or "json", and is
    empty where it cannot be; `call_input` is then what it was called with, as JSON.
    """

    key: str
    id: str
    short_id: str
    group: str
    agent: Markup
    task: Markup | None
    title: Markup | None
    brief: str
    kind: str
    is_careful: bool
    urgency: str
    order: str
    asked_at: datetime
    expires_at: datetime
    defaults_at: datetime | None
    due_at: datetime
    waits_until: datetime | None
    then: str
    questions: tuple[QuestionView, ...]
    ending: EndingView | None
    undelivered: bool
    excerpt: Markup | None
    length: int
    edited_as: str
    call_input: str

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


def is_too_long(pending: PendingQuestion) -> bool:
    """True if the agent wrote more than a list shows of one card.

    Found without rendering it: a group can ask for many such cards every second.
    """
    texts = list(_written(pending))
    return (
        sum(map(len, texts)) > _MAX_LISTED_TEXT
        or sum(len(name_all(text)) for text in texts) > MAX_LISTED_HTML
    )


def card_view(pending: PendingQuestion, *, is_excerpt: bool = False) -> CardView:
    """Return what the card of the question says; of an excerpt, only how it begins."""
    return CardView(
        key=f"{pending.group}/{pending.request_id}",
        id=f"q-{pending.group}/{pending.request_id}",
        short_id=pending.short_id,
        group=pending.group,
        agent=_agent(pending),
        task=_some(one_line(pending.task)),
        title=_some(one_line(pending.title)),
        brief=brief(pending),
        kind=pending.kind,
        is_careful=any(map(_is_careful, pending.questions)),
        urgency=pending.urgency,
        order=order_of(pending),
        asked_at=pending.timestamp,
        expires_at=pending.expires_at,
        defaults_at=pending.defaults_at,
        due_at=pending.due_at,
        waits_until=_waits_until(pending),
        then=_then(pending),
        questions=() if is_excerpt else _questions(pending),
        ending=_ending(pending, pending.ending) if pending.ending else None,
        undelivered=pending.state is State.UNDELIVERED,
        excerpt=markdown.plain(pending.questions[0].text[:_EXCERPT]) if is_excerpt else None,
        length=_length(pending),
        **_editing(pending),
    )


def _editing(pending: PendingQuestion) -> dict[str, str]:
    call = pending.call
    if call is None or not call.editable or pending.ending is not None:
        return {"edited_as": "", "call_input": ""}
    is_command = call.tool == BASH and call.text("command") is not None
    given = json.dumps(dict(call.input), ensure_ascii=False)
    return {"edited_as": "command" if is_command else "json", "call_input": given}


def _waits_until(pending: PendingQuestion) -> datetime | None:
    """Return when the agent's call stops waiting, where that is before the question ends."""
    waits = pending.call_waits and not pending.parked and pending.wait_until < pending.due_at
    return pending.wait_until if waits else None


def _then(pending: PendingQuestion) -> str:
    """Return what becomes of an answer that no call waits for."""
    if pending.parked:
        return "the agent is parked: the answer resumes it"
    if pending.call_waits and pending.wait_until >= pending.due_at:
        return ""
    return "the agent's call has ended: the answer is kept for it"


def _length(pending: PendingQuestion) -> int:
    """Return how many characters the agent wrote."""
    return sum(map(len, _written(pending)))


def _written(pending: PendingQuestion) -> Iterator[str]:
    """Yield every text of the agent's."""
    for question in pending.questions:
        yield from (question.text, question.header, *question.default)
        for option in question.options:
            yield from (option.label, option.description, option.preview)


def _questions(pending: PendingQuestion) -> tuple[QuestionView, ...]:
    drafts = {draft.question: draft for draft in pending.drafts}
    approved = None
    if pending.approvals_needed > 1 and drafts:
        people = [one_line(draft.by) for draft in pending.drafts]
        approved, drafts = _some(approved_so_far(people, pending.approvals_needed)), {}
    texts = _texts(pending.questions)
    return tuple(
        replace(_question(number, question, text, drafts.get(number - 1)), approved=approved)
        for number, (question, text) in enumerate(
            zip(pending.questions, texts, strict=True), start=1
        )
    )


def order_of(pending: PendingQuestion) -> str:
    """Return what to sort by: most urgent first, then what ends soonest, then the oldest."""
    due, asked = (int(at.timestamp() * 1000) for at in (pending.due_at, pending.timestamp))
    return f"{urgency_rank(pending.urgency)}-{due:015}-{asked:015}-{pending.short_id}"


def revision_of(pending: PendingQuestion) -> str:
    """Return what changes when the card does; made without making the card."""
    parts = [(draft.question, draft.by) for draft in pending.drafts]
    undelivered = pending.state is State.UNDELIVERED
    waits = (pending.call_waits, pending.parked)
    seen = (pending.digest, parts, waits, pending.ending, delivery_note(pending), undelivered)
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def brief(pending: PendingQuestion) -> str:
    """Return the question in one line of plain text, for a title or a notification."""
    asked = pending.questions[0].text
    asked = brief_of(asked) if pending.kind is Kind.PERMISSION else asked
    text = one_line(pending.title) or _first_words(asked)
    return text if len(text) <= _BRIEF else text[: _BRIEF - 1] + "…"


def one_line(text: str) -> str:
    """Return the text without line breaks, hidden characters named."""
    return " ".join(name_all(text).split())


def _first_words(text: str) -> str:
    """Return how the text begins, in one line; most of it is not looked at."""
    return one_line(text[:_BRIEF_SOURCE])


def _agent(pending: PendingQuestion) -> Markup:
    return markdown.plain(one_line(pending.agent) or "An agent")


def _texts(questions: Sequence[Question]) -> list[Markup]:
    """Return the texts as HTML; from where they have too many marks together, as they stand."""
    marks = accumulate(markdown.count_marks(question.text) for question in questions)
    return [
        markdown.render(question.text, is_whole=_is_careful(question))
        if sum_ <= markdown.MAX_MARKS
        else markdown.as_is(question.text)
        for question, sum_ in zip(questions, marks, strict=True)
    ]


def _is_careful(question: Question) -> bool:
    """True if somebody allows something: all that they allow must be in sight."""
    return question.needs_word or any(option.needs_sight for option in question.options)


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
        approved=None,
    )


def _options(options: Sequence[Option]) -> tuple[OptionView, ...]:
    return tuple(
        OptionView(
            number,
            option.label,
            markdown.plain(one_line(option.label)),
            _some(option.description),
            _preview(option.preview) if option.preview.strip() else None,
            option.value if option.value != option.label else "",
            one_line(option.confirm),
            option.narrows,
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
            (
                markdown.plain(_first_words(q.header or q.text)[:_BRIEF]),
                markdown.plain(a.describe()),
            )
            for q, a in pairs
        ),
        delivery=_some(delivery_note(pending)),
    )


def _some(text: str) -> Markup | None:
    return markdown.plain(text) if text.strip() else None
