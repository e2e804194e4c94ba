"""A question as a popup: what it says, its buttons, and which answer a button is. Pure.

Whatever an agent wrote is one bounded text in which hidden characters are named. A choice that
must be confirmed first has no button.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pynchy.events import Announcement
from pynchy.model import Card, GroupName, Option, Question, RequestId, Urgency
from pynchy.unicode_safety import clip, name_all

OPEN = "open"
# What D-Bus calls a click on the body, and the action that has a text field.
BODY = "default"
REPLY = "inline-reply"
_CHOICE = "choice-"

USUAL_BUTTONS = 3
_TWO = 2
# Longer than any name of a group.
_MAX_TITLE = 120
# Of a text so much is looked at: what is longer is not shown whole anyway.
_LOOKED_AT = 2_000
_MAX_LABEL = 40
_MAX_PART = 80
_MAX_LINE = 300
# What popups of the usual desktops show without cutting it.
_MAX_LINES = 6
_MAX_TEXT = 240

PopupKey = tuple[GroupName, RequestId]


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a notification service can do."""

    actions: bool = True
    most_buttons: int = USUAL_BUTTONS
    text_field: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """An action of a popup; `key` comes back when it is pressed."""

    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Popup:
    """What a notification service shows: plain text, which a backend escapes where it must.

    `stays`: until it is closed. `text_field` is the label of what sends the text; without it
    there is no field. `opens`: a click on the body leads somewhere.
    """

    title: str
    body: str
    buttons: tuple[Button, ...] = ()
    urgency: Urgency = Urgency.NORMAL
    stays: bool = False
    text_field: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class PopupQuestion:
    """A question that a popup shows."""

    request_id: RequestId
    questions: tuple[Question, ...]
    card: Card
    chat: str = ""

    @property
    def key(self) -> PopupKey:
        """What tells this question from all others."""
        return (self.card.group, self.request_id)


def popup_of(
    asked: PopupQuestion, abilities: Abilities, *, told: str = "", again: bool = False
) -> Popup:
    """Return the popup of an open question.

    `told` is what the person must know first, such as why a reply was not taken. `again`: it was
    shown before, and nobody has answered.
    """
    high = asked.card.urgency is Urgency.HIGH
    return Popup(
        title=_title(asked.card, again=again),
        body="\n".join([*_told(told), *_lines(asked, abilities)]),
        buttons=_buttons(asked, abilities),
        urgency=asked.card.urgency,
        stays=high,
        text_field="Reply" if abilities.text_field and _takes_words(asked.questions) else "",
        opens=abilities.actions,
    )


def hint_of(asked: PopupQuestion) -> Popup:
    """Return what a service without buttons shows: the question, and where to answer it."""
    where = asked.card.link or f"pynchy show {asked.card.short_id}"
    popup = popup_of(asked, Abilities(actions=False))
    return Popup(popup.title, f"{popup.body}\nAnswer it elsewhere: {where}", urgency=popup.urgency)


def notice_of(asked: PopupQuestion, told: str) -> Popup:
    """Return what is said to a person when nothing can be answered any more."""
    return Popup(_title(asked.card), "\n".join([*_told(told), f"#{asked.card.short_id}"]))


def announcement_of(told: Announcement) -> Popup:
    """Return the popup of what wants no answer: there is nothing to press, and nothing urgent."""
    lines = [_one_line(told.title, _MAX_LINE), _brief(told.text) if told.text.strip() else ""]
    body = "\n".join(line for line in lines if line)
    urgency = Urgency.LOW if told.urgency is Urgency.LOW else Urgency.NORMAL
    return Popup(_said_by(told.group, told.agent, told.task), body, urgency=urgency)


def summary_of(waiting: Counter[GroupName], abilities: Abilities) -> Popup:
    """Return the one popup of questions that have none of their own, for want of room."""
    of_groups = [f"{group}: {count}" for group, count in waiting.most_common(_MAX_LINES)]
    count = waiting.total()
    title = "1 more question waits" if count == 1 else f"{count} more questions wait"
    buttons = (Button(OPEN, "Open"),) if abilities.actions else ()
    return Popup(title, "\n".join(of_groups), buttons, opens=abilities.actions)


def implied_choice(asked: PopupQuestion, abilities: Abilities) -> str:
    """Return the option that closing the popup stands for; empty where that stands for nothing.

    It is the second of two, where there is one button and closing it is told.
    """
    choices = _choices(asked.questions)
    if not asked.card.hears_dismissal or abilities.most_buttons != 1 or len(choices) != _TWO:
        return ""
    return choices[1].label


def choice_of(asked: PopupQuestion, key: str) -> str | None:
    """Return the label of the option whose button this is; None if it is no option's."""
    number = key.removeprefix(_CHOICE)
    offered = _choices(asked.questions)
    if key == number or not number.isdecimal() or int(number) >= len(offered):
        return None
    return offered[int(number)].label


def shows_whole(questions: Sequence[Question], title: str = "") -> bool:
    """True if a person can read all of the questions on a popup, also below their title."""
    options = [option for question in questions for option in question.options]
    return (
        all(_fits(question.text) for question in questions)
        and len(questions) == 1
        and len(_one_line(title, _MAX_LINE)) <= _MAX_PART
        and not any(option.preview or option.confirm for option in options)
        and all(len(_one_line(option.label, _MAX_LINE)) <= _MAX_LABEL for option in options)
        and all(len(_one_line(option.description, _MAX_LINE)) <= _MAX_PART for option in options)
    )


def _title(card: Card, *, again: bool = False) -> str:
    said = _said_by(card.group, card.agent, card.task)
    return clip(f"Still waiting: {said}" if again else said, _MAX_TITLE)


def _said_by(group: GroupName, *own_words: str) -> str:
    """Return who asks. The group is first and whole: no agent's words can pass for another's."""
    said = [_one_line(part, _MAX_PART) for part in own_words if part]
    return clip(" · ".join([group, *said]), _MAX_TITLE)


def _told(told: str) -> list[str]:
    return [_one_line(told, _MAX_LINE)] if told else []


def _lines(asked: PopupQuestion, abilities: Abilities) -> list[str]:
    card = asked.card
    lines = [_one_line(card.title, _MAX_LINE)] if card.title else []
    numbered = len(asked.questions) > 1
    for number, question in enumerate(asked.questions, 1):
        text = _brief(question.text)
        lines.append(f"{number}. {text}" if numbered else text)
        lines += _option_lines(question, plainly=numbered or not abilities.actions)
    if implied := implied_choice(asked, abilities):
        lines.append(_one_line(f"Or close it: {implied}", _MAX_LINE))
    again = "May be a repeat: one answer closes every copy. " if card.repeated else ""
    return [*lines, f"{again}#{card.short_id}"]


def _option_lines(question: Question, *, plainly: bool) -> list[str]:
    """Say what the buttons do not: descriptions, long labels, and what has no button."""
    said = [(option, _one_line(option.description, _MAX_PART)) for option in question.options]
    needed = (
        plainly or question.multi_select or any(_needs_line(option) for option in question.options)
    )
    if not needed:
        return []
    return [
        _one_line(f"• {option.label}{f': {about}' if about else ''}", _MAX_LINE)
        for option, about in said
    ]


def _needs_line(option: Option) -> bool:
    return bool(option.description) or len(option.label) > _MAX_LABEL


def _buttons(asked: PopupQuestion, abilities: Abilities) -> tuple[Button, ...]:
    """Return a button for each option where all have room, else one that leads to the page."""
    if not abilities.actions:
        return ()
    leads = Button(OPEN, "Open")
    choices = _choices(asked.questions)
    if implied_choice(asked, abilities):
        choices = choices[:1]
    labels = [_one_line(option.label, _MAX_LABEL) for option in choices]
    if not choices or len(choices) > abilities.most_buttons or len(set(labels)) < len(labels):
        return (leads,)
    buttons = tuple(Button(f"{_CHOICE}{at}", label) for at, label in enumerate(labels))
    needs_page = len(choices) < len(asked.questions[0].options) or not shows_whole(
        asked.questions, asked.card.title
    )
    has_room = len(buttons) < abilities.most_buttons
    return (*buttons, leads) if needs_page and has_room else buttons


def _choices(questions: Sequence[Question]) -> tuple[Option, ...]:
    """Return the options that one click can choose."""
    if len(questions) != 1 or questions[0].multi_select:
        return ()
    return tuple(o for o in questions[0].options if not o.confirm and not o.narrows)


def _takes_words(questions: Sequence[Question]) -> bool:
    return len(questions) == 1 and questions[0].takes_words_alone


def _written(text: str) -> list[str]:
    return [line for line in name_all(text).split("\n") if line.strip()]


def _fits(text: str) -> bool:
    lines = _written(text) if len(text) <= _LOOKED_AT else ()
    return 0 < len(lines) <= _MAX_LINES and sum(map(len, lines)) <= _MAX_TEXT


def _brief(text: str) -> str:
    lines = _written(clip(text, _LOOKED_AT))
    kept = clip("\n".join(lines[:_MAX_LINES]), _MAX_TEXT + _MAX_LINES)
    return kept if len(lines) <= _MAX_LINES or kept.endswith("…") else f"{kept} …"


def _one_line(text: str, most: int) -> str:
    return clip(" ".join(name_all(clip(text, _LOOKED_AT)).split()), most)
