"""Turn a question into the messages that show it: a pure function that never fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from pynchy.channels.slack import blocks, limits
from pynchy.channels.slack.blocks import chunks, clean, joined, one_line
from pynchy.channels.slack.limits import Block, Page, Piece, Role, fits, pack
from pynchy.channels.text import REPEATED, length
from pynchy.model import Card, Option, Question, RequestId, Urgency

_CLIPPED_DESCRIPTION = 140
_CLIPPED_LABEL = 100
_MARK = "│ "
_LINE = limits.SECTION - len(_MARK)

_MAX_PAGES = 3
_MAX_DETAILS = 20
_BRIEF = 200
# How many paragraphs a card has of what is told whole in its thread.
_BEGINNING = 2
_SHORTENED = "Shortened here. The whole is in the thread."


class Detail(IntEnum):
    """How much of each option is on the card; what is not, is in its thread."""

    WHOLE = 0
    CLIPPED = 1
    LABELS = 2


def in_words(
    index: int, option: Option, detail: Detail = Detail.WHOLE, *, numbered: bool = True
) -> list[str]:
    """Return the lines of the option, the first with its number, if a person may type that.

    All others have a mark, so that none can pass for another option.
    """
    label, described = " ⏎ ".join(clean(option.label).split("\n")), option.description
    match detail:
        case Detail.CLIPPED if described.strip():
            described = one_line(described, _CLIPPED_DESCRIPTION)
        case Detail.LABELS:
            label, described = one_line(label, _CLIPPED_LABEL), ""
    first, *more = chunks(f"{index + 1}. {label}" if numbered else label, _LINE)
    lines = clean(described).split("\n") if described.strip() else []
    more += [part for line in lines for part in (chunks(line, _LINE) if line.strip() else [""])]
    return [first, *(f"{_MARK}{line}".rstrip() for line in more)]


def buttons(request_id: RequestId, number: int, question: Question, detail: Detail) -> list[Piece]:
    """Return a section with a button for each option: one click answers."""
    return [
        Piece(Role.CONTROL, tuple(_with_button(request_id, number, index, question, detail)))
        for index in range(len(question.options))
    ]


def _with_button(
    request_id: RequestId, number: int, index: int, question: Question, detail: Detail
) -> list[Block]:
    option = question.options[index]
    told = in_words(index, option, detail, numbered=not question.needs_word)
    first, *more = joined(told)
    name = f"q{number}:o{index}"
    button = blocks.button(option.label, f"{blocks.PICK}:{number}:{index}", f"{number}:{index}")
    if option.confirm:
        button["confirm"] = blocks.confirm(option.label, option.confirm)
    chosen = blocks.section(first) | {
        "block_id": blocks.make_block_id(request_id, name),
        "accessory": button,
    }
    return [chosen, *map(blocks.section, more)]


def listed(question: Question, detail: Detail = Detail.WHOLE) -> list[Piece]:
    """Return the options as a numbered list."""
    told = enumerate(question.options)
    lines = [line for index, option in told for line in in_words(index, option, detail)]
    return [Piece(Role.CONTROL, (blocks.section(part),)) for part in joined(lines)]


def is_short(question: Question) -> bool:
    """True if every option can be told whole beside its box."""
    return all(
        "\n" not in clean(text) and length(clean(text)) <= limits.OPTION
        for option in question.options
        for text in (option.label, option.description)
    )


def can_be_clipped(question: Question) -> bool:
    """True if some option is too long to be told whole by its label alone."""
    told = enumerate(question.options)
    return any(in_words(i, option) != in_words(i, option, Detail.LABELS) for i, option in told)


def boxes(request_id: RequestId, number: int, question: Question) -> list[Block]:
    """Return what the options are ticked in; ten boxes are the most that one block can have."""
    told = _boxes(question)
    if not question.multi_select:
        kind = "radio_buttons" if len(told) <= limits.CHOICES else "static_select"
        return [_choice(request_id, (number, 0), kind, "Choose one", told)] if told else []
    groups = [told[i : i + limits.CHOICES] for i in range(0, len(told), limits.CHOICES)]
    return [
        _choice(request_id, (number, i), "checkboxes", _any_of(i, len(told)), group)
        for i, group in enumerate(groups)
    ]


def boxes_fit(request_id: RequestId, number: int, question: Question) -> bool:
    """True if all boxes can be in one message, which they must be to be submitted together."""
    return fits([Piece(Role.CONTROL, tuple(boxes(request_id, number, question)))])


def _boxes(question: Question) -> list[Block]:
    told = enumerate(question.options)
    if is_short(question):
        return [blocks.option(i, option.label, option.description.strip()) for i, option in told]
    return [blocks.option(i, f"{i + 1}. {option.label}") for i, option in told]


def _any_of(group: int, total: int) -> str:
    if total <= limits.CHOICES:
        return "Choose any"
    first = group * limits.CHOICES
    return f"Choose any ({first + 1} to {min(first + limits.CHOICES, total)} of {total})"


def _choice(
    request_id: RequestId, location: tuple[int, int], kind: str, label: str, options: list[Block]
) -> Block:
    number, group = location
    element: Block = {
        "type": kind,
        "action_id": f"{blocks.CHOICE}:{number}:{group}",
        "options": options,
    }
    if kind == "static_select":
        element["placeholder"] = blocks.plain("Choose one", limits.PLACEHOLDER)
    return blocks.choice(request_id, f"q{number}:c{group}", label, element)


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """What is posted: blocks, and the text of the notification."""

    text: str
    blocks: list[Block]
    question: int | None = None


@dataclass(frozen=True, slots=True)
class Rendering:
    """A card: its messages, and what is told at more length in its thread."""

    messages: tuple[SlackMessage, ...]
    details: tuple[SlackMessage, ...] = ()


def render(request_id: RequestId, questions: tuple[Question, ...], card: Card) -> Rendering:
    """Return the messages that ask the questions, each within Slack's limits."""
    text = fallback(questions, card)
    repeat = [blocks.own_words(REPEATED)] if card.repeated else []
    messages = [
        SlackMessage(text, [*repeat, *_continued(number, card), *page.blocks()], page.question)
        for number, page in enumerate(layout(request_id, questions, card))
    ]
    return Rendering(tuple(messages), tuple(_details(request_id, questions, card)))


def layout(request_id: RequestId, questions: tuple[Question, ...], card: Card) -> list[Page]:
    """Return the card's pages. They are the same whatever has become of the question."""
    most = _BEGINNING if _is_in_thread(request_id, questions, card) else None
    return _pages(request_id, questions, card, most)


def _is_in_thread(request_id: RequestId, questions: tuple[Question, ...], card: Card) -> bool:
    """True if what somebody may allow does not fit on a card: it goes into the thread, whole."""
    needs_word = len(questions) == 1 and questions[0].needs_word
    return needs_word and len(_pages(request_id, questions, card)) > 1


def _pages(
    request_id: RequestId, questions: tuple[Question, ...], card: Card, most: int | None = None
) -> list[Page]:
    """Return the pages; `most` is how many paragraphs of a question are shown, if not all."""
    top, bottom = _frame(questions, card), _footer(request_id, questions, card)
    if len(questions) > 1:
        together = [top, *_batch(request_id, questions, card)]
        if fits(together):
            return [Page(tuple(together))]
    pages: list[Page] = []
    for number, question in enumerate(questions):
        pieces = [] if number else [top]
        pieces += _heading(number, questions, most)
        detail = _detail(request_id, number, question)
        pieces += _controls(request_id, number, question, detail)
        pieces = [*map(blocks.unfolded, pieces)] if question.needs_word else pieces
        pieces += [bottom] if number == len(questions) - 1 else []
        pages += pack(pieces, None if len(questions) == 1 else number + 1)
    return pages


def is_whole(questions: tuple[Question, ...], card: Card) -> bool:
    """True if one message tells all that is asked, and each option whole, its confirmation too."""
    confirms = [clean(option.confirm) for question in questions for option in question.options]
    is_long = sum(len(question.text) for question in questions) > limits.BUDGET
    if is_long or any(length(confirm) > limits.CONFIRM for confirm in confirms):
        return False
    id_ = RequestId("0" * 32)
    details = {_detail(id_, number, question) for number, question in enumerate(questions)}
    return details == {Detail.WHOLE} and len(_pages(id_, questions, card)) == 1


def fallback(questions: tuple[Question, ...], card: Card) -> str:
    """Return what a notification says."""
    urgent = "Urgent: " if card.urgency is Urgency.HIGH else ""
    asked = " / ".join(one_line(question.text, _BRIEF) for question in questions)
    return blocks.fallback(f"{urgent}{_who(card)} asks ({card.short_id}): {asked}")


def _who(card: Card) -> str:
    """Return who asks. The group is first and whole: no agent's name can pass for another's."""
    agent = f" · {one_line(card.agent, _BRIEF)}" if card.agent.strip() else ""
    return f"{card.group}{agent}"


def frame(questions: tuple[Question, ...], card: Card) -> list[Block]:
    """Return the top of a card: what it is about, who asks, and its short id."""
    urgent = "🔴 Urgent: " if card.urgency is Urgency.HIGH else ""
    title = card.title or questions[0].header or f"{_who(card)} asks"
    told = [("Group", card.group), ("Agent", card.agent), ("Task", card.task)]
    who = [f"{name}: {one_line(value, _BRIEF)}" for name, value in told if value.strip()]
    return [blocks.header(f"{urgent}{title}"), blocks.context(*who, f"Id: {card.short_id}")]


def _frame(questions: tuple[Question, ...], card: Card) -> Piece:
    return Piece(Role.FRAME, (*frame(questions, card), *_deadlines(questions, card)))


def _deadlines(questions: tuple[Question, ...], card: Card) -> Iterable[Block]:
    hurry = " · no hurry" if card.urgency is Urgency.LOW else ""
    if card.defaults_at is None:
        yield blocks.own_words(f"Open until {blocks.moment(card.expires_at)}{hurry}")
        return
    taken = "; ".join(", ".join(question.default) for question in questions)
    yield blocks.own_words(
        f"Without an answer by {blocks.moment(card.defaults_at)} the agent takes its own default:"
    )
    yield blocks.context(one_line(taken, 2 * _BRIEF))


def _continued(page: int, card: Card) -> list[Block]:
    return [] if page == 0 else [blocks.context(f"Id: {card.short_id}, continued")]


def _heading(number: int, questions: tuple[Question, ...], most: int | None = None) -> list[Piece]:
    """Return the question's text with its number if it is not the only one."""
    question = questions[number]
    several = len(questions) > 1
    header = one_line(question.header, _BRIEF) if question.header.strip() else ""
    location = f"Question {number + 1} of {len(questions)}" if several else ""
    line = " · ".join(filter(None, [location, header]))
    head = [blocks.context(line)] if line else []
    first, *more = blocks.paragraphs(question.text)[:most]
    more += [blocks.context(_SHORTENED)] if most is not None else []
    return [Piece(Role.ASKED, (*head, first)), *(Piece(Role.ASKED, (block,)) for block in more)]


def _detail(request_id: RequestId, number: int, question: Question) -> Detail:
    """Return how much of each option the card shows: as much as is bearable."""
    if not can_be_clipped(question):
        return Detail.WHOLE
    asked = [Piece(Role.ASKED, (block,)) for block in blocks.paragraphs(question.text)]
    for detail in Detail:
        controls = _controls(request_id, number, question, detail)
        if len(pack([*asked, *controls])) <= _MAX_PAGES + _long(question):
            return detail
    return Detail.LABELS


def _long(question: Question) -> int:
    """Return how many pages the text of the question takes by itself."""
    return len(question.text) // limits.BUDGET


def _controls(
    request_id: RequestId, number: int, question: Question, detail: Detail
) -> list[Piece]:
    if question.options and not question.multi_select:
        clicks = buttons(request_id, number, question, detail)
        field = _field(request_id, number, question, "Your own words, then enter", on_enter=True)
        return [*clicks, *(Piece(Role.CONTROL, (block,)) for block in field)]
    if not question.options:
        return [_words(request_id, number, "Your answer", "Type it, then enter")]
    if boxes_fit(request_id, number, question):
        told = [] if is_short(question) else listed(question, detail)
        return [*told, _ticks(request_id, number, question)]
    words = ", or your own words" if question.takes_words_alone else ""
    hint = f"Numbers, such as 1, 3, 12{words}; then enter"
    answer = _words(request_id, number, "Your choice, by number", hint)
    return [*listed(question, detail), answer]


def _words(request_id: RequestId, number: int, label: str, hint: str) -> Piece:
    made = blocks.text_input(request_id, number, label, hint, on_enter=True)
    return Piece(Role.CONTROL, (made,))


def _field(
    request_id: RequestId, number: int, question: Question, hint: str, *, on_enter: bool
) -> list[Block]:
    """Return the field for words beside the options; none where only the options count."""
    if not question.takes_words:
        return []
    if question.takes_words_alone:
        label = "Other" if question.options else "Your answer"
        return [blocks.text_input(request_id, number, label, hint, on_enter=on_enter)]
    # A note alone is no answer, so the enter key does not send it.
    hint = "Goes along with your choice"
    return [blocks.text_input(request_id, number, "A note", hint, on_enter=False)]


def _ticks(request_id: RequestId, number: int, question: Question) -> Piece:
    """Return boxes, a line for words, if any, and Submit: they must be in the same message."""
    return Piece(
        Role.CONTROL,
        (
            *boxes(request_id, number, question),
            *_field(request_id, number, question, "Your own words", on_enter=True),
            blocks.actions(request_id, f"q{number}:submit", _submit(str(number))),
        ),
    )


def _batch(request_id: RequestId, questions: tuple[Question, ...], card: Card) -> Iterable[Piece]:
    """Yield all questions with one Submit."""
    for number, question in enumerate(questions):
        yield Piece(Role.FRAME, (blocks.divider(),))
        yield from _heading(number, questions)
        if not is_short(question):
            yield from listed(question)
        words = _field(request_id, number, question, "Your own words", on_enter=False)
        yield Piece(Role.CONTROL, (*boxes(request_id, number, question), *words))
    yield _footer(request_id, questions, card, _submit("all"))


def _submit(value: str) -> Block:
    return blocks.button("Submit", blocks.SUBMIT, value, style="primary")


def _footer(
    request_id: RequestId, questions: tuple[Question, ...], card: Card, *first: Block
) -> Piece:
    link = [blocks.link_button(card.link)] if card.link and len(card.link) <= limits.URL else []
    # Who denies has declined: one way to say no is enough.
    if not questions[0].needs_word:
        first = (*first, blocks.button("Decline", blocks.DECLINE, "decline"))
    elements = [*first, *link]
    row = [blocks.actions(request_id, "end", *elements)] if elements else []
    if not any(question.takes_words for question in questions):
        return Piece(Role.CONTROL, tuple(row))
    words = [f"“{option.value} {card.short_id}”" for option in questions[0].options]
    how = f"; where it has several questions, “{card.short_id}: …”"
    how = f" with {' or '.join(words)}" if questions[0].needs_word else how
    reply = f"You can also reply in the thread{how}."
    return Piece(Role.CONTROL, (*row, blocks.context(reply)))


def _details(
    request_id: RequestId, questions: tuple[Question, ...], card: Card
) -> Iterable[SlackMessage]:
    """Yield what goes into the thread: what the card only begins or names, and previews."""
    is_in_thread = _is_in_thread(request_id, questions, card)
    asked = blocks.paragraphs(questions[0].text) if is_in_thread else []
    pieces = [Piece(Role.ASKED, (block,)) for block in asked] + [
        piece
        for number, question in enumerate(questions)
        for piece in _details_of(request_id, number, question)
    ]
    text = blocks.fallback(f"More about question {card.short_id}")
    pages = pack(pieces)
    for page in pages[:_MAX_DETAILS]:
        yield SlackMessage(text, page.blocks())
    if len(pages) > _MAX_DETAILS:
        rest = f"The rest is too long for Slack: pynchy show {card.short_id}"
        yield SlackMessage(text, [blocks.context(rest)])


def _details_of(request_id: RequestId, number: int, question: Question) -> Iterable[Piece]:
    if _detail(request_id, number, question) is not Detail.WHOLE:
        yield Piece(Role.ASKED, (blocks.context("The options, whole:"),))
        yield from listed(question)
    for index, option in enumerate(question.options):
        if option.preview.strip():
            [named] = in_words(index, option, Detail.LABELS)
            title = f"Preview of {named}"
            first, *more = chunks(option.preview, limits.SECTION)
            yield Piece(Role.ASKED, (blocks.section(title), blocks.preformatted(first)))
            yield from (Piece(Role.ASKED, (blocks.preformatted(part),)) for part in more)
