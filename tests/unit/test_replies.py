"""What a person typed, and what it means."""

import re
from dataclasses import replace
from itertools import permutations, product

import pytest

from pynchy.bridge import matching
from pynchy.channels.numbered.choosing import LabelIndex, Picked, Unclear, Written, choose
from pynchy.channels.slack.replies import _typed
from pynchy.errors import InvalidReply
from pynchy.model import AcceptsText, Answer, Option, Question

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
    assert matching.match(question, values) == answer


def ask(*labels: str, multi: bool = False) -> Question:
    return Question("Which?", options=tuple(map(Option, labels)), multi_select=multi)


SWAPPED = ask("2", "1", "8")
SWAPPED_MULTI = ask("2", "1", "8", multi=True)


@pytest.mark.parametrize(
    ("question", "typed", "expected"),
    [
        # The number of one option and the label of another: nothing is guessed.
        (SWAPPED, "2", "refused: that could mean several options"),
        (SWAPPED, "1", "refused: that could mean several options"),
        (SWAPPED, "2.", "refused: that could mean several options"),
        (SWAPPED, "3", "chose 8"),
        (SWAPPED, "8", "chose 8"),
        (SWAPPED, "4", "refused: there is no option 4"),
        (SWAPPED, "1. 2", "chose 2"),
        (SWAPPED, "2) 1", "chose 1"),
        (SWAPPED, "2. 2", "refused: “2” is not number 2"),
        (SWAPPED_MULTI, "2, 3", "refused: that could mean several options"),
        (SWAPPED_MULTI, "1. 2, 3", "chose 2+8"),
        (SWAPPED_MULTI, "1. 2, 2. 1", "chose 2+1"),
        (SWAPPED_MULTI, "1. 2, 3. 8", "chose 2+8"),
        (ask("\uff12", "x"), "2", "refused: that could mean several options"),
        (ask("2️⃣", "x"), "2", "refused: that could mean several options"),
        (ask("(2)", "x"), "2", "refused: that could mean several options"),
        (ask("a", "b", "1, 2", multi=True), "1, 2", "refused: that could mean several options"),
        # The label of one option and the line of another.
        (ask("2", "1. 2"), "1. 2", "refused: that could mean several options"),
        (ask("2. Blue", "Blue"), "2. Blue", "refused: that could mean several options"),
        # A label at its own number is just that.
        (ask("1", "2"), "2", "chose 2"),
        (ask("2", "4", "8"), "4", "chose 4"),
        (CHOICE, "2. Blue", "chose Blue"),
        (CHOICE, "1. Blue", "refused: “Blue” is not number 1"),
        # Times and decimals are no lines.
        (ask("15", "30", "45"), "2:30", "wrote 2:30"),
        (ask("15", "30", "45"), "1:30", "wrote 1:30"),
        (ask("1", "2", "5"), "3.5", "wrote 3.5"),
        (ask("1", "2", "5"), "1.5", "wrote 1.5"),
    ],
)
def test_a_number_means_the_position_that_is_shown_on_every_surface(
    question: Question, typed: str, expected: str
) -> None:
    for surface in SURFACES:
        said = surface(question, typed)
        is_refusal = expected.startswith("refused")
        assert said.startswith(expected) if is_refusal else said == expected, surface.__name__


def test_the_number_of_the_question_goes_before_what_a_person_is_told_to_type() -> None:
    with pytest.raises(InvalidReply, match=r"say “2: 1. 2” for number 1, “2: 2. 1” for number 2"):
        matching.match(SWAPPED, ("2",), "2: ")


def test_words_of_which_one_is_a_number_stay_own_words() -> None:
    assert matching.match(CHOICE, ("wait", "until", "99")) == Answer(text="wait until 99")
    assert matching.match(SWAPPED, ("1.", "2")) == Answer(("2",))


LABELS = [
    "1",
    "2",
    "3",
    "1. 2",
    "2. 1",
    "2.",
    "(1)",
    "x",
    "two",
    "1, 2",
    "2 1",
    "1. x",
    "02",
    "\uff11",
]


@pytest.mark.parametrize("kind", ["one", "several"])
def test_what_a_person_is_told_to_type_chooses_that_option(kind: str) -> None:
    for labels, surface in product(permutations(LABELS, 2), SURFACES):
        question = ask(*labels, multi=kind == "several")
        for typed in [*map(str, range(1, len(labels) + 1)), *labels]:
            said = surface(question, typed)
            if typed.isdigit() and typed in {"1", "2"} and said.startswith("chose"):
                assert said == f"chose {labels[int(typed) - 1]}", labels
            for way, place in re.findall(r"“([^”]*)” for number ([0-9]+)", said):
                assert surface(question, way) == f"chose {labels[int(place) - 1]}", (labels, way)


def at_the_desk(question: Question, typed: str) -> str:
    """What `pynchy answer`, HTTP and a reply in a Slack thread make of it."""
    try:
        return told(matching.match(question, (typed,)))
    except InvalidReply as exc:
        return f"refused: {exc}"


def in_a_slack_field(question: Question, typed: str) -> str:
    """What the text field of a Slack card makes of it."""
    try:
        return told(matching.check(question, _typed(question, Answer(text=typed))))
    except InvalidReply as exc:
        return f"refused: {exc}"


def in_a_numbered_chat(question: Question, typed: str) -> str:
    """What a numbered chat makes of it."""
    match choose(LabelIndex.of(question), typed):
        case Picked(labels, _, note):
            return told(Answer(labels, note))
        case Unclear(why):
            return f"refused: {why}"
        case Written(text):
            return told(Answer(text=text))


SURFACES = (at_the_desk, in_a_slack_field, in_a_numbered_chat)


def told(answer: Answer) -> str:
    chosen = [f"chose {'+'.join(answer.selected)}"] if answer.selected else []
    return ", ".join(chosen + ([f"wrote {answer.text}"] if answer.text else []))


YES_NO = ask("Yes", "No")
STAGING = ask("Production", "Staging")
VERSIONS = ask("v1.2.3", "v1.2.4")


@pytest.mark.parametrize(
    ("question", "typed", "expected"),
    [
        # One letter: swapped, changed, put in, left out.
        (YES_NO, "yse", "refused: did you mean “Yes”? Say “1” for number 1"),
        (YES_NO, "YED", "refused: did you mean “Yes”?"),
        (YES_NO, "yess", "refused: did you mean “Yes”?"),
        (YES_NO, "ys", "refused: did you mean “Yes”?"),
        # Labels of two letters are too short to be nearly anything.
        (YES_NO, "on", "wrote on"),
        (YES_NO, "noo", "wrote noo"),
        # Two letters, where the label has eight or more.
        (STAGING, "porductoin", "refused: did you mean “Production”?"),
        (STAGING, "prodction", "refused: did you mean “Production”?"),
        (STAGING, "stagnig", "refused: did you mean “Staging”?"),
        (STAGING, "satgnig", "wrote satgnig"),
        (STAGING, "roductn", "wrote roductn"),
        (VERSIONS, "v1.2.5", "refused: did you mean “v1.2.3” or “v1.2.4”?"),
        # Other words, and more of them, are own words.
        (YES_NO, "yes please", "wrote yes please"),
        (YES_NO, "maybe", "wrote maybe"),
        (STAGING, "staging first", "wrote staging first"),
        (STAGING, "ours", "wrote ours"),
        (ask("Ship it", "Wait"), "shp it", "refused: did you mean “Ship it”?"),
        (MULTI, "gren", "refused: did you mean “Green”?"),
        (MULTI, "red, gren", "refused: did you mean “Green”?"),
        (MULTI, "1, bleu", "refused: did you mean “Blue”?"),
        (MULTI, "red, or rather gren", "wrote red, or rather gren"),
        # What is exactly a label or its number is no near miss of another.
        (VERSIONS, "v1.2.4", "chose v1.2.4"),
        (ask("Now", "Nov"), "nov", "chose Nov"),
        # In quotation marks it is meant as it stands.
        (YES_NO, '"yse"', "wrote yse"),
        (YES_NO, "“yse”", "wrote yse"),
        (YES_NO, "'yse'", "wrote yse"),
        (YES_NO, '"2027"', "wrote 2027"),
        (YES_NO, '"yes"', "chose Yes"),
        (YES_NO, '"yes" or "no"', 'wrote "yes" or "no"'),
        (ask('"Yes"', "No"), '"Yes"', 'chose "Yes"'),
        (ask('"Yes"', "No"), '"Yse"', "wrote Yse"),
    ],
)
def test_what_is_nearly_a_label_is_asked_back_on_every_surface(
    question: Question, typed: str, expected: str
) -> None:
    for surface in SURFACES:
        said = surface(question, typed)
        is_refusal = expected.startswith("refused")
        assert said.startswith(expected) if is_refusal else said == expected, surface.__name__


ONLY = replace(YES_NO, accepts_text=AcceptsText.NO)
ONLY_MULTI = replace(MULTI, accepts_text=AcceptsText.NO)
NOTED = replace(YES_NO, accepts_text=AcceptsText.NOTE)
NOTED_MULTI = replace(MULTI, accepts_text=AcceptsText.NOTE)
OPTIONS_ALONE = "refused: this question takes only its options, not your own words: choose 1 to "
NEEDS_CHOICE = "refused: words alone are no answer here: choose 1 to "


@pytest.mark.parametrize(
    ("question", "typed", "expected"),
    [
        (ONLY, "1", "chose Yes"),
        (ONLY, "no", "chose No"),
        (ONLY, "maybe", f"{OPTIONS_ALONE}2"),
        (ONLY, '"yse"', f"{OPTIONS_ALONE}2"),
        (ONLY, "1: but slowly", f"{OPTIONS_ALONE}2"),
        (ONLY, "yse", "refused: did you mean “Yes”? Say “1” for number 1"),
        (ONLY_MULTI, "1, 3", "chose Red+Green"),
        (ONLY_MULTI, "1, and grey", f"{OPTIONS_ALONE}3"),
        (NOTED, "2", "chose No"),
        (NOTED, "not now", f"{NEEDS_CHOICE}2; words can go along, such as “1: not now”"),
        (NOTED, "no, not now", f"{NEEDS_CHOICE}2"),
        (NOTED, "2: not now", "chose No, wrote not now"),
        (NOTED, "No: not now", "chose No, wrote not now"),
        (NOTED, "yes\nbut slowly: it is Friday", "chose Yes, wrote but slowly: it is Friday"),
        (NOTED, "maybe: not now", f"{NEEDS_CHOICE}2"),
        (NOTED_MULTI, "1, 3: but slowly", "chose Red+Green, wrote but slowly"),
        # Without options there is nothing but words.
        (replace(TEXT, accepts_text=AcceptsText.NO), "because", "wrote because"),
    ],
)
def test_own_words_count_as_far_as_the_question_accepts_them_on_every_surface(
    question: Question, typed: str, expected: str
) -> None:
    for surface in SURFACES:
        said = surface(question, typed)
        is_refusal = expected.startswith("refused")
        assert said.startswith(expected) if is_refusal else said == expected, surface.__name__


@pytest.mark.parametrize(
    ("question", "answer", "is_taken"),
    [
        (YES_NO, Answer(text="yse"), True),
        (YES_NO, Answer(("Yes",), "but slowly"), True),
        (ONLY, Answer(("Yes",)), True),
        (ONLY, Answer(("Yes",), "but slowly"), False),
        (ONLY, Answer(text="maybe"), False),
        (NOTED, Answer(("Yes",), "but slowly"), True),
        (NOTED, Answer(("Yes",)), True),
        (NOTED, Answer(text="maybe"), False),
        (NOTED, Answer(text="1: not now"), False),
    ],
)
def test_what_was_ticked_and_written_is_taken_as_far_as_the_question_accepts_it(
    question: Question, answer: Answer, *, is_taken: bool
) -> None:
    if is_taken:
        assert matching.check(question, answer) == answer
    else:
        with pytest.raises(InvalidReply, match=r"only its options|words alone are no answer"):
            matching.check(question, answer)


def test_what_to_type_instead_begins_with_the_number_of_the_question() -> None:
    with pytest.raises(InvalidReply, match="Say “2: 1” for number 1"):
        matching.match(YES_NO, ("yse",), "2: ")
    with pytest.raises(InvalidReply, match="such as “2: 1: not now”"):
        matching.match(NOTED, ("later",), "2: ")


def test_a_long_text_is_compared_with_long_labels_in_no_time() -> None:
    question = ask(*(f"{number:03}{'ab' * 248}" for number in range(100)))

    assert matching.match(question, ("x" + "ba" * 249,)).text is not None
    assert matching.match(question, ("ab" * 10_000,)).text is not None
    several = replace(question, multi_select=True)
    slips = "".join(f"{label[:-1]}, " for label in question.labels[:39])
    for surface in SURFACES:
        assert surface(several, slips.strip(", ")).startswith("wrote")


def test_a_default_that_is_nearly_a_label_is_meant_as_it_stands() -> None:
    asked = replace(YES_NO, default=("yse",))

    assert matching.defaults((asked,)) == (Answer(text="yse"),)


def test_a_default_that_is_no_option_is_refused_where_only_options_count() -> None:
    with pytest.raises(InvalidReply, match="takes only its options"):
        matching.defaults((replace(ONLY, default=("later",)),))


def test_a_default_is_a_label_even_if_it_is_another_options_number() -> None:
    asked = replace(SWAPPED, default=("2",))

    assert matching.defaults((asked,)) == (Answer(("2",)),)


@pytest.mark.parametrize(
    ("question", "values", "words"),
    [
        (CHOICE, ("9",), "no option 9: choose 1 to 3"),
        (CHOICE, ("0",), "no option 0"),
        (CHOICE, ("1", "2"), "only one of these can be chosen: Red, Blue"),
        (CHOICE, ("1 2",), "only one of these can be chosen: Red, Blue"),
        (CHOICE, ("2, 1",), "only one of these can be chosen: Blue, Red"),
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
        matching.match(question, values)


@pytest.mark.parametrize(
    "answer", [Answer(("Purple",)), Answer(("Red", "Blue")), Answer(), Answer(text="  ")]
)
def test_a_ticked_answer_is_checked_against_the_question(answer: Answer) -> None:
    with pytest.raises(InvalidReply):
        matching.check(CHOICE, answer)


def test_a_written_number_beside_ticks_stays_text() -> None:
    assert matching.check(CHOICE, Answer(text="2")) == Answer(text="2")


def test_several_questions_take_one_value_each() -> None:
    spread = matching.spread((CHOICE, MULTI, TEXT), ("1", "1, 3", "a, b"))

    assert spread == (("1",), ("1, 3",), ("a, b",))


def test_too_few_values_for_several_questions_are_refused() -> None:
    with pytest.raises(InvalidReply, match="2 questions were asked and 1 value given"):
        matching.spread((CHOICE, TEXT), ("1",))
