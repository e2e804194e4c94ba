"""What holds for every text: nothing breaks, and nothing is answered that was not meant."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.numbered_cases import (
    ASKED,
    COLOURS,
    DEPLOY,
    LATER,
    REASON,
    card,
    hear,
    question,
    readable,
)

from pynchy.bridge import matching
from pynchy.channels.numbered import (
    Answers,
    ChatMessage,
    Decline,
    Hint,
    NotForUs,
    NumberedCard,
    Reacted,
    TooLate,
    read,
    read_reaction,
)
from pynchy.errors import InvalidReply
from pynchy.model import Option, Question

PIECES = [
    *("#ab12", "#cd34", "#zz99", "ab12", "1", "2", "9", "12", ":", "1:", "2: ", "=", "and", "or"),
    *(", ", ";", "\n", " ", "yes", "No", "Red", "green", "cancel", "never mind", "two", "q1: "),
    *("1️⃣", "２", "③", "\u200b", "\u202e", "/status", "!go", "approve ", "“", '"', "-", "(", "."),
    *("because", "取消", "、", "🔟", "#", "?", "à"),
]
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
labels = st.one_of(st.sampled_from(["Yes", "No", "1", "2", "Cancel", "#cd34 1", "A, B"]), texts)
questions = st.builds(
    Question,
    text=texts,
    options=st.lists(labels, max_size=5, unique=True).map(lambda them: tuple(map(Option, them))),
    multi_select=st.booleans(),
)
asked = st.lists(questions, min_size=1, max_size=4)
some_cards = st.builds(
    lambda first, second, over, answered: [
        card("ab12", *first, answered=frozenset(answered)),
        card("cd34", *second, over=over, ended_elsewhere_at=ASKED if over else None),
    ],
    asked,
    asked,
    st.booleans(),
    st.sets(st.integers(1, 4)),
)
quotes = st.sampled_from([None, "card-ab12", "card-cd34", "somebody-else"])
places = st.booleans()


@given(text=texts, cards=some_cards, quoted=quotes, private=places)
def test_numbered_reading_of_any_text_ends_in_something_the_desk_accepts(
    text: str, cards: list[NumberedCard], quoted: str | None, *, private: bool
) -> None:
    reading = read(ChatMessage(text, LATER, private, quoted), cards)

    match reading:
        case Answers(to, parts):
            assert not to.over
            assert [part.number for part in parts] == sorted({part.number for part in parts})
            for part in parts:
                asked = to.questions[part.number - 1]
                assert set(part.answer.selected) <= set(asked.labels)
                assert matching.check(asked, part.answer)
        case Hint(said):
            assert said
            assert len(said) < 1_500
        case Decline(to):
            assert not to.over
        case TooLate(to):
            assert to.over
        case NotForUs():
            pass


@given(emoji=texts, cards=some_cards, message=quotes)
def test_numbered_reading_of_any_reaction_answers_its_own_card_alone(
    emoji: str, cards: list[NumberedCard], message: str | None
) -> None:
    reading = read_reaction(Reacted(emoji, message or "", LATER), cards)

    assert not isinstance(reading, Decline)
    if isinstance(reading, Answers):
        assert message in reading.card.message_ids
        assert len(reading.parts) == 1


@given(text=texts, cards=some_cards)
def test_numbered_reading_answers_only_the_card_that_is_quoted_or_named(
    text: str, cards: list[NumberedCard]
) -> None:
    assume("cd34" not in text.casefold())

    reading = read(ChatMessage(text, LATER, private=True, quoted="card-ab12"), cards)

    if isinstance(reading, Answers | Decline | TooLate):
        assert reading.card.short_id == "ab12"


TWO = (card("ab12", DEPLOY, REASON), card("cd34", COLOURS))


@given(text=texts, private=places)
def test_numbered_reading_of_two_cards_without_a_target_answers_nothing(
    text: str, *, private: bool
) -> None:
    folded = text.casefold()
    named = ("ab12", "cd34", *(label.casefold() for q in (DEPLOY, COLOURS) for label in q.labels))
    assume(not any(word in folded for word in named))

    reading = read(ChatMessage(text, LATER, private), TWO)

    assert isinstance(reading, Hint | NotForUs)


labels = st.one_of(
    st.sampled_from(["Yes", "no", "1", "Go ahead", "cancel", "approve", "Fix #wxyz", "ab12"]), texts
)


@given(label=labels, asked=st.sampled_from([DEPLOY, COLOURS, REASON]), private=st.booleans())
def test_numbered_label_never_chooses_between_groups(
    label: str, asked: Question, *, private: bool
) -> None:
    assume(label.strip() and not {"#ef56", "ef56"} & {*label.casefold().split()})
    cards = [card("ef56", question("?", label, "other"), group="evil"), card("gh78", asked)]

    reading = read(ChatMessage(label, LATER, private), cards)

    assert isinstance(reading, Hint | NotForUs)


words = st.lists(
    st.sampled_from(["we", "should", "ship", "2", "apples", "tomorrow", "all", "think", "#hm"]),
    min_size=2,
    max_size=8,
).filter(lambda said: any(word.isalpha() for word in said))


@given(said=words, asked=st.sampled_from([DEPLOY, COLOURS, REASON]))
def test_numbered_prose_in_a_group_answers_nothing(said: list[str], asked: Question) -> None:
    reading = read(ChatMessage(" ".join(said), LATER, private=False), [card("ab12", asked)])

    assert reading == NotForUs()


@given(number=st.integers(0, 10**30), start=st.sampled_from(["", "#ab12 ", "option "]))
def test_numbered_figure_is_never_taken_for_own_words(number: int, start: str) -> None:
    heard = hear(f"{start}{number}", card("ab12", DEPLOY))

    expected = {1: "ab12: Yes", 2: "ab12: No", 3: "ab12: Later"}
    assert heard == expected.get(number, heard)
    assert number in expected or heard.startswith("hint: There is no option")


@pytest.mark.parametrize("text", ["\u200b", " \u2060\ufeff ", "\u3164"], ids=readable)
def test_numbered_reply_that_nobody_can_see_is_no_answer(text: str) -> None:
    for asked in (DEPLOY, COLOURS, REASON):
        assert hear(text, card("ab12", asked)) == "-"
        assert hear(f"#ab12 {text}", card("ab12", asked)).startswith("hint: What is your answer?")
    assert "an answer is missing" in hear(f"1: {text}", card("ab12", DEPLOY, REASON))


@given(text=texts)
def test_numbered_own_words_are_passed_on_as_they_were_written(text: str) -> None:
    said = f"well, {text}".strip()

    assert hear(f"#ab12 {said}", card("ab12", REASON)) == f"ab12: “{said}”"


MANY = question("Which?", *(f"{'x' * 490}{n}" for n in range(100)), multi=True)
HEAPS = [
    *("1 ", "1:", "1: 2, ", "# ", "#ab12 ", " ", "\n", "(", '"', "red, ", "red and ", "-", "yes "),
    *("1️⃣", "①", "!", "a", "\u200b", "ﷺ", "é", "q 1", "/", "`", "x" * 490 + "1, ", "，", "1.1"),
]


@pytest.mark.parametrize("heap", HEAPS, ids=readable)
def test_numbered_reading_of_heaps_of_text_is_not_slow_and_answers_nothing_by_accident(
    heap: str,
) -> None:
    cards = [card("ab12", DEPLOY, COLOURS, REASON), card("cd34", MANY), card("ef56", COLOURS)]
    for start in ("", "x", "#ab12 ", "1: "):
        for size in (20_000, 100_000):
            text = (start + heap * (size // len(heap) + 1))[:size]
            for chosen in (cards, cards[:1], cards[1:2]):
                reading = read(ChatMessage(text, LATER, private=False), chosen)
                if len(text.strip()) > 20_000:
                    assert isinstance(reading, Hint | NotForUs)


def test_numbered_answer_that_is_too_long_is_told_the_limit() -> None:
    one = card("ab12", REASON)

    assert hear("x" * 20_000, one).startswith("ab12: “xxx")
    for heard in (
        hear("x" * 20_001, one),
        hear("x" * 20_001, one, private=False, quoted="card-ab12"),
        hear("#ab12 " + "x" * 100_000, one, private=False),
    ):
        assert heard == "hint: Not taken: an answer may have at most 20000 characters. #ab12"
    assert hear("x" * 20_001, one, private=False) == "-"


def test_numbered_limit_is_the_one_of_the_desk() -> None:
    with pytest.raises(InvalidReply):
        matching.match(REASON, ("x" * 20_001,))
