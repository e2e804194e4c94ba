"""A card as numbered text, and the short texts that follow it.

However long the agent's texts are: who asks, the id, every option and how to answer are there.
Lines that the agent wrote carry a mark, so that none passes for a line of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pynchy.channels import wording
from pynchy.channels.numbered.hints import how
from pynchy.channels.numbered.plain import clip, in_line, quoted
from pynchy.channels.text import length
from pynchy.errors import ReplyRejected
from pynchy.model import Card, Ending, PendingQuestion, Question, Urgency

SMALLEST_LIMIT = 2_000
_NAME = 60
_ABOUT = 120
_BRIEF = 200
_MAX_LINK_LENGTH = 200
_REFUSAL = 600
_NOTED = 1_000


@dataclass(frozen=True, slots=True)
class _Detail:
    """How many characters of each text are shown."""

    text: int
    description: int
    preview: int
    label: int


_WHOLE = _Detail(1_000_000, 1_000_000, 1_000_000, 1_000_000)
_DETAILS = (
    _Detail(20_000, 4_000, 1_000, 500),
    _Detail(20_000, 500, 0, 500),
    _Detail(4_000, 300, 0, 300),
    _Detail(2_000, 100, 0, 200),
    _Detail(1_000, 0, 0, 100),
    _Detail(600, 0, 0, 60),
    _Detail(300, 0, 0, 30),
    _Detail(150, 0, 0, 16),
    _Detail(80, 0, 0, 6),
    # There is no room for the options at all: the card says where they are.
    _Detail(60, 0, 0, 0),
)


def render_card(questions: tuple[Question, ...], card: Card, limit: int) -> str:
    """Return the questions in one text of at most `limit` characters (SMALLEST_LIMIT or more).

    Lengths are counted in UTF-16 units. A card with `repeated` says so.
    """
    top, bottom = list(_top(questions, card)), list(_bottom(questions, card))
    whole = list(_asked(questions, card, _WHOLE))
    text = ""
    for detail in _DETAILS:
        asked = list(_asked(questions, card, detail))
        cut = [] if asked == whole else [_where(card)]
        text = "\n".join([*top, *asked, "", *cut, *bottom])
        if length(text) <= limit:
            break
    return clip(text, limit)


def render_settled(
    questions: tuple[Question, ...], card: Card, ending: Ending, here: str, limit: int
) -> str:
    """Return how the question ended, and how the answer gets to the agent (`card.delivery`).

    `here` is the name of the channel that says it.
    """
    share = max(_ABOUT, min(_BRIEF * 2, limit // (4 * len(questions))))
    lines = [f"#{card.short_id} {wording.describe(ending, here, in_line)}"]
    lines += [in_line(card.delivery, share)] if card.delivery else []
    several = len(ending.answers) > 1
    for number, question in enumerate(questions):
        lines += quoted(in_line(question.text, _ABOUT), _ABOUT)
        if several and number < len(ending.answers):
            lines.append(f"→ {in_line(ending.answers[number].describe(), share)}")
    return clip("\n".join(lines), limit)


def noted(pending: PendingQuestion) -> str:
    """Return what a person is told who has answered some of the questions: what comes next."""
    missing = [n for n in range(1, len(pending.questions) + 1) if n not in pending.answered]
    lines = [f"{wording.noted(pending)} #{pending.short_id}"]
    if missing:
        question = pending.questions[missing[0] - 1]
        lines += [f"Next is question {missing[0]}:", *quoted(question.text, _BRIEF), how(question)]
    return clip("\n".join(lines), _NOTED)


def refusal(exc: ReplyRejected) -> str:
    """Return what a person is told whose reply the reply handler did not take."""
    return in_line(wording.refusal(exc), _REFUSAL)


def _top(questions: tuple[Question, ...], card: Card) -> Iterator[str]:
    urgent = "🔴 Urgent: " if card.urgency is Urgency.HIGH else ""
    yield f"{urgent}{in_line(card.agent or card.group, _NAME)} asks · #{card.short_id}"
    if card.repeated:
        yield wording.REPEATED
    about = card.title or (questions[0].header if len(questions) == 1 else "")
    if about.strip():
        yield f"About: {in_line(about, _ABOUT)}"
    if card.task.strip():
        yield f"Task: {in_line(card.task, _ABOUT)}"


def _asked(questions: tuple[Question, ...], card: Card, detail: _Detail) -> Iterator[str]:
    for number, question in enumerate(questions, 1):
        yield ""
        if len(questions) > 1:
            header = f" · {in_line(question.header, _NAME)}" if question.header.strip() else ""
            yield f"Question {number} of {len(questions)}{header}"
        yield from quoted(question.text, detail.text)
        yield from _options(question, card, detail)


def _options(question: Question, card: Card, detail: _Detail) -> Iterator[str]:
    if question.options and not detail.label:
        yield f"Options 1–{len(question.options)} do not fit here: pynchy show {card.short_id}"
        return
    for number, option in enumerate(question.options, 1):
        yield f"{number}. {in_line(option.label, detail.label)}"
        if option.description.strip() and detail.description:
            yield from quoted(option.description, detail.description)
        if option.preview.strip() and detail.preview:
            yield from quoted(option.preview, detail.preview)


def _where(card: Card) -> str:
    return f"Shortened to fit. The whole: pynchy show {card.short_id}"


def _bottom(questions: tuple[Question, ...], card: Card) -> Iterator[str]:
    yield f"{_how(questions)} #{card.short_id}"
    yield (
        f"If it could be unclear, quote this message or begin with #{card.short_id}. "
        "“cancel” declines."
    )
    yield _deadline(questions, card)
    if card.link and len(card.link) <= _MAX_LINK_LENGTH:
        yield card.link


def _how(questions: tuple[Question, ...]) -> str:
    if len(questions) == 1:
        return how(questions[0])
    example = ", ".join(f"{n}: {_example(question)}" for n, question in enumerate(questions, 1))
    return (
        f"Reply to all at once, such as “{example}” or a line for each; or to one after another, "
        "beginning with question 1. Your own words are fine."
    )


def _example(question: Question) -> str:
    most = len(question.options)
    if not most:
        return "your words"
    return f"1 {most}" if question.multi_select and most > 1 else str(min(most, 2))


def _deadline(questions: tuple[Question, ...], card: Card) -> str:
    if card.defaults_at is None:
        hurry = " · no hurry" if card.urgency is Urgency.LOW else ""
        return f"Open until {_moment(card.expires_at)}{hurry}"
    taken = "; ".join(", ".join(question.default) for question in questions)
    by = _moment(card.defaults_at)
    return f"Without an answer by {by} the agent takes its own default: {in_line(taken, _NAME)}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%d %b %H:%M} UTC"
