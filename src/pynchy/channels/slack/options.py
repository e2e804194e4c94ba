"""The options of a question: buttons, boxes to tick, or a numbered list to answer in words.

However many and however long they are, all of them are shown and can be chosen.
"""

from __future__ import annotations

from enum import IntEnum

from pynchy.channels.slack import blocks, ids, limits
from pynchy.channels.slack.limits import Block
from pynchy.channels.slack.pages import Piece, Role, fits
from pynchy.channels.slack.text import chunks, clean, one_line
from pynchy.channels.text import length
from pynchy.model import Option, Question, RequestId

_CLIPPED_DESCRIPTION = 140
_CLIPPED_LABEL = 100


class Detail(IntEnum):
    """How much of each option is on the card; what is not, is in its thread."""

    WHOLE = 0
    CLIPPED = 1
    LABELS = 2


def in_words(number: int, option: Option, detail: Detail = Detail.WHOLE) -> str:
    """Return the option with its number, which is what a person may type."""
    match detail:
        case Detail.WHOLE:
            label, described = option.label, option.description
        case Detail.CLIPPED:
            described = one_line(option.description, _CLIPPED_DESCRIPTION)
            label, described = option.label, described if option.description.strip() else ""
        case Detail.LABELS:
            label, described = one_line(option.label, _CLIPPED_LABEL), ""
    return f"{number + 1}. {label}" + (f"\n{described}" if described.strip() else "")


def buttons(request_id: RequestId, number: int, question: Question, detail: Detail) -> list[Piece]:
    """Return a section with a button for each option: one click answers."""
    return [
        Piece(Role.CONTROL, tuple(_with_button(request_id, number, index, option, detail)))
        for index, option in enumerate(question.options)
    ]


def _with_button(
    request_id: RequestId, number: int, index: int, option: Option, detail: Detail
) -> list[Block]:
    first, *more = chunks(in_words(index, option, detail), limits.SECTION)
    name = f"q{number}:o{index}"
    button = blocks.button(option.label, f"{ids.PICK}:{number}:{index}", f"{number}:{index}")
    chosen = blocks.section(first) | {
        "block_id": ids.block_id(request_id, name),
        "accessory": button,
    }
    return [chosen, *map(blocks.section, more)]


def listed(question: Question, detail: Detail = Detail.WHOLE) -> list[Piece]:
    """Return the options as a numbered list."""
    whole = "\n".join(in_words(i, option, detail) for i, option in enumerate(question.options))
    return [Piece(Role.CONTROL, (blocks.section(part),)) for part in chunks(whole, limits.SECTION)]


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
    told = [_box(question, index) for index in range(len(question.options))]
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


def _box(question: Question, index: int) -> Block:
    option = question.options[index]
    if is_short(question):
        return blocks.option(index, option.label, option.description.strip())
    return blocks.option(index, f"{index + 1}. {option.label}")


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
        "action_id": f"{ids.CHOICE}:{number}:{group}",
        "options": options,
    }
    if kind == "static_select":
        element["placeholder"] = blocks.plain("Choose one", limits.PLACEHOLDER)
    return blocks.choice(request_id, f"q{number}:c{group}", label, element)
