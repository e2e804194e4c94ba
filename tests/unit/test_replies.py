"""What a person typed, and what it means."""

import pytest

from pynchy.bridge import replies
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
