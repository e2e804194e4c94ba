"""What a click or a reply in the thread answers, and what is asked for when it is unclear."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.slack.cards import BROWSERS, NAME, REQUEST, YES_NO

from pynchy.channels.slack.blocks import CardLocation, CardMessage
from pynchy.channels.slack.card_index import CardIndex, PostedCard
from pynchy.channels.slack.payloads import Click, read_click, read_thread_reply
from pynchy.channels.slack.replies import Author, from_click, from_words, without_short_id
from pynchy.errors import InvalidReply
from pynchy.model import Answer, GroupName, Question, RequestId, SessionId, ShortId

SENDER = Author("Ana", "U1", "slack")


def posted_card(*questions: Question, ts: str = "1.0", thread: str | None = None) -> PostedCard:
    location = CardLocation("C1", (CardMessage(ts),), thread)
    return PostedCard(
        "C1", REQUEST, ShortId("ab2c"), GroupName("g1"), questions, location, SessionId("s1")
    )


def click(action_id: str, value: str = "", state: dict[str, Any] | None = None) -> Click:
    found = read_click(
        {
            "user": {"id": "U1", "team_id": "T1", "name": "ana"},
            "container": {"channel_id": "C1", "message_ts": "1.0"},
            "actions": [{"action_id": action_id, "block_id": "b", "value": value}],
            "state": {"values": {"b": state or {}}},
        }
    )
    assert found is not None
    return found


def ticked(*numbers: int) -> dict[str, Any]:
    return {"selected_options": [{"value": f"o{n}"} for n in numbers]}


def test_one_click_answers() -> None:
    reply = from_click(SENDER, posted_card(YES_NO), click("pynchy:pick:0:1"))

    assert reply.answers == (Answer(("No",)),)
    assert (reply.target, reply.group) == (REQUEST, "g1")
    assert (reply.user_id, reply.chat, reply.by) == ("U1", "C1", "Ana")


def test_a_click_takes_along_what_was_written() -> None:
    written = {"pynchy:other:0": {"value": " but slowly "}}

    reply = from_click(SENDER, posted_card(YES_NO), click("pynchy:pick:0:0", state=written))

    assert reply.answers == (Answer(("Yes",), "but slowly"),)


def test_ticks_and_words_are_both_kept() -> None:
    state = {"pynchy:choice:0:0": ticked(0, 2), "pynchy:other:0": {"value": "and Lynx"}}

    for pressed in (click("pynchy:submit", "0", state), click("pynchy:other:0", "x", state)):
        reply = from_click(SENDER, posted_card(BROWSERS), pressed)
        assert reply.answers == (Answer(("Firefox", "Safari"), "and Lynx"),)


def test_boxes_of_several_groups_are_one_answer() -> None:
    many = replace(BROWSERS, options=BROWSERS.options * 5)
    state = {"pynchy:choice:0:0": ticked(1), "pynchy:choice:0:1": ticked(14)}

    reply = from_click(SENDER, posted_card(many), click("pynchy:submit", "0", state))

    assert reply.answers[0].selected == ("Chrome", "Safari")


def test_a_typed_number_is_left_to_the_desk() -> None:
    state = {"pynchy:other:0": {"value": "2"}}

    reply = from_click(SENDER, posted_card(YES_NO), click("pynchy:other:0", "2", state))

    assert (reply.values, reply.answers) == (("2",), ())


def test_a_batch_is_submitted_whole() -> None:
    state = {
        "pynchy:choice:0:0": {"selected_option": {"value": "o0"}},
        "pynchy:other:1": {"value": "add_index"},
    }

    reply = from_click(SENDER, posted_card(YES_NO, NAME), click("pynchy:submit", "all", state))

    assert reply.answers == (Answer(("Yes",)), Answer(text="add_index"))
    assert reply.question is None


@pytest.mark.parametrize(
    ("question", "typed", "answer"),
    [
        (YES_NO, "2", Answer(("No",))),
        (YES_NO, "yes", Answer(("Yes",))),
        (YES_NO, "2 of them", Answer(text="2 of them")),
        (BROWSERS, "1, 3", Answer(("Firefox", "Safari"))),
        (BROWSERS, "safari; 1", Answer(("Safari", "Firefox"))),
        (BROWSERS, "1, 3 and Lynx", Answer(text="1, 3 and Lynx")),
        (NAME, "2", Answer(text="2")),
    ],
)
def test_an_option_that_is_typed_in_a_batch_is_chosen(
    question: Question, typed: str, answer: Answer
) -> None:
    state = {"pynchy:other:0": {"value": typed}, "pynchy:other:1": {"value": "x"}}

    reply = from_click(SENDER, posted_card(question, NAME), click("pynchy:submit", "all", state))

    assert reply.answers == (answer, Answer(text="x"))


def test_a_number_without_an_option_is_refused_in_a_batch_too() -> None:
    state = {"pynchy:other:0": {"value": "9"}, "pynchy:other:1": {"value": "x"}}

    with pytest.raises(InvalidReply, match="no option 9: choose 1 to 2"):
        from_click(SENDER, posted_card(YES_NO, NAME), click("pynchy:submit", "all", state))


@pytest.mark.parametrize(
    "state", [{}, {"pynchy:other:1": {"value": None}}, {"pynchy:other:1": {"value": "  "}}]
)
def test_an_empty_submit_names_what_is_missing(state: dict[str, Any]) -> None:
    with pytest.raises(InvalidReply, match=r"missing: 1\. Deploy.*; 2\. Name"):
        from_click(SENDER, posted_card(YES_NO, NAME), click("pynchy:submit", "all", state))


@pytest.mark.parametrize(
    "action", ["pynchy:pick:0:9", "pynchy:pick:9:0", "pynchy:pick:x", "pynchy:pick"]
)
def test_a_click_that_fits_nothing_is_refused(action: str) -> None:
    with pytest.raises(InvalidReply):
        from_click(SENDER, posted_card(YES_NO), click(action))


@pytest.mark.parametrize("payload", [{}, {"user": {"id": "U1"}}, {"actions": [], "container": {}}])
def test_a_click_on_nothing_is_none(payload: dict[str, Any]) -> None:
    assert read_click(payload) is None


def test_a_reply_to_a_single_question_is_its_answer() -> None:
    assert from_words(SENDER, posted_card(YES_NO), "2", None).values == ("2",)
    assert from_words(SENDER, posted_card(YES_NO), "a\nb", None).values == ("a\nb",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1: yes\n2. add_index", ("yes", "add_index")),
        ("2: add_index\n1: yes", ("yes", "add_index")),
        ("2) add_index\n\n1) yes", ("yes", "add_index")),
        ("yes\nadd_index", ("yes", "add_index")),
        ("1.5 GB\n3.5 GB", ("1.5 GB", "3.5 GB")),
        ("1:30\n2:45", ("1:30", "2:45")),
        ("1.\n2.", ("1.", "2.")),
    ],
)
def test_one_line_for_each_question_answers_all(text: str, values: tuple[str, ...]) -> None:
    reply = from_words(SENDER, posted_card(YES_NO, NAME), text, None)

    assert (reply.values, reply.question) == (values, None)


@pytest.mark.parametrize("text", ["2: add_index", "2:add_index", "2. add_index", " 2) add_index "])
def test_a_number_says_which_question_is_meant(text: str) -> None:
    reply = from_words(SENDER, posted_card(YES_NO, NAME), text, None)

    assert (reply.values, reply.question) == (("add_index",), 2)


@pytest.mark.parametrize(
    "text",
    [
        "2.5 GB",
        "1: yes\nno",
        "no\n1: yes",
        "1: yes\n1: no",
        "1: yes\n3: no",
        "3: yes",
        "0: yes",
        "1: a\n2: b\n2: c",
        "2: first line\nsecond line\nthird line",
        "2:5",
    ],
)
def test_a_reply_whose_numbers_do_not_fit_is_asked_for_again(text: str) -> None:
    with pytest.raises(InvalidReply, match="2 questions"):
        from_words(SENDER, posted_card(YES_NO, NAME), text, None)


def test_a_reply_that_could_mean_any_question_is_asked_for_again() -> None:
    with pytest.raises(InvalidReply, match="2 lines"):
        from_words(SENDER, posted_card(YES_NO, NAME), "yes", None)


def test_a_reply_below_the_message_of_one_question_is_for_that_one() -> None:
    assert from_words(SENDER, posted_card(YES_NO, NAME), "yes", 1).question == 1


@pytest.mark.parametrize("text", ["ab2c yes", "ab2c: yes", "#AB2C yes", " ab2c,yes"])
def test_a_reply_may_begin_with_the_short_id(text: str) -> None:
    assert without_short_id(text, "ab2c") == "yes"
    assert without_short_id("ab2cd yes", "ab2c") is None


@pytest.mark.parametrize(
    "more",
    [
        {"bot_id": "B1"},
        {"subtype": "message_changed"},
        {"thread_ts": None},
        {"thread_ts": "2.0"},
        {"user": None},
    ],
)
def test_only_a_persons_reply_in_a_thread_is_heard(more: dict[str, Any]) -> None:
    event = {"user": "U1", "channel": "C1", "ts": "2.0", "thread_ts": "1.0", "text": "a &lt; b"}

    said = read_thread_reply(event | {"subtype": "thread_broadcast"})

    assert said is not None
    assert said.text == "a < b"
    assert read_thread_reply(event | more) is None


def test_the_book_knows_every_card_that_a_thread_has_held() -> None:
    index = CardIndex()
    old, new = posted_card(YES_NO, ts="1.0"), posted_card(NAME, ts="2.0", thread="1.0")
    for card in (new, old):
        index.put(card)

    index.end(old.location)

    assert index.in_thread("C1", "1.0") == [old, new]
    assert [index.is_open(card) for card in (old, new)] == [False, True]
    assert index.find("C1", "1.0") == old
    assert index.opened() == [new]
    assert index.in_thread("C2", "1.0") == []


def test_the_oldest_cards_that_are_over_are_forgotten_whole() -> None:
    index = CardIndex()
    first = posted_card(YES_NO, ts="1.0")
    index.put(first)
    index.add_copy(first, "1.5")
    index.mark_whole("C1", "1.0")
    assert index.find("C1", "1.5") == first
    index.end(first.location)

    for number in range(2, 1_003):
        card = posted_card(NAME, ts=f"{number}.0")
        index.put(card)
        index.end(card.location)

    assert index.find("C1", "1.0") is index.find("C1", "1.5") is None
    assert index.in_thread("C1", "1.0") == index.in_thread("C1", "1.5") == []
    # So it is read again before a reply in it counts.
    assert not index.is_whole("C1", "1.0")
    assert index.find("C1", "1002.0") is not None


async def test_a_click_that_overtakes_our_own_posting_waits_for_it() -> None:
    index = CardIndex()
    with index.posting(RequestId("r1")):
        waiting = asyncio.ensure_future(index.posted(RequestId("r1")))
        await asyncio.wait_for(index.posted(RequestId("another")), 10)
        await asyncio.sleep(0)
        assert not waiting.done()

    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(index.posted(RequestId("r1")), 10)
