"""Cards as numbered text: everything that is needed is there, and agents cannot forge it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.numbered_cases import ASKED, COLOURS, DEPLOY, LATER, REASON, question

from pynchy.channels.numbered import (
    SMALLEST_LIMIT,
    NumberedCard,
    noted,
    refusal,
    render_card,
    render_settled,
)
from pynchy.channels.text import length
from pynchy.errors import AlreadyOver, InvalidReply
from pynchy.model import (
    AcceptsText,
    Answer,
    Card,
    Draft,
    Ending,
    GroupName,
    Option,
    OutcomeKind,
    PendingQuestion,
    Question,
    RequestId,
    ShortId,
    ShownCard,
    Urgency,
)

CARD = Card(ShortId("ab12"), GroupName("g"), ASKED, ASKED + timedelta(days=7), agent="web agent")
LIMIT = 4_000


def lines_of(*questions: Question, card: Card = CARD, limit: int = LIMIT) -> list[str]:
    return render_card(questions, card, limit).split("\n")


def test_numbered_card_says_who_asks_what_and_how_to_answer() -> None:
    asked = Question("Deploy?", options=(Option("Yes", "to production"), Option("No")))

    assert lines_of(asked) == [
        "g · web agent asks · #ab12",
        "",
        "> Deploy?",
        "1. Yes",
        "> to production",
        "2. No",
        "",
        "Reply 1–2, or your own words. #ab12",
        "If it could be unclear, quote this message or begin with #ab12. “cancel” declines.",
        "Open until 23 Nov 12:00 UTC",
    ]


@pytest.mark.parametrize("agent", ["web-team", "web-team asks · #cd34\n", "\u202eweb-team", " "])
def test_numbered_card_of_an_agent_cannot_pass_for_that_of_another_group(agent: str) -> None:
    real = replace(CARD, group=GroupName("web-team"), agent="")
    fake = replace(CARD, group=GroupName("evil-box"), agent=agent)

    assert lines_of(DEPLOY, card=real)[0] == "web-team asks · #ab12"
    assert lines_of(DEPLOY, card=fake)[0].startswith("evil-box ")


def test_numbered_card_counts_the_options_of_each_question_from_one() -> None:
    lines = lines_of(DEPLOY, COLOURS, REASON)

    first, second = lines.index("Question 1 of 3"), lines.index("Question 2 of 3")
    assert lines[first + 1 : first + 5] == ["> Deploy?", "1. Yes", "2. No", "3. Later"]
    assert lines[second + 2] == "1. Red"
    assert any("“1: 2, 2: 1 3, 3: your words”" in line for line in lines)


def test_numbered_card_says_of_which_questions_own_words_are_an_answer() -> None:
    only = replace(DEPLOY, accepts_text=AcceptsText.NO)

    [some] = [line for line in lines_of(only, REASON) if line.startswith("Reply to all")]
    [none] = [line for line in lines_of(only, only) if line.startswith("Reply to all")]

    assert "Your own words are fine for 2 only." in some
    assert "own words" not in none


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        (replace(DEPLOY, accepts_text=AcceptsText.NO), "Reply 1–3. #ab12"),
        (
            replace(COLOURS, accepts_text=AcceptsText.NO),
            "Reply with one or more of 1–3, such as “1 3”. #ab12",
        ),
        (
            replace(DEPLOY, accepts_text=AcceptsText.NOTE),
            "Reply 1–3; a note can go along, such as “1: not now”. #ab12",
        ),
        (DEPLOY, "Reply 1–3, or your own words. #ab12"),
        (COLOURS, "Reply with one or more of 1–3, such as “1 3”, or your own words. #ab12"),
        (REASON, "Reply in your own words. #ab12"),
        (question("?", "Only"), "Reply 1, or your own words. #ab12"),
    ],
    ids=[
        "one choice alone",
        "several choices alone",
        "choice and note",
        "one choice",
        "several choices",
        "words",
        "one option",
    ],
)
def test_numbered_card_tells_how_each_kind_is_answered(asked: Question, how: str) -> None:
    assert how in lines_of(asked)


def test_numbered_card_tells_what_else_is_known() -> None:
    card = replace(
        CARD,
        urgency=Urgency.HIGH,
        title="Release",
        task="ship 1.2",
        repeated=True,
        defaults_at=LATER,
        link="http://127.0.0.1:8765/q/g/r",
    )

    lines = lines_of(replace(DEPLOY, default=("No",)), card=card)

    assert lines[:4] == [
        "🔴 Urgent: g · web agent asks · #ab12",
        "This card may be a repeat. It is the same question: one answer closes every copy.",
        "About: Release",
        "Task: ship 1.2",
    ]
    assert lines[-2:] == [
        "Without an answer by 16 Nov 12:05 UTC the agent takes its own default: No",
        "http://127.0.0.1:8765/q/g/r",
    ]


FORGED = "\n\nother agent asks · #cd34\n1. Approve\u2028Reply 1, or your own words. #cd34\r2. Pay\n"


def test_numbered_card_cannot_be_forged_by_what_the_agent_writes() -> None:
    asked = Question(
        f"Sure?{FORGED}",
        header=FORGED,
        options=(Option(f"Yes{FORGED}", FORGED, FORGED), Option("No")),
    )
    card = replace(CARD, agent=f"web{FORGED}", title=FORGED, task=FORGED)

    for questions in ((asked,), (asked, asked)):
        ours = [line for line in lines_of(*questions, card=card) if not line.startswith(">")]
        assert not any(line.startswith(("other", "Reply 1, or", "#")) for line in ours)
        assert not any("#cd34" in line for line in ours)
        numbered = [line[:3] for line in ours if line[:1].isdigit()]
        assert numbered == ["1. ", "2. "] * len(questions)


def test_numbered_card_shows_hidden_characters_by_name() -> None:
    text = render_card((question("a\u202eb", "Y\u200bes"),), CARD, LIMIT)

    assert "> a⟨U+202E⟩b" in text
    assert "1. Y⟨U+200B⟩es" in text


def test_numbered_card_lets_no_agent_open_a_block_of_code_or_scroll_it_away() -> None:
    text = render_card((question("```\ncode" + "\n" * 500 + "end", "Yes"),), CARD, LIMIT)

    assert "```" not in text
    assert "> '''\n> code\n>\n> end\n1. Yes" in text


def long_question(options: int) -> Question:
    wordy = tuple(Option(f"{n}{'L' * 400}", "D" * 600, "P" * 600) for n in range(options))
    return Question("Q" * 19_999, "H" * 500, wordy, default=("D" * 500,))


@pytest.mark.parametrize("limit", [SMALLEST_LIMIT, 4_096, 65_536])
@pytest.mark.parametrize("options", [3, 20, 100])
@pytest.mark.parametrize("questions", [1, 4])
def test_numbered_card_too_long_for_the_channel_keeps_options_and_how(
    limit: int, options: int, questions: int
) -> None:
    card = replace(CARD, agent="A" * 500, title="T" * 500, task="K" * 500, repeated=True)
    card = replace(card, urgency=Urgency.HIGH, defaults_at=LATER, link="l" * 200)

    text = render_card((long_question(options),) * questions, card, limit)

    assert length(text) <= limit
    assert " asks · #ab12\n" in text
    assert "“cancel” declines." in text
    assert text.endswith("l" * 200)
    assert "pynchy show ab12" in text or text.count("P" * 600) == options * questions
    shown = sum(line.split(". ")[0].isdigit() for line in text.split("\n"))
    told = text.count(f"Options 1–{options} do not fit here")
    assert shown == options * questions or told == questions


def test_numbered_card_shows_a_hundred_options_in_the_smallest_message() -> None:
    lines = lines_of(long_question(100), limit=SMALLEST_LIMIT)

    assert [line.split(". ")[0] for line in lines if "L…" in line] == [
        str(number) for number in range(1, 101)
    ]


def test_numbered_card_is_shortened_no_more_than_needed() -> None:
    roomy = render_card((long_question(3),), CARD, 65_536)
    tight = render_card((long_question(3),), CARD, 4_096)

    assert "Q" * 19_999 in roomy
    assert "D" * 600 in roomy
    assert "1. 0" + "L" * 100 in tight


texts = st.text(max_size=300)
some_questions = st.builds(
    Question,
    text=texts,
    header=texts,
    options=st.lists(st.builds(Option, texts, texts, texts), max_size=6).map(tuple),
    multi_select=st.booleans(),
)


@given(
    asked=st.lists(some_questions, min_size=1, max_size=4).map(tuple),
    limit=st.integers(SMALLEST_LIMIT, 5_000),
    agent=texts,
)
def test_numbered_card_of_any_text_fits_and_marks_every_line_of_the_agent(
    asked: tuple[Question, ...], limit: int, agent: str
) -> None:
    lines = render_card(asked, replace(CARD, agent=agent), limit).split("\n")

    assert length("\n".join(lines)) <= limit
    ours = ("> ", ">", "Question ", "Reply ", "If it", "Open until", "Shortened", "Options ")
    inner = [line for line in lines[1:] if line and not line.startswith((*ours, "About: "))]
    assert all(line.split(". ")[0].isdigit() for line in inner)


ANSWERED = Ending(OutcomeKind.ANSWERED, LATER, (Answer(("Yes",)),), "Ana", "whatsapp")


@pytest.mark.parametrize(
    ("ending", "headline"),
    [
        (ANSWERED, "#ab12 Answered: Yes by Ana"),
        (replace(ANSWERED, channel="web"), "#ab12 Answered elsewhere: Yes by Ana (web)"),
        (Ending(OutcomeKind.DECLINED, LATER, by="Ana", reason="no"), "#ab12 Declined by Ana: no"),
        (
            Ending(OutcomeKind.EXPIRED, LATER),
            "#ab12 Expired: nobody answered in time",
        ),
        (
            Ending(OutcomeKind.WITHDRAWN, LATER),
            "#ab12 Withdrawn: no answer is needed any more",
        ),
        (
            Ending(OutcomeKind.DEFAULTED, LATER, (Answer(("No",)),)),
            "#ab12 Nobody answered; the agent took its own default: No",
        ),
        (Ending(OutcomeKind.UNDELIVERABLE, LATER, reason="x"), "#ab12 Undeliverable: x"),
    ],
    ids=[
        "answered",
        "elsewhere",
        "declined",
        "expired",
        "withdrawn",
        "defaulted",
        "undeliverable",
    ],
)
def test_numbered_follow_up_says_how_it_ended(ending: Ending, headline: str) -> None:
    text = render_settled((DEPLOY,), CARD, ending, "whatsapp", LIMIT)

    assert text.split("\n") == [headline, "> Deploy?"]


def test_numbered_follow_up_says_how_the_answer_gets_to_the_agent() -> None:
    card = replace(CARD, delivery="The agent had stopped; resuming it.")

    text = render_settled((DEPLOY,), card, ANSWERED, "whatsapp", LIMIT)

    assert text.split("\n")[1] == "The agent had stopped; resuming it."


def test_numbered_follow_up_has_the_answer_to_each_question() -> None:
    both = replace(ANSWERED, answers=(Answer(("Yes",)), Answer(text="fun\n#cd34 Answered")))

    text = render_settled((DEPLOY, REASON), CARD, both, "whatsapp", LIMIT)

    assert text.split("\n")[1:] == ["> Deploy?", "→ Yes", "> Why?", "→ fun ＃cd34 Answered"]


def test_numbered_follow_up_fits_however_much_was_said() -> None:
    endless = replace(ANSWERED, answers=(Answer(text="😀" * 20_000),) * 4, by="B" * 5_000)
    card = replace(CARD, delivery="D" * 5_000)

    text = render_settled((long_question(3),) * 4, card, endless, "whatsapp", SMALLEST_LIMIT)

    assert length(text) <= SMALLEST_LIMIT


def test_numbered_note_tells_which_question_comes_next() -> None:
    pending = PendingQuestion(
        RequestId("r"),
        CARD.short_id,
        CARD.group,
        (DEPLOY, COLOURS, REASON),
        ASKED,
        LATER,
        LATER,
        "",
        drafts=(Draft(0, Answer(("Yes",)), "Ana"),),
    )

    assert noted(pending).split("\n") == [
        "Noted. Still to be answered: question 2, 3. #ab12",
        "Next is question 2:",
        "> Which colours?",
        "Reply with one or more of 1–3, such as “1 3”, or your own words.",
    ]


def test_numbered_refusal_is_one_harmless_line() -> None:
    over = AlreadyOver(replace(ANSWERED, answers=(Answer(text="x\n#cd34 Answered"),)))

    assert refusal(InvalidReply("no")) == "Not taken: no"
    assert refusal(over) == (
        "This question is over already: answered by Ana (whatsapp): x ＃cd34 Answered"
    )


def test_numbered_card_is_made_from_what_the_desk_knows() -> None:
    shown = ShownCard("chat", "m1", RequestId("r"), (DEPLOY, REASON), CARD, frozenset({1}))

    known = NumberedCard.of(shown)

    assert (known.short_id, known.request_id, known.group) == ("ab12", "r", "g")
    assert (known.message_ids, known.missing, known.asked_at) == ({"m1"}, (2,), ASKED)
    assert NumberedCard.of(shown, LATER).asked_at == LATER
