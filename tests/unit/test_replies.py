"""What a person typed, and what it means."""

from dataclasses import replace

import pytest

from pynchy.bridge import replies
from pynchy.channels.numbered.choosing import Choices, Picked, Unclear, Written, choose
from pynchy.channels.slack.replies import _typed
from pynchy.errors import InvalidReply
from pynchy.model import Answer, Option, Question

CHOICE = Question("Which?", options=(Option("Red"), Option("Blue"), Option("42")))
MULTI = Question(
    "Which?", options=(Option("Red"), Option("Blue"), Option("Green")), multi_select=True
)
TEXT = Question("Why?")


@pytest.mark.parametrize(
    ("question", "values", "answer"),
    [
        (CHOICE, ("1",), Answer(("Red",))),
        (CHOICE, ("Blue",), Answer(("Blue",))),
        (CHOICE, (" blue ",), Answer(("Blue",))),
        (CHOICE, ("42",), Answer(("42",))),
        (CHOICE, ("purple",), Answer(text="purple")),
        (CHOICE, ("none", "of", "the", "2"), Answer(text="none of the 2")),
        (MULTI, ("1", "3"), Answer(("Red", "Green"))),
        (MULTI, ("1", "1"), Answer(("Red",))),
        (MULTI, ("green", "and a bit of grey"), Answer(("Green",), "and a bit of grey")),
        (MULTI, ("something else",), Answer(text="something else")),
        (MULTI, ("1, 3",), Answer(("Red", "Green"))),
        (MULTI, ("red;green", "2"), Answer(("Red", "Green", "Blue"))),
        (MULTI, ("1, and grey",), Answer(text="1, and grey")),
        (TEXT, ("because", "of", "7"), Answer(text="because of 7")),
    ],
)
def test_values_become_an_answer(
    question: Question, values: tuple[str, ...], answer: Answer
) -> None:
    assert replies.match(question, values) == answer


SWAPPED = Question("How many?", options=(Option("2"), Option("1"), Option("8")))
SWAPPED_MULTI = replace(SWAPPED, multi_select=True)
CLASH = "the number of one option and the label of another"


@pytest.mark.parametrize(
    ("question", "values", "expected"),
    [
        # The number of one option and the label of another: nothing is guessed.
        (SWAPPED, ("2",), CLASH),
        (SWAPPED, ("1",), CLASH),
        (SWAPPED, ("02",), "1"),
        (SWAPPED, ("3",), "8"),
        (SWAPPED, ("8",), "8"),
        (SWAPPED, ("4",), "no option 4"),
        (SWAPPED, ("1. 2",), "2"),
        (SWAPPED, ("2) 1",), "1"),
        (SWAPPED, ("2. 2",), "“2” is not number 2"),
        (SWAPPED, ("1.", "2"), "2"),
        (SWAPPED_MULTI, ("2, 3",), CLASH),
        (SWAPPED_MULTI, ("1. 2, 3",), "2+8"),
        (SWAPPED_MULTI, ("1. 2", "2. 1"), "2+1"),
        # A label at its own number is just that.
        (Question("?", options=(Option("1"), Option("2"))), ("2",), "2"),
        (CHOICE, ("2. Blue",), "Blue"),
        (CHOICE, ("1. Blue",), "“Blue” is not number 1"),
        (CHOICE, ("wait", "until", "99"), "wait until 99"),
    ],
)
def test_a_number_means_the_position_that_is_shown(
    question: Question, values: tuple[str, ...], expected: str
) -> None:
    for surface in (at_the_desk, in_slack_field, in_numbered_chat):
        if surface is at_the_desk or len(values) == 1:
            assert expected in surface(question, values), surface.__name__


def at_the_desk(question: Question, values: tuple[str, ...]) -> str:
    """What `pynchy answer`, HTTP and a reply in a Slack thread make of it."""
    try:
        return said(replies.match(question, values))
    except InvalidReply as exc:
        return str(exc)


def in_slack_field(question: Question, values: tuple[str, ...]) -> str:
    """What the text field of a Slack card makes of it."""
    try:
        return said(_typed(question, Answer(text=values[0])))
    except InvalidReply as exc:
        return str(exc)


def in_numbered_chat(question: Question, values: tuple[str, ...]) -> str:
    """What a numbered chat makes of it."""
    match choose(Choices.of(question), values[0]):
        case Picked(labels):
            return said(Answer(labels))
        case Unclear(why):
            return why
        case Written(text):
            return text


def said(answer: Answer) -> str:
    return "+".join(answer.selected) or answer.text or ""


def test_a_default_is_a_label_even_if_it_is_another_options_number() -> None:
    asked = replace(SWAPPED, default=("2",))

    assert replies.defaults((asked,)) == (Answer(("2",)),)


@pytest.mark.parametrize(
    ("question", "values", "words"),
    [
        (CHOICE, ("9",), "no option 9: choose 1 to 3"),
        (CHOICE, ("0",), "no option 0"),
        (CHOICE, ("1", "2"), "only one of these can be chosen: Red, Blue"),
        (CHOICE, (), "an answer is missing"),
        (CHOICE, ("  ",), "an answer is missing"),
        (MULTI, ("1", "7"), "no option 7"),
        (MULTI, ("1,7",), "no option 7"),
        (TEXT, ("x" * 20_001,), "at most 20000 characters"),
    ],
)
def test_what_fits_nothing_is_refused_with_what_would(
    question: Question, values: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InvalidReply, match=words):
        replies.match(question, values)


@pytest.mark.parametrize(
    "answer", [Answer(("Purple",)), Answer(("Red", "Blue")), Answer(), Answer(text="  ")]
)
def test_a_ticked_answer_is_checked_against_the_question(answer: Answer) -> None:
    with pytest.raises(InvalidReply):
        replies.check(CHOICE, answer)


def test_a_written_number_beside_ticks_stays_text() -> None:
    assert replies.check(CHOICE, Answer(text="2")) == Answer(text="2")


def test_several_questions_take_one_value_each() -> None:
    spread = replies.spread((CHOICE, MULTI, TEXT), ("1", "1, 3", "a, b"))

    assert spread == (("1",), ("1, 3",), ("a, b",))


def test_too_few_values_for_several_questions_are_refused() -> None:
    with pytest.raises(InvalidReply, match="2 questions were asked and 1 values given"):
        replies.spread((CHOICE, TEXT), ("1",))
