"""A card as numbered text, the short texts that follow it, and what a person is asked back.

What agents write is made harmless: it cannot pass for a line of the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pynchy.channels import text
from pynchy.channels.text import REPEATED, as_code, as_written, head, length
from pynchy.errors import ReplyRejected
from pynchy.fences import split_code
from pynchy.model import Card, Ending, PendingQuestion, Question, Urgency
from pynchy.unicode_safety import name_all

MARK = "> "
_HASH = re.compile(r"[#＃﹟](?=\w)")
_LINES = re.compile(r"[\n\x0b\x0c\x85\u2028\u2029]")
_NOTHING = "—"

SMALLEST_LIMIT = 2_000
_NAME = 60
_ABOUT = 120
_BRIEF = 200
_MAX_LINK_LENGTH = 200
_REFUSAL = 600
_NOTED = 1_000


def in_line(text: str, most: int) -> str:
    """Return the text in one line of at most so many characters, as part of a line of ours."""
    line = " ".join(_harmless(text).split()) or _NOTHING
    return clip(_HASH.sub("＃", line), most)


def quoted(text: str, most: int) -> list[str]:
    """Return the lines of the text, at most so many characters in all, each with the mark.

    Of several blank lines one stays: the text cannot push our own lines out of sight.
    """
    whole = clip("\n".join(_few_blank_lines(_harmless(text))), most) or _NOTHING
    return [f"{MARK}{line}".rstrip() for line in whole.split("\n")]


def _in_sight(text: str, most: int) -> Iterator[str]:
    """Yield the lines of what a person may allow as `quoted` does, with nothing read as markup."""
    for part in split_code(name_all(text)):
        for line in part.text.split("\n") if part.is_code else _few_blank_lines(part.text):
            if most > 0:
                shown = clip(line, most)
                yield f"{MARK}{as_code(shown) if part.is_code else as_written(shown)}".rstrip()
            most -= length(line) + 1


def _few_blank_lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip().split("\n")]
    return [line for before, line in zip(["", *lines], lines, strict=False) if line or before]


def clip(text: str, most: int) -> str:
    """Return the text in at most so many characters; what is cut ends in an ellipsis."""
    return text if length(text) <= most else head(text, max(most, 1) - 1).rstrip() + "…"


def _harmless(text: str) -> str:
    """Name what hides; let no run of backticks turn what follows into code."""
    return re.sub("`{3,}", "'''", name_all(_LINES.sub("\n", text)))


def how(question: Question) -> str:
    """Return how one question is answered."""
    most = len(question.options)
    if not most:
        return "Reply in your own words."
    if question.needs_word:
        return "Reply with a word and the id, as below."
    numbers = "1" if most == 1 else f"1–{most}"
    words = _words(question)
    if question.multi_select and most > 1:
        return f"Reply with one or more of {numbers}, such as “1 {most}”{words}."
    return f"Reply {numbers}{words}."


def _words(question: Question) -> str:
    if question.takes_words_alone:
        return ", or your own words"
    return "; a note can go along, such as “1: not now”" if question.takes_words else ""


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
    _Detail(60, 0, 0, 0),  # no room for the options at all: the card says where they are
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


def fits_whole(questions: tuple[Question, ...], card: Card, limit: int) -> bool:
    """True if a text of at most `limit` characters tells all that is asked."""
    if sum(len(question.text) for question in questions) > limit:
        return False  # which spares a look at each of very many characters
    told = [*_top(questions, card), *_asked(questions, card, _WHOLE), *_bottom(questions, card)]
    return length("\n".join([*told, "", REPEATED])) <= limit


def render_settled(
    questions: tuple[Question, ...], card: Card, ending: Ending, here: str, limit: int
) -> str:
    """Return how the question ended, and how the answer gets to the agent (`card.delivery`).

    `here` is the name of the channel that says it.
    """
    share = max(_ABOUT, min(_BRIEF * 2, limit // (4 * len(questions))))
    lines = [f"#{card.short_id} {text.describe(ending, here, in_line)}"]
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
    lines = [f"{in_line(text.noted(pending), _BRIEF)} #{pending.short_id}"]
    if missing and pending.approvals_needed == 1:
        question = pending.questions[missing[0] - 1]
        lines += [f"Next is question {missing[0]}:", *quoted(question.text, _BRIEF), how(question)]
    return clip("\n".join(lines), _NOTED)


def refusal(exc: ReplyRejected) -> str:
    """Return what a person is told whose reply the reply handler did not take."""
    return in_line(text.refusal(exc), _REFUSAL)


def _top(questions: tuple[Question, ...], card: Card) -> Iterator[str]:
    urgent = "🔴 Urgent: " if card.urgency is Urgency.HIGH else ""
    # The group first, and whole: no name that an agent gives itself can pass for another group.
    agent = f" · {in_line(card.agent, _NAME)}" if card.agent.strip() else ""
    yield f"{urgent}{card.group}{agent} asks · #{card.short_id}"
    if card.repeated:
        yield REPEATED
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
        yield from _told(question, question.text, detail.text)
        yield from _options(question, card, detail)


def _options(question: Question, card: Card, detail: _Detail) -> Iterator[str]:
    if question.options and not detail.label:
        yield f"Options 1–{len(question.options)} do not fit here: pynchy show {card.short_id}"
        return
    for number, option in enumerate(question.options, 1):
        name = option.value if question.needs_word else number
        yield f"{name}. {in_line(option.label, detail.label)}"
        if option.description.strip() and detail.description:
            yield from _told(question, option.description, detail.description)
        if option.preview.strip() and detail.preview:
            yield from quoted(option.preview, detail.preview)


def _told(question: Question, said: str, most: int) -> Iterable[str]:
    return _in_sight(said, most) if question.needs_word else quoted(said, most)


def _where(card: Card) -> str:
    return f"Shortened to fit. The whole: pynchy show {card.short_id}"


def _bottom(questions: tuple[Question, ...], card: Card) -> Iterator[str]:
    yield f"{_how(questions, card)} #{card.short_id}"
    if questions[0].needs_word:
        yield _deadline(questions, card)
        yield from _link(card)
        return
    yield (
        f"If it could be unclear, quote this message or begin with #{card.short_id}. "
        "“cancel” declines."
    )
    yield _deadline(questions, card)
    yield from _link(card)


def _link(card: Card) -> Iterator[str]:
    if card.link and len(card.link) <= _MAX_LINK_LENGTH:
        yield card.link


def _words_and_id(question: Question, card: Card) -> str:
    ways = " or ".join(f"“{option.value} {card.short_id}”" for option in question.options)
    note = "; a note can follow" if question.takes_words else ""
    return f"Reply {ways}{note}."


def _how(questions: tuple[Question, ...], card: Card) -> str:
    if len(questions) == 1 and questions[0].needs_word:
        return _words_and_id(questions[0], card)
    if len(questions) == 1:
        return how(questions[0])
    example = ", ".join(f"{n}: {_example(question)}" for n, question in enumerate(questions, 1))
    return (
        f"Reply to all at once, such as “{example}” or a line for each; or to one after another, "
        f"beginning with question 1.{_own_words(questions)}"
    )


def _own_words(questions: tuple[Question, ...]) -> str:
    """Say which of several questions take own words."""
    taking = [n for n, question in enumerate(questions, 1) if question.takes_words_alone]
    if len(taking) == len(questions):
        return " Your own words are fine."
    return f" Your own words are fine for {', '.join(map(str, taking))} only." if taking else ""


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
