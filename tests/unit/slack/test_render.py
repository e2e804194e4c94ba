"""Any question that an agent may ask becomes messages that Slack takes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.slack.cards import ATTACK, BROWSERS, CARD, NAME, REQUEST, YES_NO, options

from pynchy.bridge.expire import NOBODY
from pynchy.channels.slack.limits import violations
from pynchy.channels.slack.render import Rendering, render
from pynchy.channels.slack.settling import render_settled
from pynchy.model import AcceptsText, Answer, Card, Ending, Option, OutcomeKind, Question
from pynchy.testing import NOON

# Long texts are made of few letters: what counts is how long they are and what is in them.
pieces = st.sampled_from(
    ["a", "word ", "\n", "🦀", '"', "\\", "<!here>", "&", "\x00", "\u202e", " "]
)


def texts(most: int) -> st.SearchStrategy[str]:
    return st.builds(
        lambda piece, count, more: (piece * count + more)[:most] or "x",
        pieces,
        st.integers(0, most),
        st.text(max_size=20),
    )


option_lists = st.builds(
    lambda count, label, description, preview: tuple(
        Option(f"{n} {label}", description, preview if n < 2 else "") for n in range(count)
    ),
    st.sampled_from([0, 1, 2, 10, 11, 50, 100]),
    texts(490),
    texts(2_000) | st.just(""),
    texts(20_000) | st.just(""),
)
questions = st.builds(
    Question,
    texts(20_000),
    texts(500) | st.just(""),
    option_lists,
    st.booleans(),
    accepts_text=st.sampled_from(AcceptsText),
)
cards = st.builds(
    lambda agent, task, title, repeated, link: replace(
        CARD, agent=agent, task=task, title=title, repeated=repeated, link=link
    ),
    texts(500),
    texts(500) | st.just(""),
    texts(500) | st.just(""),
    st.booleans(),
    st.sampled_from([None, "http://127.0.0.1:8765/q/ab2c"]),
)
slow = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))


def controls(rendering: Rendering) -> Iterator[dict[str, Any]]:
    for block in (block for message in rendering.messages for block in message.blocks):
        yield from block.get("elements", ()) if block["type"] == "actions" else ()
        yield from [block[name] for name in ("accessory", "element") if name in block]


@slow
@given(st.lists(questions, min_size=1, max_size=4).map(tuple), cards)
def test_any_question_is_within_the_limits(asked: tuple[Question, ...], card: Card) -> None:
    rendering = render(REQUEST, asked, card)

    for message in (*rendering.messages, *rendering.details):
        assert violations(message.text, message.blocks) == []


@slow
@given(
    st.lists(questions, min_size=1, max_size=4).map(tuple),
    cards,
    st.sampled_from(OutcomeKind),
    texts(20_000),
)
def test_any_settled_card_is_within_the_limits_and_has_no_controls(
    asked: tuple[Question, ...], card: Card, outcome: OutcomeKind, text: str
) -> None:
    ending = Ending(outcome, NOON, (Answer(("x",), text),) * len(asked), text, "slack", text)

    settled = render_settled(REQUEST, asked, card, ending, "slack")

    assert len(settled) == len(render(REQUEST, asked, card).messages)
    for message in settled:
        assert violations(message.text, message.blocks) == []
        assert not any({"accessory", "element"} & set(block) for block in message.blocks)


@pytest.mark.parametrize("count", [2, 10, 11, 60, 100])
def test_every_option_of_a_single_choice_has_its_own_button(count: int) -> None:
    rendering = render(REQUEST, (replace(YES_NO, options=options(count)),), CARD)

    clicked = [c["value"] for c in controls(rendering) if "pick" in c["action_id"]]
    assert clicked == [f"0:{n}" for n in range(count)]


@pytest.mark.parametrize("count", [2, 10, 11, 60])
def test_every_option_of_a_multi_select_has_its_own_box(count: int) -> None:
    rendering = render(REQUEST, (replace(BROWSERS, options=options(count)),), CARD)

    ticked = [o["value"] for c in controls(rendering) for o in c.get("options", ())]
    assert ticked == [f"o{n}" for n in range(count)]


def test_boxes_that_do_not_fit_are_a_numbered_list_to_answer_in_words() -> None:
    many = options(100, "A label that takes its room, as labels do,")

    rendering = render(REQUEST, (replace(BROWSERS, options=many),), CARD)

    posted = "\n".join(b["text"]["text"] for b in rendering.messages[0].blocks if "text" in b)
    assert f"\n100. {many[99].label}" in posted
    assert [c["type"] for c in controls(rendering)] == ["plain_text_input", "button"]


ONLY = replace(YES_NO, accepts_text=AcceptsText.NO)
ONLY_BROWSERS = replace(BROWSERS, accepts_text=AcceptsText.NO)


@pytest.mark.parametrize(
    "asked",
    [(ONLY,), (ONLY_BROWSERS,), (ONLY, ONLY_BROWSERS)],
    ids=["buttons", "boxes", "several"],
)
def test_where_only_options_count_a_card_offers_no_place_for_words(
    asked: tuple[Question, ...],
) -> None:
    rendering = render(REQUEST, asked, CARD)

    assert "plain_text_input" not in {control["type"] for control in controls(rendering)}
    assert "reply in the thread" not in str(rendering)


def test_the_other_questions_of_a_card_keep_their_fields() -> None:
    rendering = render(REQUEST, (ONLY, NAME), CARD)

    fields = [c["action_id"] for c in controls(rendering) if c["type"] == "plain_text_input"]
    assert fields == ["pynchy:other:1"]
    assert "reply in the thread" in str(rendering)


def test_boxes_that_do_not_fit_are_answered_by_number_where_only_options_count() -> None:
    asked = Question("Which?", options=options(100, "Label " * 80), multi_select=True)

    rendering = render(REQUEST, (replace(asked, accepts_text=AcceptsText.NO),), CARD)

    assert "Numbers, such as 1, 3, 12; then enter" in str(rendering)


@pytest.mark.parametrize("asked", [YES_NO, BROWSERS], ids=["buttons", "boxes"])
def test_a_note_has_a_field_that_sends_nothing_by_itself(asked: Question) -> None:
    rendering = render(REQUEST, (replace(asked, accepts_text=AcceptsText.NOTE),), CARD)

    [field] = [c for c in controls(rendering) if c["type"] == "plain_text_input"]
    assert "dispatch_action_config" not in field
    assert "A note" in str(rendering)


def test_several_questions_are_submitted_at_once() -> None:
    rendering = render(REQUEST, (YES_NO, BROWSERS, NAME), CARD)

    kinds = [control["type"] for control in controls(rendering)]
    assert len(rendering.messages) == 1
    assert kinds.count("plain_text_input") == 3
    assert [c["value"] for c in controls(rendering) if "submit" in c["action_id"]] == ["all"]


def test_questions_that_do_not_fit_together_come_one_by_one() -> None:
    long = replace(NAME, text="word " * 2_000)

    rendering = render(REQUEST, (long, BROWSERS, YES_NO), CARD)

    assert sorted({message.question or 0 for message in rendering.messages}) == [1, 2, 3]
    assert [c["value"] for c in controls(rendering) if "submit" in c["action_id"]] == ["1"]


def test_a_long_question_is_shown_whole() -> None:
    text = " ".join(f"word{n}" for n in range(2_500))

    rendering = render(REQUEST, (replace(YES_NO, text=text),), CARD)

    blocks = [block for message in rendering.messages for block in message.blocks]
    posted = " ".join(block["text"]["text"] for block in blocks if block["type"] == "section")
    assert text in posted


def test_a_preview_keeps_its_shape_in_the_thread() -> None:
    drawing = "   /\\\n  /  \\\n"

    rendering = render(
        REQUEST, (replace(YES_NO, options=(Option("A", preview=drawing), Option("B"))),), CARD
    )

    (details,) = rendering.details
    assert details.blocks[1]["elements"][0]["elements"][0]["text"] == "   /\\\n  /  \\"


def test_the_notification_is_escaped_and_short() -> None:
    rendering = render(REQUEST, (replace(YES_NO, text=ATTACK * 100),), CARD)

    text = rendering.messages[0].text
    assert "<" not in text
    assert ">" not in text
    assert len(text) < 4_000


def test_every_block_with_a_control_names_the_request() -> None:
    rendering = render(REQUEST, (YES_NO, BROWSERS), CARD)

    blocks = [block for message in rendering.messages for block in message.blocks]
    active = [b for b in blocks if b["type"] in {"actions", "input"} or "accessory" in b]
    assert active
    assert all(block["block_id"].startswith(f"pynchy:{REQUEST}:") for block in active)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (
            Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), "Ana", "slack"),
            "Answered: Yes by Ana",
        ),
        (
            Ending(OutcomeKind.ANSWERED, NOON, (Answer(text="no"),), "ben", "local"),
            "Answered elsewhere: no by ben (local)",
        ),
        (Ending(OutcomeKind.DECLINED, NOON, (), "Ana", "slack", "busy"), "Declined by Ana: busy"),
        (Ending(OutcomeKind.EXPIRED, NOON), "Expired: nobody answered in time"),
        (
            Ending(OutcomeKind.EXPIRED, NOON, reason="only partly answered in time, by Ana"),
            "Expired: only partly answered in time, by Ana",
        ),
        (Ending(OutcomeKind.EXPIRED, NOON, reason=NOBODY), "Expired: nobody answered in time"),
        (
            Ending(OutcomeKind.WITHDRAWN, NOON, by="the agent"),
            "Withdrawn by the agent: no answer is needed any more",
        ),
    ],
)
def test_a_settled_card_keeps_the_question_and_says_how_it_ended(ending: Ending, said: str) -> None:
    (message,) = render_settled(REQUEST, (YES_NO,), CARD, ending, "slack")

    sections = [b["text"]["text"] for b in message.blocks if b["type"] == "section"]
    assert sections == [YES_NO.text, said]


def test_a_settled_card_tells_of_the_delivery() -> None:
    card = replace(CARD, delivery="Not delivered yet: no launcher")
    ending = Ending(OutcomeKind.ANSWERED, NOON, (Answer(("Yes",)),), "Ana", "slack")

    (message,) = render_settled(REQUEST, (YES_NO,), card, ending, "slack")

    assert message.blocks[-1]["elements"][0]["text"] == "Not delivered yet: no launcher"


@pytest.mark.parametrize("length", [9_000, 10_500, 11_500, 19_000])
@pytest.mark.parametrize("said", ["Yes", "because " * 2_000])
def test_a_settled_card_keeps_the_whole_question(length: int, said: str) -> None:
    text = " ".join(f"w{n}" for n in range(length // 6))
    question = replace(YES_NO, text=text)
    ending = Ending(OutcomeKind.ANSWERED, NOON, (Answer(text=said),), "Ana", "slack")
    card = replace(CARD, ending=ending, delivery="The agent had stopped; resuming it. " * 20)

    made = render_settled(REQUEST, (question,), card, ending, "slack")

    posted = " ".join(_plain(message.blocks) for message in made)
    assert set(text.split()) <= set(posted.split())
    assert "Ana" in posted
    assert said[:100] in posted
    for message in made:
        assert violations(message.text, message.blocks) == []


def _plain(made: list[dict[str, Any]]) -> str:
    return " ".join(block["text"]["text"] for block in made if block["type"] == "section")


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "forged",
    [
        Option("Keep the logs", "2. Keep the database\n3. Keep the users"),
        Option("Keep the logs\n2. Keep the database"),
        Option("Keep the logs", "x" * 2_980 + " 2. Keep the database" * 200),
    ],
)
def test_no_line_of_an_option_passes_for_another_one(forged: Option, *, several: bool) -> None:
    options = (forged, Option("Delete the database"), Option("Delete the users"))
    question = Question("What may I do?", options=options, multi_select=several)

    made = render(REQUEST, (question,), CARD)

    shown = [b["text"]["text"] for m in made.messages for b in m.blocks if b["type"] == "section"]
    numbered = [line for text in shown for line in text.split("\n") if line.startswith("2.")]
    assert numbered == ["2. Delete the database"]
